// Whether the mouth of a portrait can be seen: how its lips differ from the skin, and how clear the
// seam between them is.
import { labAt, median, medianColour, patchAt } from '../imaging/colour.ts';
import type { Crop } from './crop.ts';
import { curveThrough, type Point } from '../imaging/curve.ts';
import { clamp, type RgbImage } from '../imaging/image.ts';
import { indicesAbove } from '../imaging/mask.ts';
import { outlineMask } from './exposure.ts';
import { lipEvidence, NEAR_LIPS, skinRoundLips } from './lip-evidence.ts';
import {
  CHEEKS,
  INNER_CORNERS,
  INNER_MIDDLES,
  type Landmarks,
  LEFT_EYE,
  LOWER_INNER,
  LOWER_OUTER,
  px,
  py,
  RIGHT_EYE,
  UPPER_INNER,
  UPPER_OUTER,
} from './landmarks.ts';
import { MouthFrame } from '../regions/mouth-frame.ts';

// Thresholds for a covered mouth, measured on 7 rendered faces in 10 states, 30 photographs and 25
// covered mouths. The colour of lips differs from that of the skin round them by 2 at least (small,
// dark or blurred lips; 6 and more otherwise); cloth and hands stay below 0.4. In black and white
// lips may differ by 0.5 only, but the seam between them is darker than they are by half or more;
// the pleats of a mask reach 0.28.
const NO_LIPS = 1.8;
const FAINT_LIPS = 4;
const FAINT_SEAM = 0.06;
const SURE_SEAM = 0.38;
/** The same between lips of no colour: in black and white, teeth of a smile have 0.31 and more. */
const PLEATS = 0.295;
/**
 * A seam that is this clear on one side and absent in the middle: a finger lies on the lips. Bare
 * mouths with a seam as clear on one side have 0.34 or more in the middle.
 */
const CLEAR_SEAM = 0.4;
const NO_SEAM = 0.05;
/**
 * A seam that is clear on one side and loses this share of contrast in the middle third: a hand or
 * a microphone lies across the lips. Most bare mouths keep 0.44 or more; two keep 0.3, beside a corner
 * in deep shadow, and are known by their red.
 */
const SEAM_SIDES = 0.5;
const BROKEN_SEAM = 0.36;
/**
 * A mouth that is open by this share of its width over a red lower lip is not covered: the teeth of
 * a broad smile are even in the middle, and the corners beside them are dark. In a photograph of a
 * laugh the middle keeps 0.33 of the contrast.
 */
const SMILE = 0.2;
/** No seam anywhere. Bare mouths have 0.19 or more, even blurred ones. */
const ANY_SEAM = 0.04;
/**
 * An object covers the chin: its colour is this far from the cheeks, and CHIN_ALONE further than
 * the skin beside the mouth and under the nose, where a beard would grow.
 */
const CHIN_COLOUR = 22;
const CHIN_ALONE = 8;
/**
 * With such an object, the mouth counts as covered when the lips differ in colour and the lower one is
 * not red, or when the seam is faint or fainter in the middle.
 */
const LIPS_APART = 20;
const PARTLY_SEEN = 0.6;
/** Where the seam is fainter than this everywhere, the picture is soft. */
const SOFT_SEAM = 0.3;
const UNSEEN = 0.15;
/**
 * In the middle of lips that are bare a seam as clear as this is seen, however clear it is beside a
 * beard.
 */
const SEEN = 0.5;
/**
 * Lips of one colour that is not red, with a seam fainter than this, are one thing: a mask or a
 * microphone before both. Of 800 faces six were so, and none showed its mouth; lips as much alike
 * that were seen are red, with a seam of .24 or more. In small pictures (below SMALL pixels for one
 * of the crop) seams are fainter: three of dark lips had .18 and more, twelve masks .16 at most.
 */
const ALIKE = 3;
const ALIKE_SEAM = 0.22;
const SMALL = 0.6;
const SMALL_SEAM = 0.17;
/**
 * Colour distance of the chin from the cheeks that means a mask, unless the lips show that it is a
 * beard.
 */
const OTHER_COLOUR = 22;

/**
 * A seam as faint as this between lips that look like skin: a hand lies before the mouth. Lips that
 * differ from what is round them by BEARD are light ones in a dark beard, where seams are fainter.
 */
