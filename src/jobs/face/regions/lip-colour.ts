// Gives closed lips the colour and the light of the person's own: a smile stretches them until they are
// pale, its opening has been inpainted, and its highlights lie where lips at rest have none.
import { lumaAt, lumaOf, median, quantile } from '../imaging/colour.ts';
import { type Curve, curveThrough } from '../imaging/curve.ts';
import { clamp, type Plane, plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { blur } from '../imaging/mask.ts';
import { inShade } from '../imaging/flesh.ts';
import type { Rgb } from '../imaging/patch.ts';
import {
  CHEEKS,
  LOWER_INNER,
  LOWER_OUTER,
  type Landmarks,
  px,
  py,
  UPPER_INNER,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import { MouthFrame } from './mouth-frame.ts';

/** Luma of the upper lip, share of the lower one's: it faces down. */
const UPPER_LIGHT: readonly [number, number] = [0.74, 0.9];
const TYPICAL_LIGHT = 0.84;
/** Most luma of lips, share of the skin's. Not on dark skin, whose lower lips are often lighter. */
const BELOW_SKIN = 0.88;
const LIGHT_SKIN: readonly [number, number] = [90, 130];
/** Most of their luma that lips lose by that: in black and white they may be lighter than the skin. */
const DIMMED = 0.12;
/** Difference of the skin from grey, 0..255: a black and white picture, and one in colour. */
const COLOURED: readonly [number, number] = [5, 18];
/** Difference of the chroma of pale lips from that of the skin, 0..255: where they get redder. */
const PALE: readonly [number, number] = [14, 32];
/** Share of green and blue that the palest lips lose. */
const RICHER = 0.1;
/** Blue of pale lips in units of green: more is taken away unless the skin has it too. */
const LEAST_BLUE = 0.93;
/** Share of that which is taken away: all of it would turn rose lips into salmon ones. */
const BLUE_GONE = 0.3;
/** Pixels below this share of the lips' redness are gloss, if they are the paler half. */
const GLOSS = 0.9;
/** Share of the redder half in the colour of the lips: with all of it lips look painted. */
const TRUSTED = 0.4;
/** Least luma of lips, share of the skin's: what is darker is the inside of the mouth. */
const DARKEST = 0.35;
/** Share of the difference from the colour of lips at rest that is taken back. */
const CORRECTED = 0.75;
/** The same where hardly any of the upper lip was seen, and how much of it counts as seen. */
const DRAWN = 0.92;
const SHOWN: readonly [number, number] = [0.75, 0.35];
/**
 * Where lips were filled with skin: share of the difference that is taken back, and nearness to the
 * lips' colour (0 that of the skin, to 1) of what was filled so and of what is lip.
 */
const FILLED = 0.9;
const LIP_LIKE: readonly [number, number] = [0.4, 0.75];
/** Share of the skin's hue in lips at the corners. In 159 portraits at rest they lose half their red. */
const PALE_ENDS = 0.72;
/** Range of texture that stays, as a factor. */
const TEXTURE: readonly [number, number] = [0.78, 1.24];

/**
 * Pixels beside the seam have colours of both lips: within so many pixels texture is left out, and this
 * share of the difference from the lip's colour is taken back.
 */
const SEAM: readonly [number, number] = [2, 0.5];
const SEAM_COLOURED = 0.95;

/** Half width of the lips' outer edge, share of the face's height: the red fades into the skin. */
const EDGE = 0.0085;

/** What the lips of a portrait look like. */
export interface LipColours {
  readonly upper: Rgb;
  readonly lower: Rgb;
  /** Natural logarithm of the light per half width of the mouth, from left to right. */
  readonly slope: number;
  /** How much of the upper lip the portrait shows, 0..1: the rest has been inpainted. */
  readonly seenAbove: number;
}

/**
 * The colours of lips at rest, from those of the portrait.
 * @param points landmarks whose inner contours follow the opening
 * @param unknown what is not lip, 0..1 per pixel
 * @returns undefined when too little of the lower lip is seen
 */
export function lipColours(
  image: RgbImage,
  points: Landmarks,
  unknown: Plane,
): LipColours | undefined {
  const frame = new MouthFrame(points);
  const skin = skinOf(image, points);
  const darkest = DARKEST * lumaOf(...skin);
  const within = (inner: readonly number[], outer: readonly number[]): Seen[] =>
    pixelsOf(image, frame, points, inner, outer).filter(
      ({ r, t }) => t > 0.2 && t < 0.85 && Math.abs(r) < 0.65,
    );
  const seen = (inner: readonly number[], outer: readonly number[]): Seen[] =>
    within(inner, outer).filter(({ i }) => unknown.data[i]! < 0.15 && lumaAt(image, i) > darkest);
  const below = seen(LOWER_INNER, LOWER_OUTER);
  const above = seen(UPPER_INNER, UPPER_OUTER);
  if (below.length < 20) {
    return undefined;
  }
  // Highlights are the light's colour, and the edges skin's or the shadow's.
  const lumas = below.map(({ i }) => lumaAt(image, i));
  const [dark, bright] = [quantile(lumas, 0.12), quantile(lumas, 0.65)];
  const evenly = below.filter((_, k) => lumas[k]! >= dark - 1 && lumas[k]! <= bright + 1);
  // Gloss is paler than the lip too.
  const red = evenly.map(({ i }) => rednessAt(image, i));
  const [pale, middle] = [quantile(red, 0.25), median(red)];
  const least = Math.max(pale, Math.min(middle, GLOSS * quantile(red, 0.9)));
  const trusted = evenly.filter((_, k) => red[k]! >= least - 1e-3);
  const own = mix(typical(image, evenly), typical(image, trusted), TRUSTED);
  const lower = rich(own, skin);
  const light = lumaOf(...lower);
  const whole = within(UPPER_INNER, UPPER_OUTER).length;
  const seenAbove = clamp(above.length / Math.max(1, whole), 0, 1);
  let upper = inShade(lower, TYPICAL_LIGHT);
  if (above.length >= 20) {
    const found = typical(image, above);
    const isLip = clamp(1 - distance(found, own) / Math.max(6, distance(skin, own)), 0, 1);
    const seenShare = clamp(lumaOf(...found) / Math.max(1, lumaOf(...own)), ...UPPER_LIGHT);
    // Of a lip that is hardly seen there is only the edge, in the shadow of the opening.
    const share =
      seenShare + Math.max(0, TYPICAL_LIGHT - seenShare) * smoothstep(...SHOWN, seenAbove);
    const shown = scaled(
      rich(found, skin),
      (share * light) / Math.max(1, lumaOf(...rich(found, skin))),
    );
    upper = mix(inShade(lower, share), shown, 0.7 * isLip);
  }
  return { upper, lower, slope: slopeOf(image, trusted), seenAbove };
}

/**
 * Corrects the lips in place.
 * @param points landmarks of `image`, with closed lips
 * @param amount 0..1
 * @param softness 1 in a sharp picture, more in an enlarged one
 */
export function colourLips(
  image: RgbImage,
  points: Landmarks,
  { upper, lower, slope, seenAbove }: LipColours,
  amount: number,
  softness: number,
): void {
  const frame = new MouthFrame(points);
  const soft = Math.max(0.8, EDGE * frame.faceHeight) * softness;
  const skin = skinOf(image, points);
  for (const [inner, outer, base, isLow] of [
    [UPPER_INNER, UPPER_OUTER, upper, false],
    [LOWER_INNER, LOWER_OUTER, lower, true],
  ] as const) {
    const lip = pixelsOf(image, frame, points, inner, outer, soft);
    const mean = localMean(image, lip, Math.max(2, 0.024 * frame.faceHeight));
    const drawn = isLow ? 0 : DRAWN * smoothstep(...SHOWN, seenAbove);
    const share = Math.max(CORRECTED * amount, drawn);
    const tells = smoothstep(...PALE, distance(base, skin));
    const likeSkin = scaled(skin, lumaOf(...base) / Math.max(1, lumaOf(...skin)));
    for (const [k, { i, r, t, edge, rise }] of lip.entries()) {
      const light = (isLow ? lightBelow(r, t) : lightAbove(r, t)) * Math.exp(slope * r);
      const to = lumaOf(...base) * light;
      const from = lumaOf(mean[k * 3]!, mean[k * 3 + 1]!, mean[k * 3 + 2]!);
      // Hair over the lip is far darker, and stays.
      const bare = smoothstep(0.45, 0.65, from / Math.max(1, to));
      const filled =
        FILLED * tells * (1 - lipShare([...mean.subarray(k * 3, k * 3 + 3)], base, skin));
      const atSeam = SEAM_COLOURED * amount * smoothstep(...SEAM, rise);
      const alpha = Math.max(share, filled, atSeam) * bare * edge;
      const shaded = inShade(
        mix(base, likeSkin, PALE_ENDS * smoothstep(0.35, 1, Math.abs(r))),
        light,
      );
      for (let c = 0; c < 3; c++) {
        const own = clamp(image.data[i * 3 + c]! / Math.max(1, mean[k * 3 + c]!), ...TEXTURE);
        const detail = own + (1 - own) * smoothstep(...SEAM, rise);
        const colour = Math.min(255, shaded[c]! * detail);
        image.data[i * 3 + c] =
          image.data[i * 3 + c]! + alpha * (colour - image.data[i * 3 + c]!) + 0.5;
      }
    }
  }
}

/**
 * How much a colour is a lip's rather than the skin's, 0..1. Shadows at the corners of parted lips are
 * inpainted, and take the colour of the skin beside them.
 */
function lipShare(colour: readonly number[], lip: Rgb, skin: Rgb): number {
  const [fromLip, fromSkin] = [distance(colour as Rgb, lip), distance(colour as Rgb, skin)];
  return smoothstep(...LIP_LIKE, fromSkin / Math.max(1, fromSkin + fromLip));
}

/**
 * Light on the lower lip: darkest under the upper one, most of all at its sides, with a soft highlight
 * on its roundness.
 */
const lightBelow = (r: number, t: number): number => {
  const side = Math.abs(r);
  return (
    (1 - (0.16 + 0.1 * side) * (1 - smoothstep(0, 0.35 + 0.9 * side, t))) *
    (1 - 0.12 * smoothstep(0.45, 1, side)) *
    (1 + 0.04 * Math.exp(-(((t - 0.42) / 0.22) ** 2) - (r / 0.38) ** 2))
  );
};

/** Light on the upper lip: it faces down, most of all at the seam. */
const lightAbove = (r: number, t: number): number =>
  (0.88 + 0.14 * smoothstep(0, 0.8, t)) * (1 - 0.1 * smoothstep(0.5, 1, Math.abs(r)));

/** A pixel of a lip. */
interface Seen {
  readonly i: number;
  /** From the left (-1) to the right corner (1). */
  readonly r: number;
  /** From the seam (0) to the outer edge (1). */
  readonly t: number;
  /** The same in pixels. */
  readonly rise: number;
  /** 1 inside the lip, falling to 0 beyond the outer edge. */
  readonly edge: number;
}

/** @param soft how far the outer edge fades, pixels */
function pixelsOf(
  { width, height }: RgbImage,
  frame: MouthFrame,
  points: Landmarks,
  inner: readonly number[],
  outer: readonly number[],
  soft = 0.1,
): Seen[] {
  const line = (indices: readonly number[]): Curve => curveThrough(frame.local(points, indices));
  const [from, to] = [line(inner), line(outer)];
  const way = outer === UPPER_OUTER ? -1 : 1;
  const found: Seen[] = [];
  const { left, top, right, bottom } = boxOf(points, width, height);
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      const { x: u, y: v } = frame.toLocal(x + 0.5, y + 0.5);
      const r = u / frame.halfWidth;
      if (Math.abs(r) > 1) {
        continue;
      }
      const rise = (v - from(u)) * way;
      const thickness = (to(u) - from(u)) * way;
      const edge = smoothstep(thickness + soft, thickness - soft, rise);
      if (rise >= 0 && edge > 0 && thickness > 0.5) {
        found.push({ i: y * width + x, r, t: Math.min(1, rise / thickness), rise, edge });
      }
    }
  }
  return found;
}

