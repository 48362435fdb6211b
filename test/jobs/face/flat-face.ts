// A face of two colours, on the landmarks of the synthetic face.
import {
  INNER_CORNERS,
  LOWER_INNER,
  LOWER_OUTER,
  type Landmarks,
  MOUTH_CORNERS,
  px,
  py,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { polygonMask } from '../../../src/jobs/face/imaging/mask.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';

export const SIZE = 512;
/** Landmarks of the mouth's corners. */
export const CORNERS: ReadonlySet<number> = new Set([...MOUTH_CORNERS, ...INNER_CORNERS]);

/** Lips of one colour on skin of one colour. */
export function flatFace(landmarks: Landmarks, lip: Rgb, skin: Rgb): RgbImage {
  const image = rgbImage(SIZE, SIZE);
  for (let i = 0; i < SIZE * SIZE; i++) {
    image.data.set(skin, i * 3);
  }
  fill(image, landmarks, [...UPPER_OUTER, ...LOWER_OUTER.toReversed()], lip);
  return image;
}

/** Fills the polygon through some landmarks with a colour, or its wanted columns. */
export function fill(
  { data }: RgbImage,
  points: Landmarks,
  outline: readonly number[],
  colour: Rgb,
  isWanted: (x: number) => boolean = () => true,
): void {
  const mask = polygonMask(
    SIZE,
    SIZE,
    outline.map((i) => ({ x: px(points, i), y: py(points, i) })),
  );
  for (let i = 0; i < SIZE * SIZE; i++) {
    if (mask.data[i]! > 0.5 && isWanted(i % SIZE)) {
      data.set(colour, i * 3);
    }
  }
}

/** Fills a square round a position, 2 `reach` + 1 pixels wide. */
export function spot({ data }: RgbImage, x: number, y: number, reach: number, colour: Rgb): void {
  for (let row = Math.round(y) - reach; row <= Math.round(y) + reach; row++) {
    for (let column = Math.round(x) - reach; column <= Math.round(x) + reach; column++) {
      data.set(colour, (row * SIZE + column) * 3);
    }
  }
}

/** Landmarks whose lower lip, but for the corners, is so many pixels lower. */
export function openedBy(landmarks: Landmarks, gap: number): Landmarks {
  const points = landmarks.slice();
  for (const index of [...LOWER_INNER, ...LOWER_OUTER].filter((i) => !CORNERS.has(i))) {
    points[index * 3 + 1]! += gap;
  }
  return points;
}
