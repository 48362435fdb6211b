// Conversion to I420, and cutting a patch (a small picture with alpha) out of a portrait.
import type { FacePatch, Yuv } from '../../../media/face-asset.ts';
import { clamp, type Plane, type RgbImage } from './image.ts';

/** Red, green and blue, 0..255. */
export type Rgb = readonly [number, number, number];

/** BT.601 limited range: the colour space that WebRTC receivers assume. */
export const rgbToYuv = ([r, g, b]: Rgb): Yuv => [
  byte(16 + (65.738 * r + 129.057 * g + 25.064 * b) / 256),
  byte(128 + (-37.945 * r - 74.494 * g + 112.439 * b) / 256),
  byte(128 + (112.439 * r - 94.154 * g - 18.285 * b) / 256),
];

const byte = (value: number): number => clamp(Math.floor(value + 0.5), 0, 255);

/**
 * The I420 planes of a part of the picture with even position and size. Chroma is the mean of 2x2
 * pixels.
 */
export function toI420(
  { width, data }: RgbImage,
  left: number,
  top: number,
  w: number,
  h: number,
): { luma: Uint8Array; u: Uint8Array; v: Uint8Array } {
  const luma = new Uint8Array(w * h);
  const u = new Uint8Array((w * h) / 4);
  const v = new Uint8Array((w * h) / 4);
  for (let y = 0; y < h; y += 2) {
    for (let x = 0; x < w; x += 2) {
      let [r, g, b] = [0, 0, 0];
      for (let k = 0; k < 4; k++) {
        const px = x + (k & 1);
        const py = y + (k >> 1);
        const i = ((top + py) * width + left + px) * 3;
        luma[py * w + px] =
          16.5 + (65.738 * data[i]! + 129.057 * data[i + 1]! + 25.064 * data[i + 2]!) / 256;
        r += data[i]!;
        g += data[i + 1]!;
        b += data[i + 2]!;
      }
      const to = (y / 2) * (w / 2) + x / 2;
      u[to] = byte(128 + (-37.945 * r - 74.494 * g + 112.439 * b) / 1024);
      v[to] = byte(128 + (112.439 * r - 94.154 * g - 18.285 * b) / 1024);
    }
  }
  return { luma, u, v };
}

/** Pixels; right and bottom are exclusive. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/**
 * Cuts out the box, which is widened to even coordinates and clipped to the picture.
 * @param alpha 0..1 per pixel, size of the picture
 */
export function cutPatch(image: RgbImage, alpha: Plane, box: Box): FacePatch {
  const x = Math.max(0, Math.floor(box.left / 2) * 2);
  const y = Math.max(0, Math.floor(box.top / 2) * 2);
  const width = Math.min(image.width, Math.ceil(box.right / 2) * 2) - x;
  const height = Math.min(image.height, Math.ceil(box.bottom / 2) * 2) - y;
  const cut = new Uint8Array(width * height);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      cut[row * width + column] = byte(alpha.data[(y + row) * alpha.width + x + column]! * 255);
    }
  }
  return { x, y, width, height, ...toI420(image, x, y, width, height), alpha: cut };
}
