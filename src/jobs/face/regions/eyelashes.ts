// The lashes of a closed eye.
import { lumaOf, median } from '../imaging/colour.ts';
import { clamp, mix, type RgbImage, smoothstep } from '../imaging/image.ts';
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
export function drawLashes(
  lid: RgbImage,
  points: Landmarks,
  eye: EyeIndices,
  colour: Rgb,
  { skin }: Lighting,
): void {
  const [upper, lower] = lidMargins(points, eye);
  const inner = px(points, eye.inner);
  const width = px(points, eye.outer) - inner; // signed: positive towards the outer corner
  const height = Math.max(3, lower(inner + width / 2) - upper(inner + width / 2));
  const line = (t: number): number =>
    lower(inner + t * width) + 0.1 * height * Math.sin(Math.PI * clamp(t, 0, 1));
  shadeAbove(lid, line, inner, width, darkness(colour, skin));
  const thickness = 0.6 + 0.03 * height;
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
 * A lid is dark above its lashes: it bends away from the light there, and their roots are in it. Of
 * eight people who blink, columns in the middle third of the lid have .36 of the luma of the cheek
 * .04 of the eye's length above the line of the lashes, .53 at .08, .74 at .12, .88 at .16 and .94
 * from .2 on; those without make-up .6, .75, .85 and .9. With all of that lids looked grey and dirty:
 * half of it is used. Shares of the light, and the reach in eye lengths.
 */
const SHADE = { faint: 0.08, dark: 0.3, reach: 0.115 } as const;

/** How much of each colour that shade takes: light in the shade has come through skin. */
const WARM = [0.82, 1.06, 1.15] as const;

/** @returns 0 for lashes that are hardly darker than skin to 1 for black ones */
const darkness = (lash: Rgb, skin: Rgb): number =>
  clamp(1 - (2 * lumaOf(...lash)) / Math.max(1, lumaOf(...skin)), 0, 1);

/**
 * Shades the lid above the line of the lashes.
 * @param line its y, pixels, at a share of the eye's length from the inner corner
 * @param inner x of that corner
 * @param length of the eye, positive towards the right, pixels
 * @param dark as of `darkness`
 */
function shadeAbove(
  { width, height, data }: RgbImage,
  line: (t: number) => number,
  inner: number,
  length: number,
  dark: number,
): void {
  const most = mix(SHADE.faint, SHADE.dark, dark);
  const reach = SHADE.reach * Math.abs(length);
  const [left, right] = [Math.min(inner, inner + length), Math.max(inner, inner + length)];
  const beside = 0.05 * (right - left);
  for (let x = Math.max(0, Math.floor(left - beside)); x < Math.min(width, right + beside); x++) {
    const t = (x + 0.5 - inner) / length;
    const bottom = line(t);
    const share = most * smoothstep(-0.05, 0.3, t) * smoothstep(1.05, 0.9, t);
    const first = Math.max(0, Math.floor(bottom - 3 * reach));
    for (let y = first; y < Math.min(height, bottom + 1); y++) {
      const away = (bottom - y - 0.5) / reach;
      const shade = share * Math.exp(-away * away);
      const i = (y * width + x) * 3;
      for (let c = 0; c < 3; c++) {
        data[i + c] = data[i + c]! * (1 - WARM[c]! * shade);
      }
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