/** The rectangle round the lips, pixels. */
function boxOf(
  points: Landmarks,
  width: number,
  height: number,
): { left: number; top: number; right: number; bottom: number } {
  const lips = [...UPPER_OUTER, ...LOWER_OUTER];
  const xs = lips.map((i) => px(points, i));
  const ys = lips.map((i) => py(points, i));
  return {
    left: Math.max(0, Math.floor(Math.min(...xs)) - 4),
    top: Math.max(0, Math.floor(Math.min(...ys)) - 4),
    right: Math.min(width, Math.ceil(Math.max(...xs)) + 4),
    bottom: Math.min(height, Math.ceil(Math.max(...ys)) + 4),
  };
}

/** The mean colour round each pixel of a lip, of the lip alone; shape [lip.length * 3]. */
function localMean(image: RgbImage, lip: readonly Seen[], sigma: number): Float32Array {
  const columns = lip.map(({ i }) => i % image.width);
  const rows = lip.map(({ i }) => Math.floor(i / image.width));
  const margin = Math.ceil(3 * sigma);
  const [left, top] = [Math.min(...columns) - margin, Math.min(...rows) - margin];
  const width = Math.max(...columns) + margin - left + 1;
  const height = Math.max(...rows) + margin - top + 1;
  const index = lip.map((_, k) => (rows[k]! - top) * width + columns[k]! - left);
  const out = new Float32Array(lip.length * 3);
  const spread = (value: (k: number) => number): Plane => {
    const flat = plane(width, height);
    for (const [k, at] of index.entries()) {
      flat.data[at] = value(k);
    }
    return blur(flat, sigma);
  };
  const share = spread((k) => lip[k]!.edge);
  for (let c = 0; c < 3; c++) {
    const sum = spread((k) => lip[k]!.edge * image.data[lip[k]!.i * 3 + c]!);
    for (const [k, at] of index.entries()) {
      out[k * 3 + c] = sum.data[at]! / Math.max(1e-3, share.data[at]!);
    }
  }
  return out;
}

