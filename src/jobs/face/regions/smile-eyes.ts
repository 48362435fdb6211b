// Relaxes the upper half of a smile: raised cheeks sink, lower lids with them, and bags and crow's
// feet lose contrast.
import { labAt } from '../imaging/colour.ts';
import { curveThrough, type Curve, tabulated } from '../imaging/curve.ts';
import { type Plane, plane, type RgbImage, sampleAt, smoothstep } from '../imaging/image.ts';
import { blur, dilate, erode, polygonMask } from '../imaging/mask.ts';
import { sampleCubic } from '../imaging/sample-cubic.ts';
import {
  type EyeIndices,
  FACE_OVAL,
  LANDMARK_COUNT,
  type Landmarks,
  LEFT_EYE,
  NOSE_OUTLINE,
  px,
  py,
  RIGHT_EYE,
} from '../detect/landmarks.ts';
import { cheekColour, OTHER } from './cheek-colour.ts';
import { MouthFrame } from './mouth-frame.ts';
import { type Box, flattenSizes, indexIn } from './smile-folds.ts';

/** Less of a smile than this leaves the eyes as they are. */
const LEAST = 0.08;

/** How far the lower lid of a broad smile sinks, share of the height of the eye. */
const LID = 0.28;
/**
 * Mean height of both eyes in their widths: closed ones stay, and a wide one opens no further.
 * Measured: closed eyes that do not count as such have 0.19 and 0.21, those of a laugh 0.226 at
 * least.
 */
const OPENS: readonly [number, number] = [0.205, 0.225];
const IS_WIDE: readonly [number, number] = [0.31, 0.42];
/** The share of the movement over the height of the eye: the iris moves less than the lid. */
const EXPONENT = 1.6;
/** How far the cheek of a broad smile sinks, widths of the eye. */
const CHEEK = 0.1;
/** Where it sinks most, widths of the eye below its lower lid, and how far that reaches. */
const APEX = { down: 0.62, aside: 0.12, across: 0.85, along: 0.42 } as const;
/** How far below the lid its movement ends, widths of the eye (sigma). */
const LID_REACH = 0.35;

/** Bags and crow's feet between these sizes (sigma of a Gaussian, share of the face's height). */
const SIZES: readonly [number, number] = [0.006, 0.05];
/** How much of them a broad smile loses. */
const FLATTENED = 0.82;
/** Difference from the cheeks' colour (a*, b*) of make-up and hair: that stays. */
const MADE_UP: readonly [number, number] = [16, 26];
/** How much lighter (L*) than the cheeks the white of an eye beyond the lid's landmarks is. */
const WHITE: readonly [number, number] = [12, 24];
/** Distance from the outline of the face over which all changes begin, share of its height. */
const MARGIN = 0.03;
/** Pixels in a cell, along x and y: the inside of the face is known that finely. */
const CELL = 4;

/**
 * @param amount how far the smile raised the cheeks, 0..1
 * @returns the picture and its landmarks with cheeks and lower lids at rest
 */
export function lowerCheeks(
  image: RgbImage,
  points: Landmarks,
  amount: number,
): { readonly image: RgbImage; readonly points: Landmarks } {
  if (amount < LEAST) {
    return { image, points };
  }
  const frame = new MouthFrame(points);
  const within = withinFace(image, points, MARGIN * frame.faceHeight);
  const areasOf = (found: Landmarks): EyeArea[] =>
    [LEFT_EYE, RIGHT_EYE].map((eye) => new EyeArea(found, eye, frame, within));
  const areas = areasOf(points);
  const open = areas.reduce((sum, { ratio }) => sum + ratio, 0) / areas.length;
  const share = amount * smoothstep(...OPENS, open);
  if (share < LEAST) {
    return { image, points };
  }
  const out: RgbImage = { ...image, data: image.data.slice() };
  const moved = points.slice();
  for (const area of areas) {
    area.sink(image, out, points, moved, share);
  }
  for (const area of areasOf(moved)) {
    area.flatten(out, moved, share);
  }
  return { image: out, points: moved };
}

/** 1 inside the face, 0 at its outline; one value per cell. */
function withinFace({ width, height }: RgbImage, points: Landmarks, margin: number): Plane {
  const face = polygonMask(
    Math.ceil(width / CELL),
    Math.ceil(height / CELL),
    FACE_OVAL.map((i) => ({ x: px(points, i) / CELL, y: py(points, i) / CELL })),
  );
  return blur(erode(face, Math.max(1, Math.round(margin / CELL))), (0.5 * margin) / CELL);
}

