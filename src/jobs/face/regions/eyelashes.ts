// The lashes of a closed eye.
import { median } from '../imaging/colour.ts';
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import type { Rgb } from '../imaging/patch.ts';
import { type EyeIndices, type Landmarks, px, py } from '../detect/landmarks.ts';
import { lidMargins } from './eye-contours.ts';
import type { Lighting } from './lighting.ts';

/**
 * The colour of the lashes: the median of the darkest quarter of the pixels along the upper lid
 * margin. Lashes with mascara are black; those of a fair child are hardly darker than the skin.
 */
export function lashColour(
  { width, height, data }: RgbImage,
  points: Landmarks,
  { upper }: EyeIndices,
  { skin }: Lighting,
): Rgb {
  const samples = upper.flatMap((index) =>
    [-2, -1, 0, 1].map((dy) => {
      const i =
        (clamp(Math.round(py(points, index)) + dy, 0, height - 1) * width +
          clamp(Math.round(px(points, index)), 0, width - 1)) *
        3;
      return [data[i]!, data[i + 1]!, data[i + 2]!] as const;
    }),
  );
  const dark = samples
    .toSorted((a, b) => a[0] + a[1] + a[2] - b[0] - b[1] - b[2])
    .slice(0, samples.length >> 2);
  const channel = (c: 0 | 1 | 2): number =>
    Math.min(0.5 * skin[c], 0.85 * median(dark.map((sample) => sample[c])));
  return [channel(0), channel(1), channel(2)];
}

/**
 * Draws the closed lash line and the lashes into `lid`. The line follows the lower lid margin and
 * sags by a tenth of the eye's height; the lashes point down and outwards.
 */
export function drawLashes(lid: RgbImage, points: Landmarks, eye: EyeIndices, colour: Rgb): void {
  const [upper, lower] = lidMargins(points, eye);
  const inner = px(points, eye.inner);
  const width = px(points, eye.outer) - inner; // signed: positive towards the outer corner
  const height = Math.max(3, lower(inner + width / 2) - upper(inner + width / 2));
  const line = (t: number): number =>
    lower(inner + t * width) + 0.1 * height * Math.sin(Math.PI * clamp(t, 0, 1));
  const thickness = 0.8 + 0.035 * height;
  const steps = Math.ceil(Math.abs(width) * 2);
  for (let k = 0; k <= steps; k++) {
    const t = -0.02 + (1.05 * k) / steps;
    const fade = smoothstep(-0.03, 0.12, t) * smoothstep(1.04, 0.9, t);
    drawDot(lid, inner + t * width, line(t), thickness * (0.75 + 0.35 * t), 0.42 * fade, colour);
  }
  const count = Math.round(Math.abs(width) / 2.6);
  for (let k = 0; k < count; k++) {
    const t = 0.12 + (0.86 * (k + 0.5)) / count;
    const long = height * (0.1 + 0.2 * t);
    for (let s = 0; s <= 8; s++) {
      const q = s / 8;
      const x = inner + t * width + Math.sign(width) * long * (t - 0.25) * q * 1.1;
      drawDot(lid, x, line(t) + long * q * (1 - 0.25 * q), 0.55, 0.16 * (1 - 0.8 * q), colour);
    }
  }
}

/**
 * Blends a Gaussian dot into the picture: centre and radius in pixels, `strength` 0..1 at the
 * centre.
 */
function drawDot(
  { width, height, data }: RgbImage,
  cx: number,
  cy: number,
  radius: number,
  strength: number,
  colour: Rgb,
): void {
  const reach = Math.ceil(radius * 2.5);
  for (
    let y = Math.max(0, Math.floor(cy) - reach);
    y <= Math.min(height - 1, Math.floor(cy) + reach);
    y++
  ) {
    for (
      let x = Math.max(0, Math.floor(cx) - reach);
      x <= Math.min(width - 1, Math.floor(cx) + reach);
      x++
    ) {
      const a =
        strength * Math.exp(-((x + 0.5 - cx) ** 2 + (y + 0.5 - cy) ** 2) / (radius * radius));
      const i = (y * width + x) * 3;
      data[i] = data[i]! * (1 - a) + colour[0] * a;
      data[i + 1] = data[i + 1]! * (1 - a) + colour[1] * a;
      data[i + 2] = data[i + 2]! * (1 - a) + colour[2] * a;
    }
  }
}