const HAND_SEAM = 0.25;
const BEARD = 12;
const BEARD_SEAM = 0.15;
/**
 * In colour, lips that differ from the skin round them by less are bare, unless the seam is fainter
 * than BARE_SEAM: hands before six mouths differ by 3.7 and more, two mouths by 1.9 and 3.
 */
const BARE = 3.3;
const BARE_SEAM = 0.17;

/** Whether the mouth is covered, whether something covers the chin or a lip, and a tongue. */
export function isMouthCovered({
  scale = 1,
  ...head
}: Pick<Crop, 'image' | 'points'> & Partial<Pick<Crop, 'scale'>>): {
  covered: boolean;
  chin: boolean;
  tongue: boolean;
} {
  const { lips, seam, seamSides, seamMiddle, lowerFace, chinAlone, lipsApart } =
    mouthEvidence(head);
  const opening = mouthOpening(head.points);
  const { none, grey, red, redMiddle, finger, tongue } = lipEvidence(head, opening);
  const isBare = redMiddle || (red && opening > SMILE);
  const broken =
    seamSides < ANY_SEAM ||
    (seamSides > CLEAR_SEAM && seamMiddle < NO_SEAM) ||
    (seamSides > SEAM_SIDES && seamMiddle < BROKEN_SEAM * seamSides && !isBare);
  const unseen =
    (seam < PLEATS && lips < NO_LIPS) ||
    (seam < FAINT_SEAM && lips < FAINT_LIPS) ||
    (seam < SURE_SEAM && lips < FAINT_LIPS + 1 && lowerFace > OTHER_COLOUR);
  const leastMiddle =
    isBare && seamSides < SOFT_SEAM
      ? 0
      : Math.min(PARTLY_SEEN * seamSides, isBare ? SEEN : Infinity);
  const behindChinCover =
    chinAlone && ((lipsApart > LIPS_APART && !red) || seamMiddle < leastMiddle || seam < UNSEEN);
  const behindOneThing =
    !grey && !red && lipsApart < ALIKE && seam < (scale < SMALL ? SMALL_SEAM : ALIKE_SEAM);
  return {
    covered:
      broken ||
      behindChinCover ||
      behindOneThing ||
      unseen ||
      (none && seam < handSeam(lips, grey)),
    chin: chinAlone || finger,
    tongue,
  };
}

/** The seam below which a hand lies before lips that look like skin. */
function handSeam(lips: number, grey: boolean): number {
  if (lips < BARE && !grey) {
    return BARE_SEAM;
  }
  return lips > BEARD ? BEARD_SEAM : HAND_SEAM;
}

const distance = (points: Landmarks, [a, b]: readonly [number, number]): number =>
  Math.hypot(px(points, a) - px(points, b), py(points, a) - py(points, b));

/** Distance between the inner lips, share of the distance between the inner corners. */
export const mouthOpening = (points: Landmarks): number =>
  distance(points, INNER_MIDDLES) / distance(points, INNER_CORNERS);

/** The same as a share of the distance between the eyes' outer corners. */
export const mouthHeight = (points: Landmarks): number =>
  distance(points, INNER_MIDDLES) / distance(points, [LEFT_EYE.outer, RIGHT_EYE.outer]);

/** Measures of how clearly the mouth can be seen. Colour distances are CIE 1976. */
interface MouthEvidence {
  /** Colour distance of the lips from the skin or beard round them. */
  readonly lips: number;
  /**
   * How much darker the seam is than the lips, share of their L*, 0..1. Of an open mouth: the
   * contrast inside the opening.
   */
  readonly seam: number;
  /** The same for the clearer side, and for the middle third. */
  readonly seamSides: number;
  readonly seamMiddle: number;
  /** Colour distance of the chin from the cheeks. */
  readonly lowerFace: number;
  /**
   * The chin differs in colour from the cheeks, and the skin round the mouth does not: it is not a
   * beard.
   */
  readonly chinAlone: boolean;
  /** Colour distance of the lower lip from the upper one. */
  readonly lipsApart: number;
}

