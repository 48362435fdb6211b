// Brings the lower face to rest: closes an open mouth, relaxes a smile, and makes the landmarks agree
// with the picture.
import { type Lab, labAt, lumaAt, lumaOf, median, quantile } from '../imaging/colour.ts';
import { curveThrough, type Point } from '../imaging/curve.ts';
import { blur, dilate, erode, polygonMask } from '../imaging/mask.ts';
import { clamp, type Plane, plane, type RgbImage, sampleAt, smoothstep } from '../imaging/image.ts';
import { inpaint } from '../imaging/inpaint.ts';
import {
  INNER_CORNERS,
  INNER_MIDDLES,
  LEFT_EYE,
  LOWER_INNER,
  LOWER_OUTER,
  RIGHT_EYE,
  UPPER_INNER,
  UPPER_OUTER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';
import { MouthFrame } from './mouth-frame.ts';
import { snapToLipSeam } from './lip-seam.ts';
import { snapToMoustache } from './moustache.ts';
import { colourLips, lipColours } from './lip-colour.ts';
import { clearLipRim } from './lip-rim.ts';
import { SmileCloser } from './smile-closer.ts';
import { softenFolds } from './smile-folds.ts';
import type { Rgb } from '../imaging/patch.ts';
import { completeUpperLip, lowerLip } from './upper-lip.ts';

/** The portrait at rest, and what its mouth was like before. */
export interface RestingMouth {
  /** The picture with closed lips. */
  readonly image: RgbImage;
  /** The landmarks at rest. The inner contours of both lips coincide in the seam. */
  readonly points: Landmarks;
  /**
   * Where the mouth was open in the given picture, 0..1 per pixel; undefined when it was closed.
   */
  readonly opening: Plane | undefined;
  /** The same as the landmarks alone show it. */
  readonly contour?: Plane;
  /** Height of the opening in units of the width of the mouth. */
  readonly gap: number;
  /** How broad the smile was, 0..1. Lips stretched by a smile are rounded less. */
  readonly smile: number;
  /** How far the smile raised the cheeks and the lower lids, 0..1. They still are raised. */
  readonly raised: number;
}

/**
 * Closes the mouth of a cropped head.
 * @param scale source pixels per pixel of the crop. Below 1 the crop was enlarged, and what is
 * drawn must be as soft as the crop.
 */
export function restMouth(image: RgbImage, found: Landmarks, scale = 1): RestingMouth {
  const frame = new MouthFrame(found);
  const seen = polygonMask(image.width, image.height, innerPolygon(found));
  const [upper, lower] = frame.local(found, INNER_MIDDLES);
  const gap = Math.max(0, lower!.y - upper!.y) / (2 * frame.halfWidth);
  const smile = smileOf(found, frame);
  const narrow = clamp(1 - NEUTRAL_WIDTH / widthOf(found, frame), LEAST_NARROW, MOST_NARROW);
  if (!isOpen(image, found, seen, gap)) {
    const points = snapToMoustache(image, snapToLipSeam(image, found, frame), frame);
    const relax = RELAX_CLOSED * smile;
    if (relax < LEAST_RELAX) {
      return { image, points, opening: undefined, gap, smile, raised: 0 };
    }
    const closer = new SmileCloser(points, frame, { relax, narrow, smile });
    const relaxed = closer.warp(image, image, image);
    const moved = closer.move(points);
    softenFolds(relaxed, moved, relax);
    completeUpperLip(relaxed, moved, lowerLip(relaxed, moved), smile);
    return { image: relaxed, points: moved, opening: undefined, gap, smile, raised: relax };
  }
  const opening = wholeOpening(image, found, seen);
  const points = alongOpening(found, frame, opening);
  const relax = Math.min(1, Math.max(gap / WIDE_GAP, smile));
  const closer = new SmileCloser(points, frame, { relax, narrow, smile });
  const closed = closer.warp(image, ...continuedLips(image, points, frame, opening));
  const moved = closer.move(points);
  const colours = lipColours(image, points, dilate(opening, 2));
  const softness = Math.max(1, 1 / scale);
  if (colours) {
    const amount = Math.max(smile, smoothstep(...COLOURED_GAP, gap));
    colourLips(closed, moved, colours, amount, softness);
    clearLipRim(closed, moved, colours.lower, amount);
  }
  closer.drawSeam(closed, softness);
  softenFolds(closed, moved, Math.max(smile, 0.5 * relax));
  return {
    image: closed,
    points: moved,
    opening,
    contour: seen,
    gap,
    smile: Math.max(smile, 0.4),
    raised: smile,
  };
}

/**
 * A smile that is closed in the portrait is relaxed by this much: the person's expression stays in
 * part.
 */
const RELAX_CLOSED = 0.6;
const LEAST_RELAX = 0.06;
/** Widths of the mouth: a gap of a broad smile. */
const WIDE_GAP = 0.18;
/** Gaps in widths of the mouth: lips that part a little keep their colours. */
const COLOURED_GAP: readonly [number, number] = [0.06, 0.15];
/** Width of a mouth at rest in eye distances, and by how much a smile's may shrink. */
const NEUTRAL_WIDTH = 0.6;
const LEAST_NARROW = 0.05;
const MOST_NARROW = 0.12;

// Lift of the corners in half widths of the mouth, and width of the mouth in eye distances: the
// values where a smile begins and where it is broad. Measured on 25 portraits: faces at rest have a
// lift of 0.21 and a width of 0.59 at most; a broad smile has a lift of 0.3 or a width of 0.65.
const LIFT: readonly [number, number] = [0.18, 0.32];
const WIDTH: readonly [number, number] = [0.6, 0.7];

/** How broad the smile is, 0..1. */
function smileOf(points: Landmarks, frame: MouthFrame): number {
  const [left, right, upper, lower] = frame.local(points, [...INNER_CORNERS, ...INNER_MIDDLES]) as [
    Point,
    Point,
    Point,
    Point,
  ];
  const lift = ((upper.y + lower.y) / 2 - (left.y + right.y) / 2) / frame.halfWidth;
  return Math.max(smoothstep(...LIFT, lift), smoothstep(...WIDTH, widthOf(points, frame)));
}

/** Width of the mouth in distances between the outer corners of the eyes. */
function widthOf(points: Landmarks, frame: MouthFrame): number {
  const [a, b] = frame.local(points, [LEFT_EYE.outer, RIGHT_EYE.outer]) as [Point, Point];
  return (2 * frame.halfWidth) / Math.max(1, Math.hypot(b.x - a.x, b.y - a.y));
}

const at = (points: Landmarks, index: number): Point => ({
  x: px(points, index),
  y: py(points, index),
});
const innerPolygon = (points: Landmarks): Point[] => [
  ...UPPER_INNER.map((i) => at(points, i)),
  ...LOWER_INNER.toReversed().map((i) => at(points, i)),
];
const outerPolygon = (points: Landmarks): Point[] => [
  ...UPPER_OUTER.map((i) => at(points, i)),
  ...LOWER_OUTER.toReversed().map((i) => at(points, i)),
];

/** Greatest height of the dark seam between closed lips, in widths of the mouth. */
const THIN = 0.05;

/**
 * Black and white: how much lighter than the lips the teeth are (L*; gloss between closed lips is
 * less), and the least gap that can be open (in widths of the mouth). Measured on 60 portraits
 * turned grey.
 */
const GREY_TEETH = 7;
const GREY_GAP = 0.055;

/**
 * A gap that shows teeth in a part of it alone: how much lighter (L*) and less red (a*) than the lips
 * a tooth is, the least share of the gap, and the least gap in widths of the mouth.
 */
const TOOTH = { lighter: 5, paler: 9, share: 0.2, gap: 0.06 } as const;

/**
 * Whether the mouth is open. A wide gap always is. A narrow one is when it does not show lip: teeth
 * are less red, or of another colour under coloured light, and the cavity is darker.
 */
function isOpen(image: RgbImage, points: Landmarks, opening: Plane, gap: number): boolean {
  if (gap > 0.12) {
    return true;
  }
  if (gap < 0.035) {
    return false;
  }
  const inside: Lab[] = [];
  const lips: Lab[] = [];
  const outer = polygonMask(image.width, image.height, outerPolygon(points));
  const near = dilate(opening, 2);
  for (let i = 0; i < opening.data.length; i++) {
    if (opening.data[i]! > 0.9) {
      inside.push(labAt(image, i));
    } else if (outer.data[i]! > 0.9 && near.data[i] === 0) {
      lips.push(labAt(image, i));
    }
  }
  if (inside.length < 12 || lips.length < 12) {
    return gap > 0.08;
  }
  const [lip, shown] = [middle(lips), middle(inside)];
  const darker = lip.l - shown.l;
  const grey = Math.max(Math.abs(lip.a), Math.abs(shown.a)) < COLOURLESS;
  if (
    grey &&
    gap > GREY_GAP &&
    (gap > 0.09 ||
      darker > 14 ||
      quantile(
        inside.map(({ l }) => l),
        0.9,
      ) -
        lip.l >
        GREY_TEETH)
  ) {
    return true;
  }
  // A seam far darker than the lips also measures as less red: that alone does not mean an open
  // mouth.
  if (gap <= THIN && darker > 15) {
    return false;
  }
  const teeth = inside.filter(({ l, a }) => l > lip.l + TOOTH.lighter && a < lip.a - TOOTH.paler);
  return (
    (gap > TOOTH.gap && teeth.length > TOOTH.share * inside.length) ||
    lip.a - shown.a > 5 ||
    darker > (gap > 0.06 ? 14 : 22) ||
    -darker > LIGHTER ||
    isTinted(lip, shown)
  );
}

const middle = (labs: readonly Lab[]): Lab => ({
  l: median(labs.map(({ l }) => l)),
  a: median(labs.map(({ a }) => a)),
  b: median(labs.map(({ b }) => b)),
});

/**
 * Whether teeth show under coloured light: about as light as the lips, and clearly of another
 * colour.
 */
const isTinted = (lip: Lab, shown: Lab): boolean =>
  lip.l - shown.l < 8 && Math.hypot(lip.a - shown.a, lip.b - shown.b) > 12;

// Inside the outline of the lips, a pixel that is less red (a*) or darker (L*) than the lips by
// this much is not lip.
const PALER = 7;
const DARKER = 22;
/**
 * The same for dark lips, share of their L*. Not where a moustache covers them: three quarters of the
 * pixels of bare lips have more than this a*.
 */
const DARK_SHARE = 0.38;
const REDDER_THAN_HAIR = 15;
/** Black and white: teeth are this much lighter than the lips, L*. */
const LIGHTER = 15;
/** Below this |a*| of lips a picture counts as black and white. */
const COLOURLESS = 6;

/**
 * The opening as the colours show it, because the contour of FaceMesh may follow the edge of the
 * teeth or miss the corners. It grows from the contour over all that is not lip, up to the outline
 * of the lips.
 * @returns mask, 0..1
 */
function wholeOpening(image: RgbImage, points: Landmarks, seen: Plane): Plane {
  const { width, height } = image;
  const outline = polygonMask(width, height, outerPolygon(points));
  const within = erode(outline, 1);
  // The dark corners may lie a little outside the contour. Teeth do not; skin there is as pale as
  // teeth.
  const beyond = dilate(outline, 3);
  // Pixels that are certainly lip: just inside the outline.
  const inner = erode(outline, 3);
  const sample: number[] = [];
  for (let i = 0; i < outline.data.length; i++) {
    if (within.data[i]! > 0.9 && inner.data[i]! < 0.9 && seen.data[i]! < 0.1) {
      sample.push(i);
    }
  }
  const samples = sample.map((i) => labAt(image, i));
  const lip = middle(samples);
  const shown = middle(
    Array.from(seen.data.keys())
      .filter((i) => seen.data[i]! > 0.9)
      .map((i) => labAt(image, i)),
  );
  const isBare =
    quantile(
      samples.map(({ a }) => a),
      0.25,
    ) > REDDER_THAN_HAIR;
  const darker = isBare ? Math.min(DARKER, DARK_SHARE * lip.l) : DARKER;
  const byTint = shown.a > lip.a - PALER && isTinted(lip, shown);
  const [tintA, tintB] = [shown.a - lip.a, shown.b - lip.b];
  const belongs = (i: number): boolean => {
    const { l, a, b } = labAt(image, i);
    const tinted =
      byTint && (a - lip.a) * tintA + (b - lip.b) * tintB > 0.5 * (tintA ** 2 + tintB ** 2);
    const pale = tinted || (lip.a > COLOURLESS ? a < lip.a - PALER : l > lip.l + LIGHTER);
    return within.data[i]! > 0.9
      ? pale || l < lip.l - darker
      : beyond.data[i]! > 0.1 && l < lip.l - 1.3 * darker;
  };
  const opening = plane(width, height);
  opening.data.set(seen.data);
  const stack: number[] = [];
  for (let i = 0; i < seen.data.length; i++) {
    if (seen.data[i]! > 0.5) {
      stack.push(i);
    }
  }
  for (let i = stack.pop(); i !== undefined; i = stack.pop()) {
    for (const j of [i - 1, i + 1, i - width, i + width]) {
      if (opening.data[j]! > 0.5 || !belongs(j)) {
        continue;
      }
      opening.data[j] = 1;
      stack.push(j);
    }
  }
  return opening;
}

/**
 * Moves the inner-lip landmarks outwards to the edge of the opening; never inwards, never over the
 * outer contour.
 */
function alongOpening(points: Landmarks, frame: MouthFrame, opening: Plane): Landmarks {
  const moved = points.slice();
  for (const [inner, outer, direction] of [
    [UPPER_INNER, UPPER_OUTER, -1],
    [LOWER_INNER, LOWER_OUTER, 1],
  ] as const) {
    const border = curveThrough(frame.local(points, outer));
    const shifts = frame.local(points, inner).map(({ x, y }) => {
      const limit = 0.8 * Math.abs(border(x) - y);
      let shift = 0;
      for (let d = 0; d <= limit; d += 0.5) {
        const { x: sx, y: sy } = frame.toPicture(x, y + direction * d);
        if (sampleAt(opening, sx - 0.5, sy - 0.5) > 0.5) {
          shift = d;
        }
      }
      return shift;
    });
    inner.slice(1, -1).forEach((index, k) => {
      const near = [shifts[k]!, shifts[k + 1]!, shifts[k + 2]!].toSorted((a, b) => a - b);
      const { x, y } = frame.toLocal(px(points, index), py(points, index));
      const to = frame.toPicture(x, y + direction * near[1]!);
      moved[index * 3] = to.x;
      moved[index * 3 + 1] = to.y;
    });
  }
  return moved;
}

/**
 * Inpaints the opening twice: once as a continuation of the upper lip, once of the lower lip.
 * Neither takes colour from the other lip or from the teeth.
 * @returns the picture with the upper and with the lower lip continued
 */
function continuedLips(
  image: RgbImage,
  points: Landmarks,
  frame: MouthFrame,
  opening: Plane,
): [RgbImage, RgbImage] {
  const { width, height } = image;
  const unknown = dilate(opening, 2);
  const [upper, lower] = [frame.local(points, UPPER_INNER), frame.local(points, LOWER_INNER)];
  const middle = curveThrough(
    upper.map(({ x, y }, i) => ({ x: (x + lower[i]!.x) / 2, y: (y + lower[i]!.y) / 2 })),
  );
  const fill = (side: number): RgbImage => {
    const known = Uint8Array.from(unknown.data, (value) => (value > 0.15 ? 0 : 1));
    for (let i = 0; i < known.length; i++) {
      const { x, y } = frame.toLocal((i % width) + 0.5, Math.floor(i / width) + 0.5);
      if (Math.abs(x) < frame.halfWidth && (y - middle(x)) * side < 0) {
        known[i] = 0;
      }
    }
    const filled: RgbImage = { width, height, data: image.data.slice() };
    inpaint(filled, known);
    return filled;
  };
  const [above, below] = [fill(-1), fill(1)];
  redden(above, blur(unknown, 1.5), lowerLip(image, points, unknown));
  return [above, below];
}

/**
 * Share of the lower lip's colour in the inner edge of the upper lip. A smile makes the upper lip
 * so thin that skin or a moustache would be continued instead.
 */
const UPPER_RED = 0.65;
/** Largest luma of that edge, share of the luma of the lower lip: the edge faces down. */
const UPPER_LIGHT = 0.94;

/** Blends the colour of the lower lip into the mask `where`. */
function redden(image: RgbImage, where: Plane, lip: Rgb | undefined): void {
  if (!lip) {
    return;
  }
  const { data } = image;
  const light = lumaOf(...lip);
  for (let i = 0; i < where.data.length; i++) {
    const share = UPPER_RED * Math.min(1, where.data[i]!);
    if (share === 0) {
      continue;
    }
    const scale = Math.min(lumaAt(image, i), UPPER_LIGHT * light) / Math.max(1, light);
    for (let c = 0; c < 3; c++) {
      data[i * 3 + c] = data[i * 3 + c]! + share * (lip[c]! * scale - data[i * 3 + c]!) + 0.5;
    }
  }
}
