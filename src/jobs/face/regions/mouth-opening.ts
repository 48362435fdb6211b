// Whether a mouth is open, and where: by its landmarks and by the colours between the lips.
import { type Lab, labAt, mean, medianColour, medianLab, quantile } from '../imaging/colour.ts';
import { curveThrough, lineThrough, type Point } from '../imaging/curve.ts';
import { dilate, erode, indicesAbove, polygonMask } from '../imaging/mask.ts';
import { clamp, type Plane, plane, type RgbImage, sampleAt } from '../imaging/image.ts';
import {
  LOWER_INNER,
  LOWER_OUTER,
  UPPER_INNER,
  UPPER_OUTER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';
import type { MouthFrame } from './mouth-frame.ts';

/** Where a landmark is. */
export const at = (points: Landmarks, index: number): Point => ({
  x: px(points, index),
  y: py(points, index),
});
/** The outline of the opening by the landmarks. */
export const innerPolygon = (points: Landmarks): Point[] => [
  ...UPPER_INNER.map((i) => at(points, i)),
  ...LOWER_INNER.toReversed().map((i) => at(points, i)),
];
const outerPolygon = (points: Landmarks): Point[] => [
  ...UPPER_OUTER.map((i) => at(points, i)),
  ...LOWER_OUTER.toReversed().map((i) => at(points, i)),
];
/** The part of the lower lip that begins at `share` of its thickness. */
const lowerPolygon = (points: Landmarks, share: number): Point[] => [
  ...LOWER_INNER.map((i, k) => {
    const [inner, outer] = [at(points, i), at(points, LOWER_OUTER[k]!)];
    return { x: inner.x + share * (outer.x - inner.x), y: inner.y + share * (outer.y - inner.y) };
  }),
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
 * Blurred pictures, whose small parts have lost their colour: the sharpness below which that may be,
 * how much redder (a*) than the skin their lips are at least (in black and white and on statues they
 * are not) and at most, and how much lighter (L*) than the lips teeth are. Measured on 30 faces that
 * had been enlarged up to ten times.
 */
const BLURRED = { sharpness: 0.8, redness: [1, 7], lighter: 8 } as const;
/**
 * The same where lips are redder: teeth of a wider gap are a little less red than they and a little
 * lighter. So are those of four of 1400 portraits, all open; closed lips with gloss are redder within.
 */
const PALE_BAND = { gap: 0.09, paler: 2.5, lighter: 5 } as const;
/**
 * Teeth that FaceMesh takes for the upper lip: how much lighter (L*) and less red (a*) than the lip they
 * are, how much lighter than the dark below them, and at how many of five places. Of 844 portraits
 * that were taken for closed one had them, in the middle of a word.
 */
const ABOVE_GAP = { lighter: 8, paler: 6, dark: 12, places: 3 } as const;

/**
 * Whether the mouth is open. A wide gap always is. A narrow one is when it does not show lip: teeth
 * are less red, or of another colour under coloured light, and the cavity is darker.
 * @param sharpness 1 in a sharp picture, less in one that was enlarged or is blurred
 */
export function isOpen(
  image: RgbImage,
  points: Landmarks,
  opening: Plane,
  gap: number,
  sharpness = 1,
): boolean {
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
  const [lip, shown] = [medianLab(lips), medianLab(inside)];
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
  if (hasTeethAbove(image, points)) {
    return true;
  }
  // A seam far darker than the lips also measures as less red: that alone does not mean an open
  // mouth.
  if (gap <= THIN && darker > 15) {
    return false;
  }
  if (
    gap > TOOTH.gap &&
    sharpness < BLURRED.sharpness &&
    isColourLost(lip, skinBeside(image, outer)) &&
    lightBand(image, points) > BLURRED.lighter
  ) {
    return true;
  }
  if (
    gap > PALE_BAND.gap &&
    sharpness < BLURRED.sharpness &&
    lip.a - shown.a > PALE_BAND.paler &&
    lightBand(image, points) > PALE_BAND.lighter
  ) {
    return true;
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

/** Whether the lips of a blurred picture have hardly another colour than the skin. */
const isColourLost = (lip: Lab, skin: Lab): boolean =>
  lip.a - skin.a > BLURRED.redness[0] && lip.a - skin.a < BLURRED.redness[1];

/** Whether teeth lie over a dark gap, in what the landmarks take for the upper lip. */
function hasTeethAbove(image: RgbImage, points: Landmarks): boolean {
  const places = MIDDLE.filter((k) => {
    const upper = labsAlong(image, at(points, UPPER_OUTER[k]!), at(points, UPPER_INNER[k]!));
    const gap = labsAlong(image, at(points, UPPER_INNER[k]!), at(points, LOWER_INNER[k]!));
    const lip = medianLab(upper.slice(1, STEPS / 2));
    const tooth = upper.slice(STEPS / 2).reduce((best, lab) => (lab.l > best.l ? lab : best));
    return (
      tooth.l - lip.l > ABOVE_GAP.lighter &&
      lip.a - tooth.a > ABOVE_GAP.paler &&
      tooth.l - Math.min(...gap.map(({ l }) => l)) > ABOVE_GAP.dark
    );
  });
  return places.length >= ABOVE_GAP.places;
}

/** The colours at STEPS places from one point to another. */
export const labsAlong = (image: RgbImage, from: Point, to: Point): Lab[] =>
  Array.from({ length: STEPS }, (_, step) => {
    const share = (step + 0.5) / STEPS;
    const x = clamp(Math.floor(from.x + share * (to.x - from.x)), 0, image.width - 1);
    const y = clamp(Math.floor(from.y + share * (to.y - from.y)), 0, image.height - 1);
    return labAt(image, y * image.width + x);
  });

/**
 * How much lighter (L*) the lightest line between the lips is than the lips above and below it, in the
 * middle of the mouth.
 */
function lightBand(image: RgbImage, points: Landmarks): number {
  const across = (from: readonly number[], to: readonly number[]): number[] => {
    const lines = MIDDLE.map((k) => labsAlong(image, at(points, from[k]!), at(points, to[k]!)));
    return Array.from({ length: STEPS }, (_, step) => mean(lines.map((line) => line[step]!.l)));
  };
  const above = across(UPPER_OUTER, UPPER_INNER);
  const between = across(UPPER_INNER, LOWER_INNER);
  const below = across(LOWER_INNER, LOWER_OUTER);
  const lightest = Math.max(...between);
  const lightestAt = between.indexOf(lightest);
  return (
    lightest -
    Math.max(
      Math.min(...above, ...between.slice(0, lightestAt + 1)),
      Math.min(...between.slice(lightestAt), ...below),
    )
  );
}
/** Places along the outlines of the lips in the middle of the mouth, and steps across each. */
export const MIDDLE = [3, 4, 5, 6, 7];
const STEPS = 12;

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
 * Share of the lower lip by its landmarks that teeth may cover. What is as pale further down is the
 * lip in another light.
 */
const CERTAIN = 0.3;

/**
 * The opening as the colours show it, because the contour of FaceMesh may follow the edge of the
 * teeth or miss the corners. It grows from the contour over all that is not lip, up to the outline
 * of the lips.
 * @param sharpness as of isOpen
 * @returns mask, 0..1
 */
export function wholeOpening(
  image: RgbImage,
  points: Landmarks,
  seen: Plane,
  sharpness = 1,
): Plane {
  const { width, height } = image;
  const outline = polygonMask(width, height, outerPolygon(points));
  const within = erode(outline, 1);
  // The dark corners may lie a little outside the contour, and teeth of a broad smile: there they
  // count where they are far from the skin.
  const beyond = dilate(outline, 3);
  // Pixels that are certainly lip: just inside the outline.
  const inner = erode(outline, 3);
  const sample = indicesAbove(within, 0.9, (i) => inner.data[i]! < 0.9 && seen.data[i]! < 0.1);
  const samples = sample.map((i) => labAt(image, i));
  const lip = medianLab(samples);
  const shown = medianColour(image, indicesAbove(seen, 0.9));
  const isBare =
    quantile(
      samples.map(({ a }) => a),
      0.25,
    ) > REDDER_THAN_HAIR;
  const darker = isBare ? Math.min(DARKER, DARK_SHARE * lip.l) : DARKER;
  const byTint = shown.a > lip.a - PALER && isTinted(lip, shown);
  const [tintA, tintB] = [shown.a - lip.a, shown.b - lip.b];
  const lower = polygonMask(width, height, lowerPolygon(points, CERTAIN));
  const skin = skinBeside(image, outline);
  const lost = sharpness < BLURRED.sharpness && isColourLost(lip, skin);
  const lighter = lip.l + (lost ? BLURRED.lighter : LIGHTER);
  const light = lightAlong(
    samples,
    sample.map((i) => i % width),
  );
  const belongs = (i: number): boolean => {
    const { l, a, b } = labAt(image, i);
    const lit = lip.l + light(i % width);
    const tinted =
      byTint && (a - lip.a) * tintA + (b - lip.b) * tintB > 0.5 * (tintA ** 2 + tintB ** 2);
    const pale = lip.a > COLOURLESS && !lost ? a < lip.a - PALER : l > lighter;
    return within.data[i]! > 0.9
      ? tinted || (pale && lower.data[i]! < 0.5) || (l < lit - darker && near(i))
      : beyond.data[i]! > 0.1 &&
          (l < lit - 1.3 * darker ||
            (l > skin.l + TOOTH_BEYOND.lighter && a < skin.a - TOOTH_BEYOND.paler));
  };
  const near = darkReach(points, seen);
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
 * Height of the contour, in widths of the mouth, up to which what is dark in the middle of the mouth
 * belongs to the opening only beside it, within so many pixels and this share of that height: the upper
 * lip of a closed mouth gets darker towards its seam.
 */
const NARROW = { gap: 0.08, pixels: 2, share: 0.4 } as const;

/** Where dark pixels belong to the opening. */
function darkReach(points: Landmarks, seen: Plane): (i: number) => boolean {
  const [upper, lower] = [at(points, UPPER_INNER[5]), at(points, LOWER_INNER[5])];
  const [left, right] = [at(points, UPPER_INNER[0]), at(points, UPPER_INNER[10])];
  const gap = Math.hypot(lower.x - upper.x, lower.y - upper.y);
  const width = Math.hypot(right.x - left.x, right.y - left.y);
  if (gap > NARROW.gap * width) {
    return () => true;
  }
  const near = dilate(seen, Math.round(NARROW.pixels + NARROW.share * gap));
  return (i) =>
    near.data[i]! > 0.5 || Math.abs((i % seen.width) + 0.5 - upper.x) > 0.3 * Math.max(1, width);
}

/** How much lighter and less red than the skin beside the lips teeth are beyond their contour. */
const TOOTH_BEYOND = { lighter: 4, paler: 9 } as const;

/** The colour of the skin round the lips. */
function skinBeside(image: RgbImage, outline: Plane): Lab {
  const [near, far] = [dilate(outline, 5), dilate(outline, 11)];
  return medianColour(
    image,
    indicesAbove(far, 0.5, (i) => near.data[i]! < 0.1),
  );
}

/** Most by which lips are lighter in their middle than at a corner because of where the light is, L*. */
const ONE_SIDED = 14;

/** How much lighter than in the middle the lips are at `x`: the light may fall from one side. */
function lightAlong(lips: readonly Lab[], xs: readonly number[]): (x: number) => number {
  const { slope, middle: centre } = lineThrough(lips.map(({ l }, k) => ({ x: xs[k]!, y: l })));
  return (x) => clamp(slope * (x - centre.x), -ONE_SIDED, ONE_SIDED);
}

/**
 * Moves the inner-lip landmarks outwards to the edge of the opening; never inwards, never over the
 * outer contour.
 */
export function alongOpening(points: Landmarks, frame: MouthFrame, opening: Plane): Landmarks {
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
