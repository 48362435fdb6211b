// How far each pixel follows the head's movement: fully on the head, not at all in the background and on the body, softly between.
import { type RgbImage, smoothstep } from './image.ts';
import { FACE_OVAL, type Landmarks, px, py } from './landmarks.ts';

export interface Matte {
  /** 0..255 per pixel, never steeper than 8 per pixel. */
  readonly weight: Uint8Array;
  /** 0..1: how much of the usual head movement the background bears. */
  readonly freedom: number;
}

export function headMatte(image: RgbImage, points: Landmarks): Matte {
  const xs = FACE_OVAL.map((i) => px(points, i));
  const ys = FACE_OVAL.map((i) => py(points, i));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const cx = (left + right) / 2;
  const cy = (top + bottom) / 2;
  const weight = new Uint8Array(image.width * image.height);
  for (let y = 0; y < image.height; y++) {
    for (let x = 0; x < image.width; x++) {
      const r = Math.hypot((x + .5 - cx) / (1.05 * (right - left)), (y + .5 - cy) / (.95 * (bottom - top)));
      weight[y * image.width + x] = 255.5 * (1 - smoothstep(.6, 1, r));
    }
  }
  return { weight, freedom: 1 };
}
