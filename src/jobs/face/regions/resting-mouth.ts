// Brings the lower face to rest: closes an open mouth, relaxes a smile, and makes the landmarks agree
// with the picture.
import { lumaAt, lumaOf, median } from '../imaging/colour.ts';
import { curveThrough, type Point } from '../imaging/curve.ts';
import { blur, dilate, polygonMask } from '../imaging/mask.ts';
import { clamp, type Plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { inpaint } from '../imaging/inpaint.ts';
import {
  INNER_CORNERS,
  INNER_MIDDLES,
  LOWER_INNER,
  UPPER_INNER,
  type EyeIndices,
  type Landmarks,
  LEFT_EYE,
  px,
  py,
  RIGHT_EYE,
} from '../detect/landmarks.ts';
import { isLineArt } from '../detect/line-art.ts';
import { noiseSource } from '../imaging/noise.ts';
import { MouthFrame } from './mouth-frame.ts';
import { alongOpening, innerPolygon, isOpen, wholeOpening } from './mouth-opening.ts';
import { snapToLipSeam } from './lip-seam.ts';
import { snapToMoustache } from './moustache.ts';
import { colourLips, lipColours } from './lip-colour.ts';
import { snapToCorners, snapToOutline } from './lip-outline.ts';
import { clearLipRim } from './lip-rim.ts';
import { closeDrawnMouth } from './drawn-mouth.ts';
import { drawLipShadows } from './lip-shadows.ts';
import { SmileCloser } from './smile-closer.ts';
import { softenFolds } from './smile-folds.ts';
import type { Rgb } from '../imaging/patch.ts';
import { withTeethFound } from './teeth-as-lip.ts';
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
 * @param sharpness below 1 the crop was enlarged or is blurred, and what is drawn must be as soft
 * @param isDrawn whether it is line art
 */
export function restMouth(
  image: RgbImage,
  given: Landmarks,
  sharpness = 1,
  isDrawn = isLineArt(image, given),
): RestingMouth {
  const found = withTeethFound(image, given);
  const frame = new MouthFrame(found);
  const seen = polygonMask(image.width, image.height, innerPolygon(found));
  const [upper, lower] = frame.local(found, INNER_MIDDLES);
  const gap = Math.max(0, lower!.y - upper!.y) / (2 * frame.halfWidth);
  const smile = smileOf(found, frame);
  if (isDrawn) {
    return restLineArt(image, found, frame, { gap, smile, seen });
  }
  if (!isOpen(image, found, seen, gap, sharpness)) {
    const points = snapToMoustache(image, snapToLipSeam(image, found, frame), frame);
    const relax = RELAX_CLOSED * smile;
    if (relax < LEAST_RELAX) {
      return { image, points, opening: undefined, gap, smile, raised: 0 };
    }
    const narrow = narrowing(widthOf(frame));
    const closer = new SmileCloser(points, frame, { relax, narrow, smile });
    const relaxed = closer.warp(image, image, image);
    const moved = closer.move(points);
    softenFolds(relaxed, moved, relax);
    completeUpperLip(relaxed, moved, lowerLip(relaxed, moved), smile);
    return { image: relaxed, points: moved, opening: undefined, gap, smile, raised: relax };
  }
  const wide = snapToCorners(image, found, frame);
  const opening = wholeOpening(image, wide, seen, sharpness);
  const outlined = snapToOutline(image, wide, frame, opening);
  const open = new MouthFrame(outlined);
  const points = alongOpening(outlined, open, opening);
  const relax = Math.min(1, Math.max(gap / WIDE_GAP, smile));
  const kept = smile * smilingEyes(found);
  const narrow = (1 - STAYS_WIDE * kept) * narrowing(widthOf(open));
  const closer = new SmileCloser(points, open, { relax, narrow, smile, kept });
  const closed = closer.warp(image, ...continuedLips(image, points, open, opening));
  const moved = closer.move(points);
  const colours = lipColours(image, points, dilate(opening, 2));
  const softness = Math.max(1, 1 / sharpness);
  if (colours) {
    const amount = Math.max(smile, smoothstep(...COLOURED_GAP, gap));
    colourLips(closed, moved, colours, amount, softness);
    clearLipRim(closed, moved, colours.lower, amount);
  }
  closer.drawSeam(closed, softness, darkSeam(image, seen, colours?.lower, gap));
  const amount = Math.max(smile, 0.5 * relax);
  softenFolds(closed, moved, amount, Math.max(amount, smoothstep(...FOLDED, smile)));
  drawLipShadows(closed, moved, Math.max(smile, smoothstep(...COLOURED_GAP, gap)), softness);
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

/** Gap of an open mouth in a drawing, widths of the mouth. Between closed lips lines have less. */
const DRAWN_OPEN = 0.12;

/** The same for a drawing in lines: it gets one line between the lips, and no shades. */
function restLineArt(
  image: RgbImage,
  given: Landmarks,
  frame: MouthFrame,
  { gap, smile, seen }: { gap: number; smile: number; seen: Plane },
): RestingMouth {
  if (gap < DRAWN_OPEN) {
    const points = snapToLipSeam(image, given, frame);
    return { image, points, opening: undefined, gap, smile, raised: 0 };
  }
  const relax = Math.min(1, Math.max(gap / WIDE_GAP, smile));
  const shape = { relax, smile, narrow: narrowing(widthOf(frame)) };
  const closed = closeDrawnMouth(image, given, frame, shape);
  return { ...closed, opening: seen, contour: seen, gap, smile: Math.max(smile, 0.4), raised: 0 };
}

/**
 * A smile that is closed in the portrait is relaxed by this much: the person's expression stays in
 * part.
 */
const RELAX_CLOSED = 0.6;
const LEAST_RELAX = 0.06;
/** Widths of the mouth: a gap of a broad smile. */
const WIDE_GAP = 0.18;
/** How broad an open smile is whose folds are left, and one whose folds all go. */
const FOLDED: readonly [number, number] = [0, 0.45];
/** Gaps in widths of the mouth: lips that part a little keep their colours. */
const COLOURED_GAP: readonly [number, number] = [0.06, 0.15];
/**
 * Width of a mouth at rest in eye distances, and by how much a smile's may shrink. Measured: 0.52 to
 * 0.58 in 13 portraits at rest. One person's mouth is 0.57 at rest and 0.71 in a broad smile, another's
 * 0.67 when it hardly smiles and 0.83: part of a broad mouth is its own. Cheeks and eyes keep some of
 * a smile; a mouth as narrow as the narrowest at rest looks like a pout between them.
 */
const NEUTRAL_WIDTH = 0.57;
const NARROWED = 0.5;
const MOST_NARROW = 0.2;
/** Opening of an eye, share of its width: calm, and narrowed by a smile. */
const NARROWED_EYES: readonly [number, number] = [0.355, 0.305];
/**
 * Share by which a mouth is narrowed less below eyes that go on smiling. Of 11 portraits that smile
 * a judge preferred it in 7, and none as narrow as others.
 */
const STAYS_WIDE = 0.65;

// Lift of the corners in half widths of the mouth, and width of the mouth in eye distances: the
// values where a smile begins and where it is broad. Measured on 25 portraits: faces at rest have a
// lift of 0.21 and a width of 0.59 at most; a broad smile has a lift of 0.3 or a width of 0.65.
const LIFT: readonly [number, number] = [0.18, 0.32];
const WIDTH: readonly [number, number] = [0.6, 0.7];

/** Gaps, in widths of the mouth: a dark line between lips that hardly part, and an opening. */
const DARK_LINE: readonly [number, number] = [0.09, 0.05];
/** Its luma in units of that of the lower lip: faint, and black. */
const DARK: readonly [number, number] = [0.65, 0.25];

/** How much lips that hardly part have a dark line between them, which they keep, 0..1. */
function darkSeam(image: RgbImage, seen: Plane, lip: Rgb | undefined, gap: number): number {
  if (!lip || gap > DARK_LINE[0]) {
    return 0;
  }
  const inside: number[] = [];
  for (let i = 0; i < seen.data.length; i++) {
    if (seen.data[i]! > 0.5) {
      inside.push(lumaAt(image, i));
    }
  }
  return (
    smoothstep(...DARK_LINE, gap) *
    smoothstep(...DARK, median(inside) / Math.max(1, lumaOf(...lip)))
  );
}

/** How broad the smile is, 0..1. */
function smileOf(points: Landmarks, frame: MouthFrame): number {
  const [left, right, upper, lower] = frame.local(points, [...INNER_CORNERS, ...INNER_MIDDLES]) as [
    Point,
    Point,
    Point,
    Point,
  ];
  const lift = ((upper.y + lower.y) / 2 - (left.y + right.y) / 2) / frame.halfWidth;
  return Math.max(smoothstep(...LIFT, lift), smoothstep(...WIDTH, widthOf(frame)));
}

/**
 * How much narrower a mouth is at rest, share of its width in a smile.
 * @param width in distances between the outer corners of the eyes
 */
export const narrowing = (width: number): number =>
  Math.min(MOST_NARROW, 1 - Math.max(1, width / NEUTRAL_WIDTH) ** -NARROWED);

/**
 * How much the eyes smile, 0..1: eyes that a smile narrows stay so in part, and a mouth that does not
 * smile at all contradicts them.
 */
export function smilingEyes(points: Landmarks): number {
  const opening = ({ upper, lower, outer, inner }: EyeIndices): number =>
    span(points, upper[3]!, lower[3]!) / Math.max(1, span(points, outer, inner));
  return smoothstep(...NARROWED_EYES, Math.min(opening(LEFT_EYE), opening(RIGHT_EYE)));
}

const span = (points: Landmarks, from: number, to: number): number =>
  Math.hypot(px(points, to) - px(points, from), py(points, to) - py(points, from));

/** Width of the mouth in distances between the outer corners of the eyes. */
const widthOf = ({ halfWidth, eyeDistance }: MouthFrame): number => (2 * halfWidth) / eyeDistance;

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
  const grain = grainOf(image, frame);
  addGrain(above, unknown, grain, 1);
  addGrain(below, unknown, grain, 2);
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

/** Most grain that is drawn, luma. */
const COARSEST = 6;

/** The grain of the picture round the mouth: the median difference of a pixel from its neighbours. */
function grainOf(image: RgbImage, frame: MouthFrame): number {
  const found: number[] = [];
  const reach = 1.6 * frame.halfWidth;
  const [left, top] = [Math.floor(frame.x - reach), Math.floor(frame.y - reach)];
  for (let y = Math.max(1, top); y < Math.min(image.height - 1, frame.y + reach); y += 2) {
    for (let x = Math.max(1, left); x < Math.min(image.width - 1, frame.x + reach); x += 2) {
      const i = y * image.width + x;
      const near = [i - 1, i + 1, i - image.width, i + image.width];
      found.push(
        Math.abs(lumaAt(image, i) - near.reduce((sum, j) => sum + lumaAt(image, j), 0) / 4),
      );
    }
  }
  return Math.min(COARSEST, median(found));
}

/** Draws grain in the mask `where`: what was inpainted is smooth. */
function addGrain(image: RgbImage, where: Plane, grain: number, seed: number): void {
  const noise = noiseSource(seed);
  for (let i = 0; i < where.data.length; i++) {
    if (where.data[i]! > 0.15) {
      // Its median difference from its neighbours is that of the picture.
      const value = 1.9 * grain * noise();
      for (let c = i * 3; c < i * 3 + 3; c++) {
        image.data[c] = clamp(image.data[c]! + value + 0.5, 0, 255);
      }
    }
  }
}
