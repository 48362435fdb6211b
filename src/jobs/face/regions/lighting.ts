// Estimates the light and the skin of a portrait, to colour what the portrait does not show.
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import { labAt, lumaAt, lumaOf, median, quantile } from '../imaging/colour.ts';
import type { Rgb } from '../imaging/patch.ts';
import { CHEEKS, LEFT_EYE, type Landmarks, px, py, RIGHT_EYE } from '../detect/landmarks.ts';
import { eyePixels } from './eye-contours.ts';

/** Light and skin of a portrait; colours are RGB, 0..255. */
export interface Lighting {
  /** Median colour of the cheeks. */
  readonly skin: Rgb;
  /** White in this light, estimated from the sclera and bounded by the skin. */
  readonly white: Rgb;
  /** From 0 (black and white) to 1 (skin has colour). */
  readonly colour: number;
  /** Standard deviation of the grain of the skin, luma 0..255. Inpainted skin gets the same. */
  readonly grain: number;
}

/** Measures the light on the cheeks and the sclera. */
export function measureLighting(image: RgbImage, points: Landmarks): Lighting {
  const cheeks = CHEEKS.flatMap((index) => patch(image, px(points, index), py(points, index), 6));
  const channel = (indices: readonly number[], c: number): number =>
    median(indices.map((i) => image.data[i * 3 + c]!));
  const skin: Rgb = [channel(cheeks, 0), channel(cheeks, 1), channel(cheeks, 2)];
  const eyes = [LEFT_EYE, RIGHT_EYE].flatMap((eye) => eyePixels(image, points, eye));
  const bright = quantile(
    eyes.map((i) => lumaAt(image, i)),
    0.8,
  );
  const whites = eyes.filter((i) => lumaAt(image, i) >= bright);
  const skinLuma = lumaOf(...skin);
  const sclera: Rgb =
    whites.length > 8 ? [channel(whites, 0), channel(whites, 1), channel(whites, 2)] : skin;
  const scleraLuma = lumaOf(...sclera);
  // Eyes lie in shadow, so white is brighter than the sclera. Dark skin in good light still comes
  // with white teeth.
  const luma = clamp(Math.max(1.2 * scleraLuma, 0.85 * skinLuma + 40), 60, 238);
  const colour = smoothstep(...CHROMA_RANGE, median(cheeks.map((i) => chromaAt(image, i))));
  const cast = (c: number): number => {
    const off = skin[c]! / Math.max(1, skinLuma) / NEUTRAL_SKIN[c]! - 1;
    return (
      1 +
      0.75 *
        colour *
        Math.sign(off) *
        Math.max(0, Math.abs(off) - (c === 2 && off > 0 ? SKIN_VARIATION_BLUE : SKIN_VARIATION))
    );
  };
  const hue = (c: number): number =>
    clamp(clamp((sclera[c]! / Math.max(1, scleraLuma) + 1) / 2, 0.8, 1.12) * cast(c), 0.6, 1.25);
  return {
    skin,
    white: [luma * hue(0), luma * hue(1), luma * hue(2)],
    colour,
    grain: grainOf(image, cheeks),
  };
}

/**
 * Red, green and blue of skin in white light, in units of its luma, and how much people differ from
 * it. A larger difference means coloured light, paint or print.
 */
const NEUTRAL_SKIN = [1.24, 0.95, 0.74] as const;
const SKIN_VARIATION = 0.15;
/** The same difference towards blue, for pale skin. */
const SKIN_VARIATION_BLUE = 0.35;

/**
 * Chroma (CIE 1976) of cheeks: below 3 in black and white, also toned or not quite neutral; above 9
 * in any light that shows colours.
 */
const CHROMA_RANGE = [3, 9] as const;

/** Chroma (CIE 1976) of a pixel. */
function chromaAt(image: RgbImage, index: number): number {
  const { a, b } = labAt(image, index);
  return Math.hypot(a, b);
}

/** Indices of the pixels of a square round (x, y), one pixel inside the picture. */
function patch({ width, height }: RgbImage, x: number, y: number, radius: number): number[] {
  const indices: number[] = [];
  for (let dy = -radius; dy <= radius; dy++) {
    for (let dx = -radius; dx <= radius; dx++) {
      indices.push(
        clamp(Math.round(y) + dy, 1, height - 2) * width + clamp(Math.round(x) + dx, 1, width - 2),
      );
    }
  }
  return indices;
}

/**
 * Noise estimate: the median absolute response of a 3x3 Laplacian as a standard deviation (Immerkær
 * 1996), luma 0..255.
 */
function grainOf(image: RgbImage, indices: readonly number[]): number {
  const { width } = image;
  const l = (i: number): number => lumaAt(image, i);
  const responses = indices.map((i) =>
    Math.abs(
      4 * l(i) -
        2 * (l(i - 1) + l(i + 1) + l(i - width) + l(i + width)) +
        l(i - width - 1) +
        l(i - width + 1) +
        l(i + width - 1) +
        l(i + width + 1),
    ),
  );
  return median(responses) / 0.6745 / 6;
}
