// Closes and relaxes a smile: computes where each point of the lips and of the skin round them moves
// when the lips meet and the corners sink, and warps the picture that way.
import { SHARP_EDGE } from '../detect/exposure.ts';
import { type Curve, curveThrough, type Point, tabulated } from '../imaging/curve.ts';
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import { shadePixel } from '../imaging/flesh.ts';
import { sampleCubic } from '../imaging/sample-cubic.ts';
import {
  CHIN,
  FACE_OVAL,
  LANDMARK_COUNT,
  LOWER_INNER,
  LOWER_LIP,
  LOWER_OUTER,
  NOSE_BASE,
  NOSE_WINGS,
  UPPER_INNER,
  UPPER_LIP,
  UPPER_OUTER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';
import { outlineOf } from './face-outline.ts';
import { lipShape, type LipShape } from './lip-shape.ts';
import { joinInnerLips, type MouthFrame } from './mouth-frame.ts';

/**
 * How far the upper lip moves, share of the gap. In a smile it is the upper lip that has risen: lips
 * meet again near the lower edge of the upper teeth.
 */
const UPPER_SHARE = { open: 0.45, smiling: 0.62 } as const;
/** Most that the upper lip moves, share of the skin between it and the nose. */
const ROOM_SHARE = 0.6;
/**
 * Where lips that smiled meet at least, share of the way from the nose to the chin. Measured: 0.26 to
 * 0.43 in 38 portraits at rest, their median is 0.34.
 */
const SEAM = 0.325;
/** Most of the gap that the upper lip closes, and most of its way to the nose, to meet there. */
const DOWN = { gap: 0.85, room: 0.8 } as const;

/**
 * Share of the corners' lift that a relaxed smile loses. The rest agrees with cheeks and eyes, which
 * keep some of it, too.
 */
const LOWERED = 0.66;
/** Share of that by which they sink less below eyes that go on smiling. */
const STAYS_UP = 0.85;
/** Share that is taken back of how far the corners of an open mouth hang below its seam. */
const RAISED = 0.8;

/**
 * How far the chin follows the lower lip when the mouth closes. The teeth of a broad smile are nearly
 * closed already: its chin moves less. Measured: lips at rest divide nose and chin as 0.52 to 1; with
 * less than this the chins of smiles became long, 0.44 to 1.
 */
const JAW = { open: 0.43, smiling: 0.32 } as const;

/**
 * A laugh has lowered the jaw, too: by this share of the gap beyond one that lips alone make, in eye
 * distances, with a knee so wide. Measured on 11 pictures of one person: as he smiles more and more,
 * his chin is where it is at rest up to a gap of .1; with a gap of .2 it is .1 lower. In others rows of
 * teeth fill the gap: a chin that is no farther from the nose than most (.54 to .85 in 11 portraits at
 * rest, in eye distances) stays.
 */
const LAUGH = { dropped: 0.9, lips: 0.095, knee: 0.02, least: 0.72 } as const;
/** Half widths of the mouth over which a chin that was lowered comes up: the jaw turns at the ears. */
const JAW_REACH: readonly [number, number] = [0.5, 2];

/**
 * How far the wings of the nose move inwards when a broad smile closes, share of their distance.
 * Measured: .46 of the distance between the eyes at rest, .49 to .52 in smiles of the same person.
 */
const WINGS_NARROW = 0.11;

/** Where the skin ceases to follow the corners: the outline of the face stays. Share of its distance. */
const OUTLINE: readonly [number, number] = [0.6, 0.97];

/** Within so many pixels of the seam a pixel has colours of both lips. */
const EDGE = 0.75;

/** Steepest closing towards a corner, pixels down per pixel across. */
const STEEPEST = 1.6;

/** How a smile is relaxed. */
export interface Relaxation {
  /** Share of the smile that is taken back at the corners, 0..1. */
  readonly relax: number;
  /** How far the corners of a relaxed smile move inwards, share of the half width. */
  readonly narrow: number;
  /** How broad the smile is, 0..1. */
  readonly smile: number;
  /** How much of it the eyes keep, 0..1: the corners of the mouth then keep some of theirs. */
  readonly kept?: number;
}

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
  readonly #rest: LipShape;
  readonly #isOpen: boolean;
  readonly #left: number;
  readonly #right: number;
  readonly #noseY: number;
  readonly #chinY: number;
  /** How far the corners of a relaxed smile move inwards, share of the half width. */
  readonly #narrow: number;
  /** How far the corners sink, pixels; negative when they rise. */
  readonly #sinking: number;
  /** How far the chin follows the lower lip, 0..1. */
  readonly #jaw: number;
  /** How far the chin of a laugh rises besides, pixels. */
  readonly #rise: number;
  /** The wings of the nose: their distance from its middle, their height, how far they move inwards. */
  readonly #wings: { readonly u: number; readonly v: number; readonly inwards: number };
  /** The outline of the face over v: how far it lies from the middle, to the left and to the right. */
  readonly #outline: readonly [Curve, Curve];

  constructor(
    points: Landmarks,
    frame: MouthFrame,
    { relax, narrow, smile, kept = 0 }: Relaxation,
  ) {
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
    const widest = Math.max(...gaps.map(({ y }) => y)) / (2 * frame.halfWidth);
    this.#isOpen = widest > 1e-3;
    this.#jaw = JAW.open + (JAW.smiling - JAW.open) * smile;
    const gap = 2 * widest * frame.halfWidth + 1e-3;
    this.#rise = this.#isOpen ? this.#laughRise(gap) : 0;
    const share = this.#upperShare(gap, smile);
    this.#rest = lipShape(points, frame, widest, share);
    this.#narrow = narrow * relax;
    const [left, right] = frame.local(points, NOSE_WINGS) as [Point, Point];
    const wing = Math.max(1, (right.x - left.x) / 2);
    this.#wings = {
      u: wing,
      v: (left.y + right.y) / 2,
      inwards: WINGS_NARROW * wing * smile * relax,
    };
    this.#outline = outlineOf(frame.local(points, FACE_OVAL));
    const corners = (middle[0]!.y + middle[10]!.y) / 2;
    const hanging = this.#isOpen ? Math.max(0, corners - this.#rest.seam(0)) : 0;
    const lift = Math.max(0, (this.#isOpen ? this.#rest.seam(0) : middle[5]!.y) - corners);
    this.#sinking =
      hanging > 0 ? -RAISED * hanging : LOWERED * (1 - STAYS_UP * kept) * lift * relax;
    this.#seam = through(
      Array.from({ length: 41 }, (_, k) => {
        const x = ((k - 20) / 20) * frame.halfWidth;
        const up = this.#forward(x, this.#upperInner(x), false);
        const low = this.#forward(x, this.#lowerInner(x), true);
        return { x: (up.x + low.x) / 2, y: (up.y + low.y) / 2 };
      }),
    );
  }

  /**
   * How far the chin of a laugh rises beyond the jaw's share of what the lower lip does, which is about
   * half the gap.
   * @param gap its height, pixels
   */
  #laughRise(gap: number): number {
    const eyes = this.#frame.eyeDistance;
    const beyond = gap / eyes - LAUGH.lips;
    const dropped = (LAUGH.dropped * eyes * (beyond + Math.hypot(beyond, LAUGH.knee))) / 2;
    const usual = (this.#jaw * gap) / 2;
    const room = this.#chinY - usual - this.#noseY - LAUGH.least * eyes;
    return clamp(dropped - usual, 0, Math.max(0, room));
  }

  /**
   * How far the upper lip comes to meet the lower one, share of the gap.
   * @param gap its height, pixels
   */
  #upperShare(gap: number, smile: number): number {
    const above = this.#upperOuter(0) - this.#noseY;
    const usual = Math.min(
      UPPER_SHARE.open + (UPPER_SHARE.smiling - UPPER_SHARE.open) * smile,
      Math.max(0.1, (ROOM_SHARE * above) / gap),
    );
    // nose + SEAM (chin - nose), where the chin rises by the jaw's share of what the lower lip does
    const fromNose = this.#upperInner(0) - this.#noseY;
    const toChin = this.#chinY - this.#noseY - this.#jaw * gap - this.#rise;
    const wanted = (SEAM * toChin - fromNose) / gap / (1 - SEAM * this.#jaw);
    const most = Math.min(DOWN.gap, (DOWN.room * above) / gap);
    return Math.max(usual, usual + smile * (Math.min(wanted, most) - usual));
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
    const { halfWidth } = this.#frame;
    // Each lip is stretched from its edges in the picture to those at rest.
    const outer = low ? this.#lowerOuter(u) : this.#upperOuter(u);
    const inner = low ? this.#lowerInner(u) : this.#upperInner(u);
    const gap = this.#gap(u);
    const closing = gap > 0.5 ? this.#gapAt(u) / gap : 1;
    const within = this.#isOpen ? (this.#rest.seam(u) - inner) * closing : 0;
    const edge = this.#isOpen ? (low ? this.#rest.lower(u) - outer : this.#upperEdge(u, outer)) : 0;
    const depth = clamp(
      (v - outer) / (low ? Math.min(inner - outer, -1) : Math.max(inner - outer, 1)),
      0,
      1,
    );
    let dy = edge + (within - edge) * depth;
    if (low && v > outer) {
      dy *=
        v > this.#chinY
          ? this.#jaw * (1 - smoothstep(0, 1, (v - this.#chinY) / (1.2 * halfWidth)))
          : 1 - (1 - this.#jaw) * smoothstep(0, 1, (v - outer) / Math.max(1, this.#chinY - outer));
      dy -= this.#riseAt(u, v, outer);
    } else if (!low && v < outer) {
      dy *= 1 - smoothstep(0, 1, (outer - v) / Math.max(1, outer - this.#noseY));
    }
    // The corners of a smile move inwards and down a little; those of an open mouth rise.
    const r = Math.abs(u) / halfWidth;
    const near =
      Math.exp(-(((r - 1) / 0.75) ** 2)) *
      Math.exp(-(((v - this.#line(u)) / (0.8 * halfWidth)) ** 2)) *
      smoothstep(this.#noseY - halfWidth, this.#noseY + 0.3 * halfWidth, v) *
      (1 - smoothstep(...OUTLINE, Math.abs(u) / Math.max(1, this.#outline[u < 0 ? 0 : 1](v))));
    const wing =
      Math.exp(-(((Math.abs(u) / this.#wings.u - 1) / 0.5) ** 2)) *
      Math.exp(-(((v - this.#wings.v) / (0.5 * this.#wings.u)) ** 2));
    const inwards =
      this.#narrow * halfWidth * near * Math.min(1, r) +
      this.#wings.inwards * wing * Math.min(1, Math.abs(u) / this.#wings.u);
    dy += near * this.#sinking * Math.min(1, r) ** 2;
    return { x: u - Math.sign(u) * inwards, y: v + dy };
  }

  /** How far the skin below the lower lip's outer edge rises with the chin of a laugh. */
  #riseAt(u: number, v: number, outer: number): number {
    const { halfWidth } = this.#frame;
    const along =
      v > this.#chinY
        ? 1 - smoothstep(0, 1, (v - this.#chinY) / (1.2 * halfWidth))
        : smoothstep(0, 1, (v - outer) / Math.max(1, this.#chinY - outer));
    return this.#rise * along * (1 - smoothstep(...JAW_REACH, Math.abs(u) / halfWidth));
  }

  /** How far the upper lip's outer edge moves: the skin below the nose would fold if it rose more. */
  #upperEdge(u: number, outer: number): number {
    return Math.max(this.#rest.upper(u) - outer, -ROOM_SHARE * Math.max(0, outer - this.#noseY));
  }

  /**
   * The inverse of #forward: Newton's method along y, fixed-point iteration along x. Where the
   * slope changes abruptly, at the edge of a lip, Newton's method may alternate between its sides:
   * bisection follows.
   */
  #inverse(u: number, v: number, low: boolean): Point {
    let x = u;
    let y = v;
    for (let k = 0; k < 8; k++) {
      const here = this.#forward(x, y, low);
      if (Math.abs(u - here.x) + Math.abs(v - here.y) < 0.01) {
        return { x, y };
      }
      const slope = (this.#forward(x, y + 0.5, low).y - here.y) * 2;
      x += u - here.x;
      y += (v - here.y) / Math.max(0.4, slope);
    }
    let [from, to] = [v - this.#frame.halfWidth, v + this.#frame.halfWidth];
    for (let k = 0; k < 16; k++) {
      y = (from + to) / 2;
      const here = this.#forward(x, y, low);
      x += u - here.x;
      [from, to] = here.y < v ? [y, to] : [from, y];
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
    const other = new Uint8Array(3);
    for (let y = 0; y < image.height; y++) {
      for (let x = 0; x < image.width; x++) {
        const { x: u, y: v } = this.#frame.toLocal(x + 0.5, y + 0.5);
        if (Math.abs(u) > reach || v < top || v > bottom) {
          continue;
        }
        const to = (y * image.width + x) * 3;
        const below = v - this.#seam(u);
        this.#take(below > 0 ? lower : upper, u, v, below > 0, out.data, to);
        if (Math.abs(below) < EDGE) {
          // A pixel that both lips share: without this a seam that is not level is a staircase.
          this.#take(below > 0 ? upper : lower, u, v, below <= 0, other, 0);
          const share = 0.5 - Math.abs(below) / EDGE / 2;
          for (let c = 0; c < 3; c++) {
            out.data[to + c] = out.data[to + c]! + share * (other[c]! - out.data[to + c]!) + 0.5;
          }
        }
      }
    }
    return out;
  }

  /** Samples a picture where a pixel at (u, v) comes from. */
  #take(image: RgbImage, u: number, v: number, low: boolean, out: Uint8Array, at: number): void {
    const source = this.#inverse(u, v, low);
    const from = this.#frame.toPicture(source.x, source.y);
    sampleCubic(image, from.x - 0.5, from.y - 0.5, out, at);
  }

  /**
   * Draws the dark seam that closed lips have: in their own hue, darkest in its middle and before the
   * corners, where it fades.
   * @param softness 1 in a sharp picture, more in an enlarged one
   * @param dark how dark a line the portrait has there, 0..1
   */
  drawSeam(image: RgbImage, softness: number, dark = 0): void {
    const { faceHeight } = this.#frame;
    // A blur makes a line wider, and fainter by as much.
    const sharp = 1.2 + 0.0025 * faceHeight;
    const thickness = Math.hypot(sharp, SHARP_EDGE * Math.sqrt(softness ** 2 - 1));
    const strength = (0.36 + 0.45 * dark) * (sharp / thickness);
    const width = thickness * (1 + 0.4 * dark);
    const middle = (this.#left + this.#right) / 2;
    const half = ((this.#right - this.#left) / 2) * (1 - this.#narrow);
    for (let y = 0; y < image.height; y++) {
      for (let x = 0; x < image.width; x++) {
        const { x: u, y: v } = this.#frame.toLocal(x + 0.5, y + 0.5);
        const r = Math.abs(u - middle) / half;
        if (r > 1.1) {
          continue;
        }
        const distance = (v - this.#seam(u)) / width / (1 - 0.3 * r);
        if (Math.abs(distance) > 4) {
          continue;
        }
        const along =
          0.74 + 0.26 * Math.exp(-((r / 0.32) ** 2)) + 0.26 * Math.exp(-(((r - 0.86) / 0.13) ** 2));
        const depth =
          strength *
          along *
          Math.exp((-distance * distance) / 1.8) *
          (1 - smoothstep(0.82, 1.05, r));
        shadePixel(image, y * image.width + x, 1 - depth);
      }
    }
  }
}
