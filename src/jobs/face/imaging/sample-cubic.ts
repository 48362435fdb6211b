// Samples a picture between its pixels, for warps.
import { clamp, type RgbImage } from './image.ts';

/**
 * Catmull-Rom (bicubic) sampling: what is warped is resampled once more than the rest of the face
 * and must not look softer. Pixel centres lie at integers.
 * @param to where the three values go in `out`
 */
export function sampleCubic(
  { width, height, data }: RgbImage,
  x: number,
  y: number,
  out: Uint8Array,
  to: number,
): void {
  const x0 = Math.floor(x);
  const y0 = Math.floor(y);
  const wx = cubicWeights(x - x0);
  const wy = cubicWeights(y - y0);
  for (let c = 0; c < 3; c++) {
    let value = 0;
    for (let j = 0; j < 4; j++) {
      const row = clamp(y0 + j - 1, 0, height - 1) * width;
      let sum = 0;
      for (let i = 0; i < 4; i++) {
        sum += wx[i]! * data[(row + clamp(x0 + i - 1, 0, width - 1)) * 3 + c]!;
      }
      value += wy[j]! * sum;
    }
    out[to + c] = clamp(value + 0.5, 0, 255);
  }
}

const cubicWeights = (t: number): [number, number, number, number] => [
  ((-0.5 * t + 1) * t - 0.5) * t,
  (1.5 * t - 2.5) * t * t + 1,
  ((-1.5 * t + 2) * t + 0.5) * t,
  (0.5 * t - 0.5) * t * t,
];