/** Median colour of the cheeks. */
function skinOf(image: RgbImage, points: Landmarks): Rgb {
  const seen: { i: number }[] = [];
  for (const index of CHEEKS) {
    for (let dy = -6; dy <= 6; dy += 2) {
      for (let dx = -6; dx <= 6; dx += 2) {
        const x = clamp(Math.round(px(points, index)) + dx, 0, image.width - 1);
        const y = clamp(Math.round(py(points, index)) + dy, 0, image.height - 1);
        seen.push({ i: y * image.width + x });
      }
    }
  }
  return typical(image, seen);
}

/** Red in units of the mean of green and blue. */
const rednessAt = ({ data }: RgbImage, i: number): number =>
  (2 * data[i * 3]!) / Math.max(1, data[i * 3 + 1]! + data[i * 3 + 2]!);

const typical = ({ data }: RgbImage, some: readonly { readonly i: number }[]): Rgb => {
  const channel = (c: number): number => median(some.map(({ i }) => data[i * 3 + c]!));
  return [channel(0), channel(1), channel(2)];
};

/**
 * Pale lips with more red, and no lighter than lips on such skin are. What makes pale lips bluer than
 * the skin is the reflection of the sky or of a flash, and is taken away.
 */
function rich(lip: Rgb, skin: Rgb): Rgb {
  const luma = lumaOf(...lip);
  const light = lumaOf(...skin);
  const coloured = smoothstep(...COLOURED, distance([1, 1, 1], skin));
  const pale = coloured * (1 - smoothstep(...PALE, distance(lip, skin)));
  const bluest = Math.max(skin[2] / Math.max(1, skin[1]), LEAST_BLUE);
  const blue = lip[2] - BLUE_GONE * pale * Math.max(0, lip[2] - bluest * lip[1]);
  const red = 1 - RICHER * pale;
  const most = Math.min(
    DIMMED * luma,
    Math.max(0, luma - BELOW_SKIN * light) * smoothstep(...LIGHT_SKIN, light),
  );
  const redder: Rgb = [lip[0], lip[1] * red, blue * red];
  return scaled(redder, (luma - most) / Math.max(1, lumaOf(...redder)));
}

