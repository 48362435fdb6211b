// Estimates the light and the skin of a portrait, to colour what the portrait does not show.
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import {
  lumaAt,
  lumaOf,
  median,
  medianColour,
  quantile,
  robustDeviation,
} from '../imaging/colour.ts';
import type { Rgb } from '../imaging/patch.ts';
import {
  CHEEKS,
  FACE_OVAL,
  LEFT_EYE,
  LOWER_INNER,
  LOWER_OUTER,
  type Landmarks,
  px,
  py,
  RIGHT_EYE,
} from '../detect/landmarks.ts';
import { outlineMask } from '../detect/exposure.ts';
import { indicesAbove } from '../imaging/mask.ts';
import { skinRoundLips } from '../detect/lip-evidence.ts';
import { eyePixels } from './eye-contours.ts';

/** Light and skin of a portrait; colours are RGB, 0..255. */
export interface Lighting {
  /** Median colour of the cheeks. */
  readonly skin: Rgb;
  /** White in this light, estimated from the sclera and bounded by the skin. */
  readonly white: Rgb;
  /** Luma of the brightest parts of the face. */
  readonly brightest: number;
  /** From 0 (black and white) to 1 (skin has colour, or lips have another than skin). */
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
  const sclera: Rgb =
    whites.length > 8 ? [channel(whites, 0), channel(whites, 1), channel(whites, 2)] : skin;
  const lip = LOWER_OUTER.flatMap((index, i) =>
    patch(image, between(px, points, index, i), between(py, points, index, i), 2),
  );
  const [onCheeks, onLip] = [chromaOf(image, cheeks), chromaOf(image, lip)];
  const colour = smoothstep(
    ...CHROMA_RANGE,
    Math.max(Math.hypot(...onCheeks), Math.hypot(onLip[0] - onCheeks[0], onLip[1] - onCheeks[1])),
  );
  const face = outlineMask(image, points, FACE_OVAL);
  const brightestOf = (indices: readonly number[]): number =>
    quantile(
      indices.map((i) => lumaAt(image, i)),
      BRIGHTEST,
    );
  const brightest = brightestOf(indicesAbove(face, 0.5));
  const lightest = ABOVE_AROUND * brightestOf(skinRoundLips(image, points, AROUND));
  const white = whiteOf(skin, sclera, BELOW_BRIGHTEST * brightest, lightest, colour);
  return { skin, white, colour, brightest, grain: grainOf(image, cheeks) };
}

/** Chroma in units of luma: (B - Y, R - Y) / Y, scaled as in YUV. Neutral is (0, 0). */
export type Cast = readonly [u: number, v: number];

/** B - Y and R - Y of the primary colours are at most 1 / U and 1 / V. */
const [U, V] = [0.564, 0.713];

/** The chroma of a colour in units of its luma. */
export function castOf([r, g, b]: Rgb): Cast {
  const luma = Math.max(1, lumaOf(r, g, b));
  return [(U * (b - luma)) / luma, (V * (r - luma)) / luma];
}

/** The colour of a luma and a chroma. */
export function withCast(luma: number, [u, v]: Cast): Rgb {
  const [r, b] = [1 + v / V, 1 + u / U];
  return [luma * r, (luma * (1 - 0.299 * r - 0.114 * b)) / 0.587, luma * b];
}

/** Shortens a vector to a length. */
export const bounded = ([u, v]: Cast, most: number): Cast => {
  const share = Math.min(1, most / Math.max(1e-6, Math.hypot(u, v)));
  return [u * share, v * share];
};

/**
 * Chroma of skin in white light, from pale to ruddy: shares of one hue. What is farther from it
 * than people differ means coloured light, paint or print.
 */
const SKIN_HUE: Cast = [-0.15, 0.2];
const SKIN_SHARES = [0.4, 1.2] as const;
const SKIN_VARIATION = 0.05;
/**
 * The darker skin is, the more chroma it has in units of its luma: shares up to this. In warm light
 * the sclera has as much; its chroma in units of the skin's that means skin, and light.
 */
const BROWN_SHARE = 1.8;
const BROWN_SCLERA = [0.4, 0.8] as const;
/**
 * Most chroma of skin that counts for what is near to it. The teeth of 36 mouths in skin with more
 * are hardly less pale than others (chroma .12 and .10 in the median). Painted ones differ by .032
 * from them with this and BROWN_SHARE, by .043 without.
 */