/** Measures the mouth, on the crop of the head. */
function mouthEvidence({ image, points }: Pick<Crop, 'image' | 'points'>): MouthEvidence {
  const frame = new MouthFrame(points);
  const outer = outlineMask(image, points, [...UPPER_OUTER, ...LOWER_OUTER.toReversed()]);
  const inner = outlineMask(image, points, [...UPPER_INNER, ...LOWER_INNER.toReversed()]);
  const lips = indicesAbove(outer, 0.9, (i) => inner.data[i]! < 0.1);
  const around = skinRoundLips(image, points, NEAR_LIPS);
  const cheeks = CHEEKS.slice(0, 2).flatMap((index) =>
    patchAt(image, px(points, index), py(points, index), 8),
  );
  const chin = BELOW_LIPS.flatMap((index) =>
    patchAt(image, px(points, index), py(points, index), 6),
  );
  const contrasts = seamContrasts(image, points, frame);
  const fromCheek = (indices: readonly number[], radius: number): number => {
    const patch = indices.flatMap((index) =>
      patchAt(image, px(points, index), py(points, index), radius),
    );
    return Math.min(
      ...CHEEKS.slice(0, 2).map((index) =>
        colourDistance(image, patch, patchAt(image, px(points, index), py(points, index), 8)),
      ),
    );
  };
  const chinColour = fromCheek(BELOW_LIPS, 6);
  const bearded = Math.max(
    fromCheek([PHILTRUM], 4),
    ...BESIDE_LIPS.map((index) => fromCheek([index], 6)),
  );
  const lip = (outline: readonly number[], edge: readonly number[]): number[] =>
    indicesAbove(outlineMask(image, points, [...outline, ...edge.toReversed()]), 0.8);
  return {
    chinAlone: chinColour > CHIN_COLOUR && chinColour - bearded > CHIN_ALONE,
    lipsApart: colourDistance(image, lip(UPPER_OUTER, UPPER_INNER), lip(LOWER_OUTER, LOWER_INNER)),
    lips: colourDistance(image, lips, around),
    seam: median(contrasts),
    seamSides: Math.max(median(contrasts.slice(0, 5)), median(contrasts.slice(10))),
    seamMiddle: median(contrasts.slice(5, 10)),
    lowerFace: colourDistance(image, chin, cheeks),
  };
}

// Landmarks on the chin under the lower lip, beside the mouth's corners, and under the nose.
const BELOW_LIPS = [200, 201, 421] as const;
const BESIDE_LIPS = [212, 432] as const;
const PHILTRUM = 164;

/**
 * The contrast of the seam at fifteen places from the left to the right corner: luminance (L*) in
 * the middle of a profile across the inner lips, against its ends; share, 0..1.
 */
function seamContrasts(image: RgbImage, points: Landmarks, frame: MouthFrame): number[] {
  const upper = curveThrough(frame.local(points, UPPER_INNER));
  const lower = curveThrough(frame.local(points, LOWER_INNER));
  const [left, right] = frame.local(points, INNER_CORNERS) as [Point, Point];
  const reach = 0.16 * frame.halfWidth;
  const contrasts: number[] = [];
  for (let k = 3; k <= 17; k++) {
    const u = left.x + ((right.x - left.x) * k) / 20;
    const profile: number[] = [];
    for (let v = upper(u) - reach; v <= lower(u) + reach; v += 0.5) {
      const { x, y } = frame.toPicture(u, v);
      profile.push(
        labAt(
          image,
          clamp(Math.floor(y), 0, image.height - 1) * image.width +
            clamp(Math.floor(x), 0, image.width - 1),
        ).l,
      );
    }
    const ends = (median(profile.slice(0, 6)) + median(profile.slice(-6))) / 2;
    const middle = profile.slice(5, -5);
    contrasts.push(
      Math.max(ends - Math.min(...middle), Math.max(...middle) - Math.min(...middle) - 6) /
        Math.max(5, ends),
    );
  }
  return contrasts;
}

/** Colour distance (CIE 1976) of the medians of two sets of pixels; an empty set counts as black. */
function colourDistance(image: RgbImage, a: readonly number[], b: readonly number[]): number {
  const [p, q] = [medianColour(image, a), medianColour(image, b)];
  return Math.hypot(p.l - q.l, p.a - q.a, p.b - q.b);
}