/** The surroundings of one eye: down to the cheek, and beyond its outer corner. */
class EyeArea {
  readonly #frame: MouthFrame;
  readonly #eye: EyeIndices;
  readonly #upper: Curve;
  readonly #lower: Curve;
  /** Middle of the eye and half its width, in mouth coordinates. `outwards`: 1 or -1. */
  readonly #middle: number;
  readonly #half: number;
  readonly #outwards: number;
  readonly #height: number;
  /** The middle of the nose, in half widths of the eye; the outer corner lies at 1. */
  readonly #nose: number;
  readonly #within: Plane;

  /** @param within see `withinFace` */
  constructor(points: Landmarks, eye: EyeIndices, frame: MouthFrame, within: Plane) {
    this.#frame = frame;
    this.#eye = eye;
    this.#within = within;
    const [outer, inner] = frame.local(points, [eye.outer, eye.inner]).map(({ x }) => x) as [
      number,
      number,
    ];
    this.#middle = (outer + inner) / 2;
    this.#half = Math.max(1, Math.abs(outer - inner) / 2);
    this.#outwards = Math.sign(outer - inner);
    const inners = frame.local(points, [LEFT_EYE.inner, RIGHT_EYE.inner]);
    const nose = (inners[0]!.x + inners[1]!.x) / 2;
    this.#nose = Math.min(-1.1, ((nose - this.#middle) / this.#half) * this.#outwards);
    const margin = (lid: readonly number[]): Curve =>
      tabulated(
        curveThrough(frame.local(points, [eye.outer, ...lid, eye.inner])),
        this.#middle - 4 * this.#half,
        this.#middle + 4 * this.#half,
      );
    this.#upper = margin(eye.upper);
    this.#lower = margin(eye.lower);
    const heights = [-0.5, -0.25, 0, 0.25, 0.5].map((s) => {
      const u = this.#middle + s * this.#half;
      return this.#lower(u) - this.#upper(u);
    });
    this.#height = Math.max(0, ...heights);
  }

