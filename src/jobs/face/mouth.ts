// Brings the mouth to rest: a closed smile, the lips' seam where the picture has it, and landmarks that agree with both.
import { clamp, type Plane, plane, type RgbImage, smoothstep } from './image.ts';
import { labAt, lumaAt, median } from './colour.ts';
import { blur, type Curve, curveThrough, dilate, erode, polygonMask, tabulated, type Point } from './curve.ts';
import { fillUnknown } from './inpaint.ts';
import {
  CHIN, LANDMARK_COUNT, LEFT_EYE, LOWER_INNER, LOWER_LIP, LOWER_OUTER, NOSE_BASE, NOSE_BRIDGE, RIGHT_EYE, UPPER_INNER, UPPER_LIP,
  UPPER_OUTER, type Landmarks, px, py,
} from './landmarks.ts';

/** Coordinates with the mouth's centre as origin and the eye line as x axis; pixels. */
export class MouthFrame {
  readonly x: number;
  readonly y: number;
  readonly cos: number;
  readonly sin: number;
  /** Half the distance of the mouth's corners. */
  readonly halfWidth: number;
  /** From the bridge of the nose to the chin. */
  readonly faceHeight: number;

  constructor(points: Landmarks) {
    const angle = Math.atan2(py(points, RIGHT_EYE.outer) - py(points, LEFT_EYE.outer), px(points, RIGHT_EYE.outer) - px(points, LEFT_EYE.outer));
    this.cos = Math.cos(angle);
    this.sin = Math.sin(angle);
    this.x = (px(points, 61) + px(points, 291)) / 2;
    this.y = (py(points, 61) + py(points, 291)) / 2;
    this.halfWidth = Math.hypot(px(points, 61) - px(points, 291), py(points, 61) - py(points, 291)) / 2;
    this.faceHeight = Math.hypot(px(points, NOSE_BRIDGE) - px(points, CHIN), py(points, NOSE_BRIDGE) - py(points, CHIN));
  }

  toLocal(x: number, y: number): Point {
    return { x: this.cos * (x - this.x) + this.sin * (y - this.y), y: -this.sin * (x - this.x) + this.cos * (y - this.y) };
  }

  toPicture(u: number, v: number): Point {
    return { x: this.x + this.cos * u - this.sin * v, y: this.y + this.sin * u + this.cos * v };
  }

  local(points: Landmarks, indices: readonly number[]): Point[] {
    return indices.map((index) => this.toLocal(px(points, index), py(points, index)));
  }
}

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

// How far each lip travels, in units of the gap: together slightly more than 1, so that they meet. The lower moves more, as a jaw does.
const UPPER_SHARE = .46;
const LOWER_SHARE = .56;

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
  return paler > 5 || darker > (gap > .06 ? 14 : 22);
}

