// The colour of lips and skin in shade.
import { clamp, type RgbImage } from './image.ts';
import type { Rgb } from './patch.ts';

/**
 * By how much less red falls than the light, and by how much more green and blue do, as exponents: in
 * a fold the light comes through flesh. Measured on 159 portraits at rest: the logarithm of red falls
 * by .49 of that of green between the lower lip and the seam, by .63 to .68 of it in the corners of the
 * mouth, by .55 to .7 of it below the lower lip; blue falls as green does.
 */
const REDDER = 0.3;
/** Share by which green and blue lie below red in skin in colour; in black and white it is 0. */
const IN_COLOUR = 0.25;

/** The colour of flesh where only the share `light` (0..1) of the light falls. */
export function inShade([red, green, blue]: Rgb, light: number): Rgb {
  const colour = clamp((1 - (green + blue) / Math.max(1, 2 * red)) / IN_COLOUR, 0, 1);
  const more = light ** (1 + REDDER * colour);
  return [red * light ** (1 - REDDER * colour), green * more, blue * more];
}

/** Shades the pixel `index` in place. */
export function shadePixel({ data }: RgbImage, index: number, light: number): void {
  const at = index * 3;
  const shaded = inShade([data[at]!, data[at + 1]!, data[at + 2]!], light);
  for (let c = 0; c < 3; c++) {
    data[at + c] = shaded[c]! + 0.5;
  }
}
