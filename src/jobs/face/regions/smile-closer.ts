// Closes and relaxes a smile: computes where each point of the lips and of the skin round them moves
// when the lips meet and the corners sink, and warps the picture that way.
import { type Curve, curveThrough, type Point, tabulated } from '../imaging/curve.ts';
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import {
  CHIN,
  LANDMARK_COUNT,
  LOWER_INNER,
  LOWER_LIP,
  LOWER_OUTER,
  NOSE_BASE,
  UPPER_INNER,
  UPPER_LIP,
  UPPER_OUTER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';
import { joinInnerLips, type MouthFrame } from './mouth-frame.ts';

// How far each lip moves, share of the gap. The sum is slightly above 1, so that the lips meet. The
// lower lip moves more, with the jaw.
const UPPER_SHARE = 0.46;
const LOWER_SHARE = 0.56;

/**
 * A grin draws the lips straight and thick up to the corners. How far their outer edges move away
 * from the seam when it closes: fuller in the middle (the upper lip at its two peaks), finer towards
 * the corners. Shares of the half width, at these distances from the middle.
 */
const PEAK = 0.05;
const DIP = 0.03;
const TAPER = 0.07;
const PEAK_AT = 0.24;
/** How far the skin beyond the lips goes with them, share of the half width. */
const SKIN_REACH = 0.45;

/** Share of the corners' lift that a relaxed smile loses. */
const LOWERED = 0.62;

/** Steepest closing towards a corner, pixels down per pixel across. */
const STEEPEST = 1.6;

/**
 * The displacement that closes an open smile. It is continuous except for the cut between the lips,
 * and monotone along y, so that it can be inverted.
 */
export class SmileCloser {
  readonly #frame: MouthFrame;
  readonly #gap: Curve;
  readonly #line: Curve; // middle of the opening
  readonly #seam: Curve; // where the lips meet afterwards
  readonly #upperOuter: Curve;
  readonly #upperInner: Curve;
  readonly #lowerInner: Curve;
  readonly #lowerOuter: Curve;
  readonly #left: number;
  readonly #right: number;
  readonly #noseY: number;
  readonly #chinY: number;
  /** Share of the smile that is taken back at the corners, 0..1. */
  readonly #relax: number;
  /** How far the corners of a relaxed smile move inwards, share of the half width. */
  readonly #narrow: number;
  /** How far the corners lie above the middle of the mouth, pixels. */
  readonly #cornerLift: number;
  /** The widest gap, pixels. */
  readonly #gapMost: number;

  /**
   * @param relax share of the smile that is taken back at the corners, 0..1
   * @param narrow how far the corners of a relaxed smile move inwards, share of the half width
   */
  constructor(points: Landmarks, frame: MouthFrame, relax: number, narrow: number) {
    this.#frame = frame;
    const upper = frame.local(points, UPPER_INNER);
    const lower = frame.local(points, LOWER_INNER);
    const middle = upper.map((point, i) => ({
      x: (point.x + lower[i]!.x) / 2,
      y: (point.y + lower[i]!.y) / 2,
    }));
    const gaps = upper.map((point, i) => ({
      x: middle[i]!.x,
      y: Math.max(0, lower[i]!.y - point.y),
    }));
    const through = (line: readonly Point[]): Curve =>
      tabulated(curveThrough(line), -1.2 * frame.halfWidth, 1.2 * frame.halfWidth);
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
    this.#gapMost = Math.max(...gaps.map(({ y }) => y));
    this.#relax = relax;
    this.#narrow = narrow * relax;
    this.#cornerLift = Math.max(0, middle[5]!.y - (middle[0]!.y + middle[10]!.y) / 2);
    this.#seam = through(
      middle.map(({ x }) => {
        const up = this.#forward(x, this.#upperInner(x), false);
        const low = this.#forward(x, this.#lowerInner(x), true);
        return { x: (up.x + low.x) / 2, y: (up.y + low.y) / 2 };
      }),
    );
  }

  /**
   * The gap at u, pixels. Towards the corners it closes no steeper than the skin beside them can
   * follow; what stays open has been inpainted with lip.
   */
  #gapAt(u: number): number {
    const toCorner = Math.min(u - this.#left, this.#right - u);
    if (toCorner <= 0) {
      return 0;
    }
    const gap = this.#gap(u);
    const most = STEEPEST * toCorner;
    return (gap * most) / Math.hypot(gap, most, 1e-3);
  }

  /**
   * Where a point of the open picture moves.
   * @param low whether it belongs to the lower lip's side
   */
  #forward(u: number, v: number, low: boolean): Point {
    const gap = this.#gapAt(u);
    const { halfWidth } = this.#frame;
    let dy = 0;
    if (low) {
      const outer = this.#lowerOuter(u);
      const inner = this.#lowerInner(u);
      let share =
        v < outer
          ? 0.7 + 0.3 * clamp((outer - v) / (outer - inner + 1e-3), 0, 1)
          : 0.3 + 0.4 * (1 - smoothstep(0, 1, (v - outer) / Math.max(1, this.#chinY - outer)));
      if (v > this.#chinY) {
        share = 0.3 * (1 - smoothstep(0, 1, (v - this.#chinY) / (1.2 * halfWidth)));
      }
      dy = -LOWER_SHARE * gap * share;
    } else {
      const outer = this.#upperOuter(u);
      const inner = this.#upperInner(u);
      const share =
        v > outer
          ? 0.6 + 0.4 * clamp((v - outer) / (inner - outer + 1e-3), 0, 1)
          : 0.6 * (1 - smoothstep(0, 1, (outer - v) / Math.max(1, outer - this.#noseY)));
      dy = UPPER_SHARE * gap * share;
    }
    dy += this.#lipShape(u, v, low);
    // The corners of a smile move inwards and down a little.
    const r = Math.abs(u) / halfWidth;
    const near =
      Math.exp(-(((r - 1) / 0.75) ** 2)) *
      Math.exp(-(((v - this.#line(u)) / (0.8 * halfWidth)) ** 2)) *
      smoothstep(this.#noseY - halfWidth, this.#noseY + 0.3 * halfWidth, v) *
      (1 - smoothstep(2.2, 2.9, r));
    const inwards = this.#narrow * halfWidth * near * Math.min(1, r);
    dy += near * LOWERED * this.#cornerLift * this.#relax * Math.min(1, r) ** 2;
    return { x: u - Math.sign(u) * inwards, y: v + dy };
  }

  /** How far the outer edge of a lip moves to get its bow and its fine ends back, pixels. */
  #lipShape(u: number, v: number, low: boolean): number {
    const { halfWidth } = this.#frame;
    const inner = low ? this.#lowerInner(u) : this.#upperInner(u);
    const outer = low ? this.#lowerOuter(u) : this.#upperOuter(u);
    const way = low ? 1 : -1;
    const thickness = Math.max(0.08 * halfWidth, (outer - inner) * way);
    const beyond = (v - inner) * way;
    const r = Math.abs(u) / halfWidth;
    if (beyond <= 0 || beyond > thickness + SKIN_REACH * halfWidth || r > 1.5) {
      return 0;
    }
    // All of it at the edge, none at the seam, and less and less in the skin beyond.
    const share =
      smoothstep(0, thickness, beyond) *
      (1 - smoothstep(thickness, thickness + SKIN_REACH * halfWidth, beyond));
    const bump = (at: number, width: number): number => Math.exp(-(((r - at) / width) ** 2));
    const taper = TAPER * bump(0.75, 0.28);
    const outwards = low
      ? 0.5 * PEAK * bump(0, 0.4) - taper
      : PEAK * bump(PEAK_AT, 0.16) - DIP * bump(0, 0.1) - taper;
    const opening = clamp(this.#gapMost / (0.3 * halfWidth), 0, 1);
    return way * outwards * halfWidth * share * opening;
  }

  /**
   * The inverse of #forward: Newton's method along y, fixed-point iteration along x. Both
   * displacements are small against their extent.
   */
  #inverse(u: number, v: number, low: boolean): Point {
    let x = u;
    let y = v;
    for (let k = 0; k < 5; k++) {
      const here = this.#forward(x, y, low);
      if (Math.abs(u - here.x) + Math.abs(v - here.y) < 0.01) {
        break;
      }
      const slope = (this.#forward(x, y + 0.5, low).y - here.y) * 2;
      x += u - here.x;
      y += (v - here.y) / Math.max(0.5, slope);
    }
    return { x, y };
  }

  /** @returns the landmarks of the closed mouth */
  move(points: Landmarks): Landmarks {
    const moved = points.slice();
    for (let i = 0; i < LANDMARK_COUNT; i++) {
      const { x, y } = this.#frame.toLocal(px(points, i), py(points, i));
      if (Math.abs(x) > 3 * this.#frame.halfWidth || y < this.#noseY - this.#frame.halfWidth) {
        continue;
      }
      const low = LOWER_LIP.has(i) || (!UPPER_LIP.has(i) && y > this.#line(x));
      const to = this.#forward(x, y, low);
      const { x: tx, y: ty } = this.#frame.toPicture(to.x, to.y);
      moved[i * 3] = tx;
      moved[i * 3 + 1] = ty;
    }
    joinInnerLips(moved);
    return moved;
  }

  /**
   * Warps the picture to a closed mouth.
   * @param upper the picture with the opening inpainted as upper lip
   * @param lower the same as lower lip
   */
  warp(image: RgbImage, upper: RgbImage, lower: RgbImage): RgbImage {
    const out: RgbImage = { width: image.width, height: image.height, data: image.data.slice() };
    const reach = 3 * this.#frame.halfWidth;
    const top = this.#noseY - this.#frame.halfWidth;
    const bottom = this.#chinY + 1.2 * this.#frame.halfWidth;
    for (let y = 0; y < image.height; y++) {
      for (let x = 0; x < image.width; x++) {
        const { x: u, y: v } = this.#frame.toLocal(x + 0.5, y + 0.5);
        if (Math.abs(u) > reach || v < top || v > bottom) {
          continue;
        }
        const low = v > this.#seam(u);
        const source = this.#inverse(u, v, low);
        const from = this.#frame.toPicture(source.x, source.y);
        sampleCubic(
          low ? lower : upper,
          from.x - 0.5,
          from.y - 0.5,
          out.data,
          (y * image.width + x) * 3,
        );
      }
    }
    return out;
  }

  /**
   * Draws the dark seam that closed lips have: in their own hue, finest at the corners.
   * @param softness 1 in a sharp picture, more in an enlarged one
   */
  drawSeam(image: RgbImage, softness: number): void {
    const { faceHeight } = this.#frame;
    const thickness = 0.6 + 0.0025 * faceHeight + 0.6 * softness;
    const strength = 0.42 / Math.sqrt(softness);
    const middle = (this.#left + this.#right) / 2;
    const half = ((this.#right - this.#left) / 2) * (1 - this.#narrow);
    for (let y = 0; y < image.height; y++) {
      for (let x = 0; x < image.width; x++) {
        const { x: u, y: v } = this.#frame.toLocal(x + 0.5, y + 0.5);
        const r = Math.abs(u - middle) / half;
        if (r > 1.1) {
          continue;
        }
        const distance = (v - this.#seam(u)) / thickness / (1 - 0.3 * r);
        if (Math.abs(distance) > 4) {
          continue;
        }
        const dark =
          strength * Math.exp((-distance * distance) / 1.8) * (1 - smoothstep(0.75, 1.1, r));
        const i = (y * image.width + x) * 3;
        const most = Math.max(1, image.data[i]!, image.data[i + 1]!, image.data[i + 2]!);
        for (let c = i; c < i + 3; c++) {
          image.data[c] = image.data[c]! * (1 - dark * (1.3 - (0.4 * image.data[c]!) / most));
        }
      }
    }
  }
}

/**
 * Catmull-Rom (bicubic) sampling: the mouth is resampled once more than the rest of the face and
 * must not look softer.
 */
function sampleCubic(
  { width, height, data }: RgbImage,
  x: number,
  y: number,
  out: Uint8Array,
  to: number,
): void {
  const x0 = Math.floor(x);
  const y0 = Math.floor(y);
  const wx = cubicWeights(x - x0);
  const wy = cubicWeights(y - y0);
  for (let c = 0; c < 3; c++) {
    let value = 0;
    for (let j = 0; j < 4; j++) {
      const row = clamp(y0 + j - 1, 0, height - 1) * width;
      let sum = 0;
      for (let i = 0; i < 4; i++) {
        sum += wx[i]! * data[(row + clamp(x0 + i - 1, 0, width - 1)) * 3 + c]!;
      }
      value += wy[j]! * sum;
    }
    out[to + c] = clamp(value + 0.5, 0, 255);
  }
}

const cubicWeights = (t: number): [number, number, number, number] => [
  ((-0.5 * t + 1) * t - 0.5) * t,
  (1.5 * t - 2.5) * t * t + 1,
  ((-1.5 * t + 2) * t + 0.5) * t,
  (0.5 * t - 0.5) * t * t,
];
