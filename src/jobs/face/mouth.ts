// Brings the mouth to rest: lips together, and landmarks that agree with the picture.
import { labAt, median } from './colour.ts';
import { curveThrough, dilate, erode, polygonMask, type Point } from './curve.ts';
import { type Plane, plane, type RgbImage, sampleAt } from './image.ts';
import { fillUnknown } from './inpaint.ts';
import { LOWER_INNER, LOWER_OUTER, UPPER_INNER, UPPER_OUTER, type Landmarks, px, py } from './landmarks.ts';
import { MouthFrame } from './mouth-frame.ts';
import { onSeam } from './seam.ts';
import { SmileCloser } from './smile.ts';

export interface RestingMouth {
  /** The picture with the lips together. */
  readonly image: RgbImage;
  /** The inner-lip points of both lips coincide, in the seam. */
  readonly points: Landmarks;
  /** Where the mouth was open in the picture given (0..1), or null when it was closed. */
  readonly opening: Plane | null;
  /** Height of that opening in units of the mouth's width. */
  readonly gap: number;
}

export function restMouth(image: RgbImage, found: Landmarks): RestingMouth {
  const frame = new MouthFrame(found);
  const seen = polygonMask(image.width, image.height, innerPolygon(found));
  const gap = Math.max(0, frame.local(found, [14])[0]!.y - frame.local(found, [13])[0]!.y) / (2 * frame.halfWidth);
  if (!isOpen(image, found, seen, gap)) return { image, points: onSeam(image, found, frame), opening: null, gap };
  const opening = wholeOpening(image, found, seen);
  const points = alongOpening(found, frame, opening);
  const closer = new SmileCloser(points, frame, gap);
  const closed = closer.warp(withLipsOver(image, opening));
  closer.drawSeam(closed);
  return { image: closed, points: closer.move(points), opening, gap };
}

const at = (points: Landmarks, index: number): Point => ({ x: px(points, index), y: py(points, index) });
const innerPolygon = (points: Landmarks): Point[] => [...UPPER_INNER.map((i) => at(points, i)), ...LOWER_INNER.toReversed().map((i) => at(points, i))];
const outerPolygon = (points: Landmarks): Point[] => [...UPPER_OUTER.map((i) => at(points, i)), ...LOWER_OUTER.toReversed().map((i) => at(points, i))];

/** A wide gap is open; a narrow one only when what shows in it is not lip: teeth are less red, the cavity is darker. */
function isOpen(image: RgbImage, points: Landmarks, opening: Plane, gap: number): boolean {
  if (gap > .12) return true;
  if (gap < .035) return false;
  const inside: { l: number; a: number }[] = [];
  const lips: { l: number; a: number }[] = [];
  const outer = polygonMask(image.width, image.height, outerPolygon(points));
  const near = dilate(opening, 2);
  for (let i = 0; i < opening.data.length; i++) {
    if (opening.data[i]! > .9) inside.push(labAt(image, i));
    else if (outer.data[i]! > .9 && near.data[i] === 0) lips.push(labAt(image, i));
  }
  if (inside.length < 12 || lips.length < 12) return gap > .08;
  const paler = median(lips.map(({ a }) => a)) - median(inside.map(({ a }) => a));
  const darker = median(lips.map(({ l }) => l)) - median(inside.map(({ l }) => l));
  return paler > 5 || darker > (gap > .06 ? 14 : 22) || -darker > LIGHTER;
}

// Inside the lips' outline, what is paler or darker than the lips by this much (in a* and L*) is not lip.
const PALER = 7;
const DARKER = 22;
/** In black and white teeth are told by being lighter than the lips. */
const LIGHTER = 15;
const COLOURLESS = 6;

/**
 * The opening as the colours show it: FaceMesh's contour may run along the teeth's edge, or miss the corners. It grows over
 * what is not lip, as far as the lips' outline.
 */
function wholeOpening(image: RgbImage, points: Landmarks, seen: Plane): Plane {
  const { width, height } = image;
  const outline = polygonMask(width, height, outerPolygon(points));
  const within = erode(outline, 1);
  // The dark of the corners may lie a little outside of the contour; teeth do not, and skin is as pale as they are.
  const beyond = dilate(outline, 3);
  // Lips for certain: just inside their outline.
  const inner = erode(outline, 3);
  const sample: number[] = [];
  for (let i = 0; i < outline.data.length; i++) if (within.data[i]! > .9 && inner.data[i]! < .9 && seen.data[i]! < .1) sample.push(i);
  const lipA = median(sample.map((i) => labAt(image, i).a));
  const lipL = median(sample.map((i) => labAt(image, i).l));
  const belongs = (i: number): boolean => {
    const { l, a } = labAt(image, i);
    const pale = lipA > COLOURLESS ? a < lipA - PALER : l > lipL + LIGHTER;
    return within.data[i]! > .9 ? pale || l < lipL - DARKER : beyond.data[i]! > .1 && l < lipL - 1.3 * DARKER;
  };
  const opening = plane(width, height);
  opening.data.set(seen.data);
  const stack: number[] = [];
  for (let i = 0; i < seen.data.length; i++) if (seen.data[i]! > .5) stack.push(i);
  for (let i = stack.pop(); i !== undefined; i = stack.pop()) {
    for (const j of [i - 1, i + 1, i - width, i + width]) {
      if (opening.data[j]! > .5 || !belongs(j)) continue;
      opening.data[j] = 1;
      stack.push(j);
    }
  }
  return opening;
}

/** The inner-lip points moved outwards to the opening's edge, never inwards and never over the outer contour. */
function alongOpening(points: Landmarks, frame: MouthFrame, opening: Plane): Landmarks {
  const moved = points.slice();
  for (const [inner, outer, direction] of [[UPPER_INNER, UPPER_OUTER, -1], [LOWER_INNER, LOWER_OUTER, 1]] as const) {
    const border = curveThrough(frame.local(points, outer));
    const shifts = frame.local(points, inner).map(({ x, y }) => {
      const limit = .8 * Math.abs(border(x) - y);
      let shift = 0;
      for (let d = 0; d <= limit; d += .5) {
        const { x: sx, y: sy } = frame.toPicture(x, y + direction * d);
        if (sampleAt(opening, sx - .5, sy - .5) > .5) shift = d;
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

/** Replaces what the mouth shows by a continuation of the lips. */
function withLipsOver(image: RgbImage, opening: Plane): RgbImage {
  const known = Uint8Array.from(dilate(opening, 2).data, (value) => value > .15 ? 0 : 1);
  const filled: RgbImage = { width: image.width, height: image.height, data: image.data.slice() };
  fillUnknown(filled, known);
  return filled;
}
