// What lies on the lips of a portrait: a hand of the skin's own colour, a finger at one side, or the
// tongue.
import { type Lab, labAt, medianColour, quantile } from '../imaging/colour.ts';
import type { RgbImage } from '../imaging/image.ts';
import { dilate, indicesAbove } from '../imaging/mask.ts';
import { MouthFrame } from '../regions/mouth-frame.ts';
import type { Crop } from './crop.ts';
import { outlineMask } from './exposure.ts';
import { type Landmarks, LOWER_INNER, LOWER_OUTER, UPPER_INNER, UPPER_OUTER } from './landmarks.ts';

// Thresholds, in L* and a*, measured on 183 faces of photographs, paintings and renderings.
/** Lips that are no redder than the skin by this, and lighter than it, are not seen. */
const REDDER = { upper: 3, lower: 4 } as const;
/** A lower lip that is redder than the skin by this is seen, whatever its light. */
const RED = 6;
/** The same for the upper lip and for the middle of the lower one, where a finger may lie. */
const RED_MIDDLE = 4;
/** One end of the lower lip is lighter than the rest by this: a finger. Lamps from a side reach 18. */
const FINGER = 22;
/** Opening of a mouth through which a tongue comes, share of its width. */
const TONGUE_OPENING = 0.25;
/** A tongue before the lower lip is less red than the skin, and than the upper lip by this. */
const PALE_TONGUE = 2;
/** Share of a wide opening that a tongue fills. Laughter and speech reach 0.41. */
const TONGUE_SHARE = 0.45;
const WIDE_OPENING = 0.45;
/**
 * In black and white (a* below this) a tongue fills an opening this wide with less light than the
 * upper lip has, where teeth have more, and leaves no dark cavity: its median and its 0.2 quantile in
 * units of the lip's L*. One that is out has 0.88 and 0.63; of ten open mouths none has both.
 */
const GREY = 3;
const GREY_TONGUE = { opening: 0.3, light: [0.75, 0.95], dark: 0.58 } as const;

/** What lies on the lips. */
export interface LipEvidence {
  /** The lips are neither redder nor darker than the skin round them. */
  readonly none: boolean;
  /** Neither the upper lip nor the skin has a colour. */
  readonly grey: boolean;
  /** The lower lip is redder than the skin, as no microphone is that covers it. */
  readonly red: boolean;
  /** The upper lip is, too, and the middle of the lower one: no finger lies across them. */
  readonly redMiddle: boolean;
  /** One end of the lower lip has another light than the rest. */
  readonly finger: boolean;
  /** The tongue is out. */
  readonly tongue: boolean;
}

/**
 * Looks at the lips in five parts.
 * @param opening distance between the inner lips, share of the distance between the inner corners
 */
export function lipEvidence(
  { image, points }: Pick<Crop, 'image' | 'points'>,
  opening: number,
): LipEvidence {
  const frame = new MouthFrame(points);
  const between = (a: readonly number[], b: readonly number[]): ReturnType<typeof outlineMask> =>
    outlineMask(image, points, [...a, ...b.toReversed()]);
  const skin = typical(image, skinRoundLips(image, points, NEAR_LIPS));
  const upper = typical(image, indicesAbove(between(UPPER_OUTER, UPPER_INNER), 0.8));
  const lower = fifthsOf(image, points, frame);
  if (!skin || !upper || lower.length < 5) {
    return { none: false, grey: false, red: false, redMiddle: false, finger: false, tongue: false };
  }
  const middle = lower.slice(1, 4);
  const redness = Math.max(...middle.map(({ a }) => a - skin.a));
  const [left, right] = [lower[0]!.l, lower[4]!.l];
  const inside = between(UPPER_INNER, LOWER_INNER);
  const shown = indicesAbove(inside, 0.9).map((i) => labAt(image, i));
  const tongue = shown.filter(({ l, a }) => a > upper.a - 4 && l > 0.6 * upper.l).length;
  const light = (share: number): number =>
    quantile(
      shown.map(({ l }) => l),
      share,
    ) / Math.max(1, upper.l);
  const grey = Math.max(Math.abs(upper.a), Math.abs(skin.a)) < GREY;
  const greyTongue =
    opening > GREY_TONGUE.opening &&
    grey &&
    light(0.5) > GREY_TONGUE.light[0] &&
    light(0.5) < GREY_TONGUE.light[1] &&
    light(0.2) > GREY_TONGUE.dark;
  return {
    none:
      upper.a - skin.a < REDDER.upper &&
      redness < REDDER.lower &&
      Math.min(...middle.map(({ l }) => l)) > skin.l,
    grey,
    red: redness > RED,
    redMiddle: lower[2]!.a - skin.a > RED_MIDDLE && upper.a - skin.a > RED_MIDDLE,
    finger:
      Math.max(
        left - Math.max(lower[1]!.l, lower[2]!.l),
        right - Math.max(lower[2]!.l, lower[3]!.l),
      ) > FINGER,
    tongue:
      (opening > TONGUE_OPENING && redness < Math.min(0, upper.a - skin.a - PALE_TONGUE)) ||
      (opening > WIDE_OPENING && tongue > TONGUE_SHARE * shown.length) ||
      greyTongue,
  };
}

/** How far from the lips, half widths of the mouth, the skin ends that they are compared with. */
export const NEAR_LIPS = 0.45;

/**
 * The pixels of the skin, or beard, round the lips.
 * @param reach how far off the lips they end, half widths of the mouth
 */
export function skinRoundLips(image: RgbImage, points: Landmarks, reach: number): number[] {
  const { halfWidth } = new MouthFrame(points);
  const lips = outlineMask(image, points, [...UPPER_OUTER, ...LOWER_OUTER.toReversed()]);
  // Outlines are not exact: what touches them may be lip.
  const near = dilate(lips, Math.round(0.12 * halfWidth));
  const far = dilate(lips, Math.round(reach * halfWidth));
  return indicesAbove(far, 0, (i) => near.data[i] === 0);
}

/** Median colours of five parts of the lower lip, from left to right; fewer when a part is empty. */
function fifthsOf(image: RgbImage, points: Landmarks, frame: MouthFrame): Lab[] {
  const lip = outlineMask(image, points, [...LOWER_OUTER, ...LOWER_INNER.toReversed()]);
  const pixels = indicesAbove(lip, 0.8).map((i) => ({
    i,
    x:
      frame.toLocal((i % image.width) + 0.5, Math.floor(i / image.width) + 0.5).x / frame.halfWidth,
  }));
  return [-0.6, -0.3, 0, 0.3, 0.6].flatMap((middle) => {
    const part = pixels.filter(({ x }) => Math.abs(x - middle) < 0.15).map(({ i }) => i);
    return typical(image, part) ?? [];
  });
}

/** The median colour; undefined of no pixels. */
const typical = (image: RgbImage, indices: readonly number[]): Lab | undefined =>
  indices.length === 0 ? undefined : medianColour(image, indices);