/** How the light of the lower lip changes from left to right: a line through the logarithms. */
function slopeOf(image: RgbImage, lip: readonly Seen[]): number {
  let [n, sr, sl, srr, srl] = [0, 0, 0, 0, 0];
  for (const { i, r } of lip) {
    const l = Math.log(Math.max(4, lumaAt(image, i)));
    n++;
    sr += r;
    sl += l;
    srr += r * r;
    srl += r * l;
  }
  return clamp((n * srl - sr * sl) / Math.max(1e-3, n * srr - sr * sr), -0.4, 0.4);
}

const scaled = (colour: Rgb, factor: number): Rgb => [
  colour[0] * factor,
  colour[1] * factor,
  colour[2] * factor,
];
const mix = (a: Rgb, b: Rgb, share: number): Rgb => [
  clamp(a[0] + share * (b[0] - a[0]), 0, 255),
  clamp(a[1] + share * (b[1] - a[1]), 0, 255),
  clamp(a[2] + share * (b[2] - a[2]), 0, 255),
];
/** How different the chroma of two colours is at the luma of the second, 0..255. */
const distance = (a: Rgb, b: Rgb): number => {
  const same = scaled(a, lumaOf(...b) / Math.max(1, lumaOf(...a)));
  return Math.hypot(same[0] - b[0], same[1] - b[1], same[2] - b[2]);
};
