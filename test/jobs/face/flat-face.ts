// A face of two colours, on the landmarks of the synthetic face.
import {
  LOWER_OUTER,
  type Landmarks,
  px,
  py,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { polygonMask } from '../../../src/jobs/face/imaging/mask.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';

export const SIZE = 512;

/** Lips of one colour on skin of one colour. */
export function flatFace(landmarks: Landmarks, lip: Rgb, skin: Rgb): RgbImage {
  const image = rgbImage(SIZE, SIZE);
  const outline = [...UPPER_OUTER, ...LOWER_OUTER.toReversed()];
  const lips = polygonMask(
    SIZE,
    SIZE,
    outline.map((i) => ({ x: px(landmarks, i), y: py(landmarks, i) })),
  );
  for (let i = 0; i < SIZE * SIZE; i++) {
    image.data.set(lips.data[i]! > 0.5 ? lip : skin, i * 3);
  }
  return image;
}