export const SKIN_CHROMA = 0.3;
/**
 * Share of the sclera's chroma that is the light's: lids and lashes in the same pixels redden it. It
 * counts up to this share of the skin's. From six portraits with their own teeth.
 */
const SCLERA_SHARE = 0.5;
const SCLERA_CHROMA = 0.3;
/**
 * White in units of the luma of the sclera, which lies in shadow. It is bounded by the skin: dark
 * skin in good light still comes with white teeth, bright eyes in a dim face do not.
 */
const ABOVE_SCLERA = 1.02;
const SKIN_LEAST = [0.88, 40] as const;
const SKIN_MOST = [1.35, 20] as const;

/**
 * The brightest parts of a face, as a quantile, and most of their luma that white has: the teeth of
 * 125 mouths, which are 1.08 as light, had .93 of it in the median, 1.04 at most in 95 of 100. In dim
 * and faded pictures and in even light the bound by the skin is higher.
 */
const BRIGHTEST = 0.98;
const BELOW_BRIGHTEST = 0.95;
/**
 * The skin round the lips, up to so many half widths of the mouth off them, and most of the luma of
 * its brightest parts that white has: a mouth may lie in deeper shadow than nose and brow. The teeth
 * of 241 mouths had .99 of it in the median, 1.29 at most in 98 of 100.
 */
const AROUND = 0.6;
const ABOVE_AROUND = 1.2;

/**
 * White in the light of a face.
 * @param bright luma of the brightest parts that white may have, unless the sclera is lighter
 * @param lightest luma that it has at most
 * @param colour as in Lighting
 */
function whiteOf(skin: Rgb, sclera: Rgb, bright: number, lightest: number, colour: number): Rgb {
  const [u, v] = castOf(skin);
  const [hueU, hueV] = SKIN_HUE;
  const [scleraU, scleraV] = castOf(sclera);
  const chroma = Math.hypot(u, v);
  const inLight = smoothstep(
    ...BROWN_SCLERA,
    Math.hypot(scleraU, scleraV) / Math.max(1e-6, chroma),
  );
  const [least, most] = SKIN_SHARES;
  const share = clamp(
    (u * hueU + v * hueV) / (hueU ** 2 + hueV ** 2),
    least,
    BROWN_SHARE + inLight * (most - BROWN_SHARE),
  );
  const off: Cast = [u - share * hueU, v - share * hueV];
  const cast = bounded(off, colour * Math.max(0, Math.hypot(...off) - SKIN_VARIATION));
  const rest = bounded(
    [scleraU - cast[0], scleraV - cast[1]],
    SCLERA_CHROMA * Math.min(SKIN_CHROMA, chroma),
  );
  const skinLuma = lumaOf(...skin);
  const bound = ([factor, offset]: readonly [number, number]): number =>
    Math.min(232, factor * skinLuma + offset);
  const onSclera = ABOVE_SCLERA * lumaOf(...sclera);
  const luma = Math.min(
    clamp(onSclera, bound(SKIN_LEAST), bound(SKIN_MOST)),
    Math.max(onSclera, bright),
    lightest,
  );
  return withCast(luma, [cast[0] + SCLERA_SHARE * rest[0], cast[1] + SCLERA_SHARE * rest[1]]);
}

/**
 * Chroma (CIE 1976) of cheeks, or the difference of the lips' to it: below 3 in black and white, also
 * toned or not quite neutral; above 9 in any light that shows colours.
 */
const CHROMA_RANGE = [3, 9] as const;

/** The middle of the lower lip at one of its outer landmarks. */
function between(
  at: (points: Landmarks, index: number) => number,
  points: Landmarks,
  outer: number,
  i: number,
): number {
  return (at(points, outer) + at(points, LOWER_INNER[i]!)) / 2;
}

/** Medians of a* and b* (CIE 1976) of pixels. */
function chromaOf(image: RgbImage, indices: readonly number[]): [a: number, b: number] {
  const { a, b } = medianColour(image, indices);
  return [a, b];
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
  const responses = indices.map(
    (i) =>
      4 * l(i) -
      2 * (l(i - 1) + l(i + 1) + l(i - width) + l(i + width)) +
      l(i - width - 1) +
      l(i - width + 1) +
      l(i + width - 1) +
      l(i + width + 1),
  );
  return robustDeviation(responses) / 6;
}