  /** A part of the picture round the eye; distances from its middle, in half widths of the eye. */
  #boxOf(
    image: RgbImage,
    sides: { readonly inner: number; readonly outer: number },
    above: number,
    below: number,
  ): Box {
    const { x, y } = this.#frame.toPicture(this.#middle, this.#lower(this.#middle));
    const [toLeft, toRight] =
      this.#outwards < 0 ? [sides.outer, sides.inner] : [sides.inner, sides.outer];
    const left = Math.max(0, Math.round(x - toLeft * this.#half));
    const top = Math.max(0, Math.round(y - above * this.#half));
    return {
      left,
      top,
      width: Math.max(1, Math.min(image.width, Math.round(x + toRight * this.#half)) - left),
      height: Math.max(1, Math.min(image.height, Math.round(y + below * this.#half)) - top),
    };
  }

  /** Height of the eye in its widths. */
  get ratio(): number {
    return this.#height / (2 * this.#half);
  }

  #withinAt(x: number, y: number): number {
    return sampleAt(this.#within, x / CELL - 0.5, y / CELL - 0.5);
  }

  /** How far the point sinks when the smile is relaxed by `amount`, pixels. */
  #sinking(u: number, v: number, amount: number): number {
    const width = 2 * this.#half;
    const s = ((u - this.#middle) / this.#half) * this.#outwards;
    const [top, bottom] = [this.#upper(u), this.#lower(u)];
    if (v <= top && v <= bottom) {
      return 0;
    }
    const lid =
      LID *
      amount *
      this.#height *
      (1 - smoothstep(...IS_WIDE, this.ratio)) *
      smoothstep(1.05, 0.1, Math.abs(s));
    if (v < bottom) {
      return lid * ((v - top) / (bottom - top)) ** EXPONENT;
    }
    const below = (v - bottom) / width;
    const { down, aside, across, along } = APEX;
    const cheek =
      CHEEK *
      amount *
      width *
      Math.exp(-(((s - aside) / 2 / across) ** 2) - ((below - down) / along) ** 2) *
      smoothstep(0, 0.4, below) *
      // The nose stays.
      smoothstep(0.8, -0.2, (s + 1) / (this.#nose + 1));
    return lid * Math.exp(-((below / LID_REACH) ** 2)) + cheek;
  }

  /** Warps the area of `from` into `to`, and moves its landmarks. */
  sink(from: RgbImage, to: RgbImage, points: Landmarks, moved: Landmarks, amount: number): void {
    const box = this.#boxOf(from, { inner: 2.2, outer: 3.6 }, 1.2, 4);
    const { left, top, width, height } = box;
    const frame = this.#frame;
    const field = plane(width, height);
    for (let i = 0; i < field.data.length; i++) {
      const x = left + (i % width) + 0.5;
      const y = top + Math.floor(i / width) + 0.5;
      const { x: u, y: v } = frame.toLocal(x, y);
      const far = this.#sinking(u, v, amount);
      field.data[i] = far > 0 ? far * this.#withinAt(x, y) : 0;
    }
    const at = (x: number, y: number): number => sampleAt(field, x - left - 0.5, y - top - 0.5);
    const [dx, dy] = [-frame.sin, frame.cos];
    for (let i = 0; i < field.data.length; i++) {
      const x = left + (i % width) + 0.5;
      const y = top + Math.floor(i / width) + 0.5;
      let far = field.data[i]!;
      for (let k = 0; k < 5; k++) {
        far = at(x - dx * far, y - dy * far);
      }
      if (far > 0.02) {
        const target = indexIn(from, box, i) * 3;
        sampleCubic(from, x - dx * far - 0.5, y - dy * far - 0.5, to.data, target);
      }
    }
    for (let i = 0; i < LANDMARK_COUNT; i++) {
      const [x, y] = [px(points, i), py(points, i)];
      if (x > left && y > top && x < left + width && y < top + height) {
        const far = at(x, y);
        moved[i * 3] = moved[i * 3]! + dx * far;
        moved[i * 3 + 1] = moved[i * 3 + 1]! + dy * far;
      }
    }
  }

  /** Flattens bags and crow's feet in place. */
  flatten(image: RgbImage, points: Landmarks, amount: number): void {
    const box = this.#boxOf(image, { inner: 2, outer: 3.4 }, 1.6, 2.2);
    const { left, top, width, height } = box;
    const { faceHeight } = this.#frame;
    const { outer, inner, upper, lower } = this.#eye;
    const mask = (indices: readonly number[]): Plane =>
      polygonMask(
        width,
        height,
        indices.map((i) => ({ x: px(points, i) - left, y: py(points, i) - top })),
      );
    const lashes = dilate(
      mask([outer, ...upper, inner, ...lower.toReversed()]),
      Math.max(2, Math.round(0.012 * faceHeight)),
    );
    const soft = blur(lashes, 1.5);
    const nose = blur(mask(NOSE_OUTLINE), 0.02 * faceHeight);
    const cheek = cheekColour(image, points);
    const [region, bare, skin] = [0, 1, 2].map(() => plane(width, height)) as [Plane, Plane, Plane];
    for (let i = 0; i < region.data.length; i++) {
      const { l, a, b } = labAt(image, indexIn(image, box, i));
      const [x, y] = [left + (i % width) + 0.5, top + Math.floor(i / width) + 0.5];
      const { x: u, y: v } = this.#frame.toLocal(x, y);
      const within = this.#withinAt(x, y);
      bare.data[i] = lashes.data[i]! < 0.05 && within > 0.3 ? 1 : 0;
      const other = Math.hypot((l - cheek.l) / 2, a - cheek.a, b - cheek.b);
      skin.data[i] = bare.data[i]! * (1 - smoothstep(...OTHER, other));
      region.data[i] =
        within *
        (1 - Math.min(1, soft.data[i]!)) *
        Math.max(0, 1 - 2 * nose.data[i]!) *
        (1 - smoothstep(...MADE_UP, Math.hypot(a - cheek.a, b - cheek.b))) *
        (1 - smoothstep(...WHITE, l - cheek.l)) *
        this.#folds(u, v);
    }
    const [share, known] = [blur(skin, 0.03 * faceHeight), blur(bare, 0.03 * faceHeight)];
    for (let i = 0; i < region.data.length; i++) {
      const ofSkin = share.data[i]! / Math.max(0.05, known.data[i]!);
      region.data[i] = region.data[i]! * smoothstep(0.45, 0.8, ofSkin);
    }
    flattenSizes(
      image,
      { box, region: blur(region, 1.5), bare, skin },
      [SIZES[0] * faceHeight, SIZES[1] * faceHeight],
      FLATTENED * amount,
    );
  }

  /** Where bags and crow's feet lie, 0..1. */
  #folds(u: number, v: number): number {
    const width = 2 * this.#half;
    const s = ((u - this.#middle) / this.#half) * this.#outwards;
    const below = (v - this.#lower(u)) / width;
    const under =
      smoothstep(-0.02, 0.05, below) * smoothstep(0.75, 0.4, below) * smoothstep(-1.25, -0.9, s);
    const corner = this.#lower(this.#middle + this.#outwards * this.#half);
    const beside = smoothstep(1.05, 1.3, s) * smoothstep(-0.5, -0.25, (v - corner) / width);
    return Math.max(under * smoothstep(-0.05, 0, below), beside * smoothstep(0.75, 0.4, below));
  }
}