// Inside the lips' outline, what is paler or darker than the lips by this much (in a* and L*) is not lip.
const PALER = 7;
const DARKER = 22;

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
  const wide = dilate(seen, 4);
  const rim: number[] = [];
  const lips: number[] = [];
  for (let i = 0; i < outline.data.length; i++) {
    if (outline.data[i]! > .9 && within.data[i]! < .9) rim.push(i);
    if (outline.data[i]! > .9 && wide.data[i]! < .1) lips.push(i);
  }
  const sample = lips.length > 40 ? lips : rim;
  const lipA = median(sample.map((i) => labAt(image, i).a));
  const lipL = median(sample.map((i) => labAt(image, i).l));
  const belongs = (i: number): boolean => {
    const { l, a } = labAt(image, i);
    return within.data[i]! > .9 ? a < lipA - PALER || l < lipL - DARKER : beyond.data[i]! > .1 && l < lipL - 1.3 * DARKER;
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
        if (bilinear(opening, sx - .5, sy - .5) > .5) shift = d;
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

/** The displacement that closes an open smile: continuous but for the cut between the lips, and monotone along y, so that it can be inverted. */
class SmileCloser {
  readonly #frame: MouthFrame;
  readonly #gap: Curve;
  readonly #line: Curve;        // middle of the opening
  readonly #seam: Curve;        // where the lips meet afterwards
  readonly #upperOuter: Curve;
  readonly #upperInner: Curve;
  readonly #lowerInner: Curve;
  readonly #lowerOuter: Curve;
  readonly #left: number;
  readonly #right: number;
  readonly #noseY: number;
  readonly #chinY: number;
  /** 0..1: how much of a smile is taken back at the corners. */
  readonly #relax: number;
  readonly #cornerLift: number;

  constructor(points: Landmarks, frame: MouthFrame, gap: number) {
    this.#frame = frame;
    const upper = frame.local(points, UPPER_INNER);
    const lower = frame.local(points, LOWER_INNER);
    const middle = upper.map((point, i) => ({ x: (point.x + lower[i]!.x) / 2, y: (point.y + lower[i]!.y) / 2 }));
    const gaps = upper.map((point, i) => ({ x: middle[i]!.x, y: Math.max(0, lower[i]!.y - point.y) }));
    const through = (line: readonly Point[]): Curve => tabulated(curveThrough(line), -1.2 * frame.halfWidth, 1.2 * frame.halfWidth);
    this.#gap = through(gaps);
    this.#line = through(middle);
    this.#upperInner = through(upper);
    this.#lowerInner = through(lower);
    this.#upperOuter = through(frame.local(points, UPPER_OUTER));
    this.#lowerOuter = through(frame.local(points, LOWER_OUTER));
    this.#left = upper[0]!.x;
    this.#right = upper.at(-1)!.x;
    this.#noseY = frame.local(points, [NOSE_BASE])[0]!.y;
    this.#chinY = frame.local(points, [CHIN])[0]!.y;
    this.#relax = Math.min(1, gap / .18);
    this.#cornerLift = Math.max(0, middle[5]!.y - (middle[0]!.y + middle[10]!.y) / 2);
    this.#seam = through(middle.map(({ x }) => {
      const up = this.#forward(x, this.#upperInner(x), false);
      const low = this.#forward(x, this.#lowerInner(x), true);
      return { x: (up.x + low.x) / 2, y: (up.y + low.y) / 2 };
    }));
  }

  /** Towards the corners no steeper than what the skin beside them bears; what stays open there has been filled with lip. */
  #gapAt(u: number): number {
    const toCorner = Math.min(u - this.#left, this.#right - u);
    if (toCorner <= 0) return 0;
    const gap = this.#gap(u);
    const most = .7 * toCorner;
    return gap * most / Math.hypot(gap, most, 1e-3);
  }

  /** Where a point of the open picture goes. */
  #forward(u: number, v: number, low: boolean): Point {
    const gap = this.#gapAt(u);
    const { halfWidth } = this.#frame;
    let dy = 0;
    if (low) {
      const outer = this.#lowerOuter(u);
      const inner = this.#lowerInner(u);
      let share = v < outer ? .70 + .30 * clamp((outer - v) / (outer - inner + 1e-3), 0, 1)
        : .30 + .40 * (1 - smoothstep(0, 1, (v - outer) / Math.max(1, this.#chinY - outer)));
      if (v > this.#chinY) share = .30 * (1 - smoothstep(0, 1, (v - this.#chinY) / (1.2 * halfWidth)));
      dy = -LOWER_SHARE * gap * share;
    } else {
      const outer = this.#upperOuter(u);
      const inner = this.#upperInner(u);
      const share = v > outer ? .60 + .40 * clamp((v - outer) / (inner - outer + 1e-3), 0, 1)
        : .60 * (1 - smoothstep(0, 1, (outer - v) / Math.max(1, outer - this.#noseY)));
      dy = UPPER_SHARE * gap * share;
    }
    // The corners of a smile come in and down a little.
    const r = Math.abs(u) / halfWidth;
    const near = Math.exp(-(((r - 1) / .75) ** 2)) * Math.exp(-(((v - this.#line(u)) / (.8 * halfWidth)) ** 2))
      * smoothstep(this.#noseY - halfWidth, this.#noseY + .3 * halfWidth, v) * (1 - smoothstep(2.2, 2.9, r));
    const inwards = .13 * this.#relax * halfWidth * near * Math.min(1, r);
    dy += near * .38 * this.#cornerLift * this.#relax * Math.min(1, r) ** 2;
    return { x: u - Math.sign(u) * inwards, y: v + dy };
  }

  /** Newton's method along y, fixed point along x: both displacements are small against their extent. */
  #inverse(u: number, v: number, low: boolean): Point {
    let x = u;
    let y = v;
    for (let k = 0; k < 5; k++) {
      const here = this.#forward(x, y, low);
      if (Math.abs(u - here.x) + Math.abs(v - here.y) < .01) break;
      const slope = (this.#forward(x, y + .5, low).y - here.y) * 2;
      x += u - here.x;
      y += (v - here.y) / Math.max(.5, slope);
    }
    return { x, y };
  }

  move(points: Landmarks): Landmarks {
    const moved = points.slice();
    for (let i = 0; i < LANDMARK_COUNT; i++) {
      const { x, y } = this.#frame.toLocal(px(points, i), py(points, i));
      if (Math.abs(x) > 3 * this.#frame.halfWidth || y < this.#noseY - this.#frame.halfWidth) continue;
      const low = LOWER_LIP.has(i) || (!UPPER_LIP.has(i) && y > this.#line(x));
      const to = this.#forward(x, y, low);
      const { x: tx, y: ty } = this.#frame.toPicture(to.x, to.y);
      moved[i * 3] = tx;
      moved[i * 3 + 1] = ty;
    }
    joinInnerLips(moved);
    return moved;
  }

  warp(image: RgbImage): RgbImage {
    const out: RgbImage = { width: image.width, height: image.height, data: image.data.slice() };
    const reach = 3 * this.#frame.halfWidth;
    const top = this.#noseY - this.#frame.halfWidth;
    const bottom = this.#chinY + 1.2 * this.#frame.halfWidth;
    for (let y = 0; y < image.height; y++) {
      for (let x = 0; x < image.width; x++) {
        const { x: u, y: v } = this.#frame.toLocal(x + .5, y + .5);
        if (Math.abs(u) > reach || v < top || v > bottom) continue;
        const low = v > this.#seam(u);
        const source = this.#inverse(u, v, low);
        if (Math.abs(source.x - u) + Math.abs(source.y - v) < .02) continue;
        // Sampling must not reach over the cut into the other lip's side: what lay there has been filled with lip already.
        const from = this.#frame.toPicture(source.x, source.y);
        sampleCubic(image, from.x - .5, from.y - .5, out.data, (y * image.width + x) * 3);
      }
    }
    return out;
  }

  /** Lips that touch have a dark line between them; these were apart, so it is drawn. */
  drawSeam(image: RgbImage): void {
    const { faceHeight } = this.#frame;
    const thickness = 1 + .0045 * faceHeight;
    const middle = (this.#left + this.#right) / 2;
    const half = (this.#right - this.#left) / 2 * (1 - .13 * this.#relax);
    for (let y = 0; y < image.height; y++) {
      for (let x = 0; x < image.width; x++) {
        const { x: u, y: v } = this.#frame.toLocal(x + .5, y + .5);
        const r = Math.abs(u - middle) / half;
        if (r > 1.1) continue;
        const distance = (v - this.#seam(u)) / thickness;
        if (Math.abs(distance) > 4) continue;
        const dark = .36 * Math.exp(-distance * distance / 1.8) * (1 - smoothstep(.55, 1.08, r));
        const i = (y * image.width + x) * 3;
        image.data[i] = image.data[i]! * (1 - dark * .8);
        image.data[i + 1] = image.data[i + 1]! * (1 - dark);
        image.data[i + 2] = image.data[i + 2]! * (1 - dark);
      }
    }
  }
}

/** The closed mouth's two inner contours become one. */
function joinInnerLips(points: Landmarks): void {
  for (let k = 0; k < UPPER_INNER.length; k++) {
    const a = UPPER_INNER[k]!;
    const b = LOWER_INNER[k]!;
    for (let c = 0; c < 3; c++) {
      const middle = (points[a * 3 + c]! + points[b * 3 + c]!) / 2;
      points[a * 3 + c] = middle;
      points[b * 3 + c] = middle;
    }
  }
}

const SEAM_COLUMNS = 41;

/**
 * On a closed mouth: moves the inner-lip points onto the dark line between the lips, found as the cheapest smooth path
 * (dynamic programming) within a few pixels of where FaceMesh has it.
 */
function onSeam(image: RgbImage, points: Landmarks, frame: MouthFrame): Landmarks {
  const upper = frame.local(points, UPPER_INNER);
  const lower = frame.local(points, LOWER_INNER);
  const line = curveThrough(upper.map((point, i) => ({ x: (point.x + lower[i]!.x) / 2, y: (point.y + lower[i]!.y) / 2 })));
  const reach = Math.max(2, .035 * frame.faceHeight);
  const steps = Math.max(5, Math.ceil(reach * 2) * 2 + 1);
  const left = upper[0]!.x;
  const right = upper.at(-1)!.x;
  const luma = lumaPlane(image);
  const offset = (k: number): number => (k / (steps - 1) * 2 - 1) * reach;
  const cost: Float32Array[] = [];
  const from: Int16Array[] = [];
  for (let column = 0; column < SEAM_COLUMNS; column++) {
    const u = left + (right - left) * column / (SEAM_COLUMNS - 1);
    const dark = Float32Array.from({ length: steps }, (_, k) => {
      const { x, y } = frame.toPicture(u, line(u) + offset(k));
      return bilinear(luma, x - .5, y - .5) + .6 * Math.abs(offset(k)) / reach * 12;
    });
    const best = new Int16Array(steps);
    const previous = cost.at(-1);
    if (previous) {
      for (let k = 0; k < steps; k++) {
        let low = Infinity;
        for (let j = Math.max(0, k - 3); j <= Math.min(steps - 1, k + 3); j++) {
          const total = previous[j]! + 2.5 * (j - k) * (j - k);
          if (total < low) { low = total; best[k] = j; }
        }
        dark[k] = dark[k]! + low;
      }
    }
    cost.push(dark);
    from.push(best);
  }
  const path: Point[] = [];
  let k = cost.at(-1)!.indexOf(Math.min(...cost.at(-1)!));
  for (let column = SEAM_COLUMNS - 1; column >= 0; column--) {
    const u = left + (right - left) * column / (SEAM_COLUMNS - 1);
    // The corners stay where they are: there the line fades into skin, and the path is a guess.
    const trust = smoothstep(0, .15, Math.min(column, SEAM_COLUMNS - 1 - column) / SEAM_COLUMNS);
    path.push({ x: u, y: offset(k) * trust });
    k = from[column]![k]!;
  }
  const smooth = path.map(({ x }, i) => ({ x, y: mean([-2, -1, 0, 1, 2].map((d) => path[clamp(i + d, 0, path.length - 1)]!.y)) }));
  return shiftLips(points, frame, line, curveThrough(smooth));
}

/** Moves the inner contours onto line + shift and the lips' other rings along with them, less towards the outer contour. */
function shiftLips(points: Landmarks, frame: MouthFrame, line: Curve, shift: Curve): Landmarks {
  const moved = points.slice();
  const upperOuter = curveThrough(frame.local(points, UPPER_OUTER));
  const lowerOuter = curveThrough(frame.local(points, LOWER_OUTER));
  const inner = new Set<number>([...UPPER_INNER, ...LOWER_INNER]);
  for (const index of new Set([...UPPER_LIP, ...LOWER_LIP, ...inner])) {
    const { x, y } = frame.toLocal(px(points, index), py(points, index));
    const middle = line(x);
    const edge = UPPER_LIP.has(index) ? upperOuter(x) : lowerOuter(x);
    const weight = inner.has(index) ? 1 : clamp(1 - (y - middle) / (edge - middle || 1), 0, 1);
    const to = frame.toPicture(x, (inner.has(index) ? middle : y) + shift(x) * weight);
    moved[index * 3] = to.x;
    moved[index * 3 + 1] = to.y;
  }
  joinInnerLips(moved);
  return moved;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function lumaPlane(image: RgbImage): Plane {
  const luma = plane(image.width, image.height);
  for (let i = 0; i < luma.data.length; i++) luma.data[i] = lumaAt(image, i);
  return blur(luma, .8);
}

function bilinear({ width, height, data }: Plane, x: number, y: number): number {
  const cx = clamp(x, 0, width - 1.001);
  const cy = clamp(y, 0, height - 1.001);
  const i = Math.floor(cy) * width + Math.floor(cx);
  const fx = cx - Math.floor(cx);
  const fy = cy - Math.floor(cy);
  return (data[i]! * (1 - fx) + data[i + 1]! * fx) * (1 - fy) + (data[i + width]! * (1 - fx) + data[i + width + 1]! * fx) * fy;
}

/** Catmull-Rom sampling: the mouth is resampled once more than the rest of the face and must not look softer. */
function sampleCubic({ width, height, data }: RgbImage, x: number, y: number, out: Uint8Array, to: number): void {
  const x0 = Math.floor(x);
  const y0 = Math.floor(y);
  const wx = cubicWeights(x - x0);
  const wy = cubicWeights(y - y0);
  for (let c = 0; c < 3; c++) {
    let value = 0;
    for (let j = 0; j < 4; j++) {
      const row = clamp(y0 + j - 1, 0, height - 1) * width;
      let sum = 0;
      for (let i = 0; i < 4; i++) sum += wx[i]! * data[(row + clamp(x0 + i - 1, 0, width - 1)) * 3 + c]!;
      value += wy[j]! * sum;
    }
    out[to + c] = clamp(value + .5, 0, 255);
  }
}

const cubicWeights = (t: number): [number, number, number, number] => [
  ((-.5 * t + 1) * t - .5) * t, (1.5 * t - 2.5) * t * t + 1, ((-1.5 * t + 2) * t + .5) * t, (.5 * t - .5) * t * t,
];

