// Crops the head: a square of PICTURE_SIZE pixels with space round the head, nearly upright,
// resampled once (Lanczos 3).
import { PICTURE_SIZE } from '../../../media/picture.ts';
import { isCloseUp } from './cut-off.ts';
import type { DetectedFace } from './face-landmarker.ts';
import { clamp, type Pyramid, type RgbImage, rgbImage, type Square } from '../imaging/image.ts';
import { FACE_OVAL, LANDMARK_COUNT, type Landmarks, px, py, pz } from './landmarks.ts';
import { type Box, mirrorEdges } from './mirror-edges.ts';

/** The square that becomes the picture of a face. */
export interface Crop {
  readonly image: RgbImage;
  /** Landmarks in pixels of the crop. */
  readonly points: Landmarks;
  /** Source pixels per crop pixel. Below 1 the source was enlarged. */
  readonly scale: number;
  /**
   * Side of the square in units of the larger extent of the face. CROP_ROOM, or less when the
   * picture has less space.
   */
  readonly room: number;
  /** Where the crop lies in the source. */
  readonly square: Square;
  /** Share of the crop that lies outside the picture and was continued, 0..1. */
  readonly inpaintedShare: number;
}

/**
 * Side of the crop in units of the face: it holds hair, neck and the upper edge of the shoulders,
 * and leaves space for head movement.
 */
export const CROP_ROOM = 2.05;
/** How far the crop is moved up from the centre of the face, share of its side. */
const LIFT = 0.035;
/** Side of the crop for tall hair, in units of the face. */
export const TALL_HAIR_ROOM = 2.3;
/**
 * Least side that shows a whole head, in units of the face. A narrower picture is continued: its edges
 * are mirrored. Not one that is lower, or cuts off the forehead: nobody knows what was above.
 */
const MIN_ROOM = 1.5;
/** How far ears and hair stand out beside the outline of the face, share of its width. */
const EARS = 0.16;
/** Space below the chin, in units of the face. */
const JAW_ROOM = 0.08;
/** Roll that the crop keeps, radians: a head at a slight angle looks natural. */
const KEPT_ROLL = (8 * Math.PI) / 180;
/** The same where a turned square would not fit into the picture. */
const LEANING_ROLL = (15 * Math.PI) / 180;
/** A head is turned beyond this, radians, only where the picture is. */
export const MAX_ROLL = (40 * Math.PI) / 180;
/** Kernel radius, in samples of the lower of the two resolutions. */
const LANCZOS_RADIUS = 3;

/**
 * How far the whole picture is turned when a face in it has this roll: a multiple of a quarter turn,
 * radians, 0 up to MAX_ROLL.
 */
export const pictureTurn = (roll: number): number =>
  Math.abs(roll) <= MAX_ROLL ? 0 : Math.round(roll / (Math.PI / 2)) * (Math.PI / 2);

/**
 * Crops one face. A picture on its side or upside down is turned.
 * @param room side of the square in units of the face, as far as the picture has the space
 * @param mayBeClose whether a face that the edges touch, or a low picture, stays a close-up; the
 * picture is continued otherwise
 */
export function cropFace(
  pyramid: Pyramid,
  face: DetectedFace,
  room: number = CROP_ROOM,
  mayBeClose = true,
): Crop {
  const turn = pictureTurn(face.roll);
  const square = headSquare(face, turn, room, mayBeClose, pyramid.image);
  const { image, known } = resample(pyramid, square, PICTURE_SIZE);
  const unknown = known.reduce((count, value) => count + (value ? 0 : 1), 0);
  if (unknown > 0) {
    mirrorEdges(image, known, pyramid, square, withEars(faceBox(face.points)));
  }
  return {
    image,
    points: toSquare(face.points, square),
    scale: square.side / PICTURE_SIZE,
    room: square.side / Math.max(face.width, face.height),
    square,
    inpaintedShare: unknown / known.length,
  };
}

/** The square to crop, in source pixels: turned upright if the picture has the space for that. */
function headSquare(
  face: DetectedFace,
  turn: number,
  room: number,
  mayBeClose: boolean,
  { width, height }: RgbImage,
): Square {
  const isTight = mayBeClose && isCloseUp(face, { width, height });
  const roll = face.roll - turn;
  const turned = (kept: number): { readonly square: Square; readonly fits: boolean } => {
    const tilt = roll - clamp(roll, -kept, kept);
    const angle = turn + tilt;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const box = faceBox(face.points, angle);
    const extent = Math.max(box.right - box.left, box.bottom - box.top);
    const most = mayBeClose ? (Math.abs(Math.sin(turn)) < 0.5 ? height : width) : Infinity;
    const least = isTight ? 0 : Math.min(MIN_ROOM * extent, most);
    const side = clamp(Math.min(width, height), least, room * extent);
    const u = (box.left + box.right) / 2;
    // Leave more space above than below: hair needs it, the neck does not.
    const middle = (box.top + box.bottom) / 2 - LIFT * side - ((room - CROP_ROOM) * extent) / 2;
    // The jaw of a close-up needs space, too.
    const v = isTight ? Math.max(middle, box.bottom + JAW_ROOM * extent - side / 2) : middle;
    // Move the square where the picture has space on the other side, rather than continue it; not
    // for the outer halves of the corners of a tilted one.
    const span = (side * (1 + Math.cos(tilt) + Math.abs(Math.sin(tilt)))) / 2;
    const inside = (at: number, length: number): number =>
      clamp(at, Math.min(span / 2, length - span / 2), Math.max(span / 2, length - span / 2));
    return {
      square: {
        cx: inside(cos * u - sin * v, width),
        cy: inside(sin * u + cos * v, height),
        side,
        angle,
      },
      fits: span <= Math.min(width, height),
    };
  };
  const { square, fits } = turned(KEPT_ROLL);
  return fits ? square : turned(LEANING_ROLL).square;
}

/** The rectangle round the outline of a face in axes that are turned by `angle`. */
function faceBox(points: Landmarks, angle = 0): Box {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const us = FACE_OVAL.map((index) => cos * px(points, index) + sin * py(points, index));
  const vs = FACE_OVAL.map((index) => -sin * px(points, index) + cos * py(points, index));
  return {
    left: Math.min(...us),
    right: Math.max(...us),
    top: Math.min(...vs),
    bottom: Math.max(...vs),
  };
}

function withEars({ left, right, top, bottom }: Box): Box {
  const more = EARS * (right - left);
  return { left: left - more, right: right + more, top, bottom };
}

/** Landmarks in pixels of the crop. */
function toSquare(points: Landmarks, { cx, cy, side, angle }: Square): Landmarks {
  const scale = PICTURE_SIZE / side;
  const cos = Math.cos(angle) * scale;
  const sin = Math.sin(angle) * scale;
  const out = new Float32Array(LANDMARK_COUNT * 3);
  for (let i = 0; i < LANDMARK_COUNT; i++) {
    const dx = px(points, i) - cx;
    const dy = py(points, i) - cy;
    out[i * 3] = cos * dx + sin * dy + PICTURE_SIZE / 2;
    out[i * 3 + 1] = -sin * dx + cos * dy + PICTURE_SIZE / 2;
    out[i * 3 + 2] = pz(points, i) * scale;
  }
  return out;
}

/** Entries of the kernel table per sample. */
const TABLE_STEPS = 512;
const LANCZOS = Float32Array.from({ length: LANCZOS_RADIUS * TABLE_STEPS + 2 }, (_, i) => {
  const t = (i / TABLE_STEPS) * Math.PI;
  return t === 0
    ? 1
    : i >= LANCZOS_RADIUS * TABLE_STEPS
      ? 0
      : (LANCZOS_RADIUS * Math.sin(t) * Math.sin(t / LANCZOS_RADIUS)) / (t * t);
});

/** What both ways of sampling share: positions are in pixels of `source`. */
interface Sampling {
  readonly source: RgbImage;
  readonly cx: number;
  readonly cy: number;
  /** Source pixels per pixel of the crop. */
  readonly scale: number;
  /** Factor by which the kernel is widened for downscaling. */
  readonly widen: number;
  /** Kernel weights per axis. */
  readonly taps: number;
  readonly size: number;
}

/**
 * Samples a square with the Lanczos kernel, which is widened for downscaling.
 * @returns `known` is 1 per pixel of the crop that lies inside the picture, else 0
 */
export function resample(
  pyramid: Pyramid,
  square: Square,
  size: number,
): { image: RgbImage; known: Uint8Array } {
  const { image: source, factor } = pyramid.level(square.side / size);
  const scale = square.side / size / factor;
  const widen = Math.max(1, scale);
  const taps = Math.ceil(LANCZOS_RADIUS * widen) * 2;
  const [cx, cy] = [square.cx / factor, square.cy / factor];
  const sampling = { source, cx, cy, scale, widen, taps, size };
  return square.angle === 0
    ? sampleUpright(sampling)
    : sampleRotated(sampling, Math.cos(square.angle), Math.sin(square.angle));
}

/** Whether a position lies in a row, or column, of `length` pixels. */
const isInside = (at: number, length: number): boolean => at >= -0.5 && at <= length - 0.5;

function sampleRotated(
  { source, cx, cy, scale, widen, taps, size }: Sampling,
  cosine: number,
  sine: number,
): { image: RgbImage; known: Uint8Array } {
  const wx = new Float32Array(taps);
  const wy = new Float32Array(taps);
  const cos = cosine * scale;
  const sin = sine * scale;
  const out = rgbImage(size, size);
  const known = new Uint8Array(size * size);
  const stride = source.width * 3;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const u = x + 0.5 - size / 2;
      const v = y + 0.5 - size / 2;
      const sx = cx + cos * u - sin * v - 0.5;
      const sy = cy + sin * u + cos * v - 0.5;
      if (!isInside(sx, source.width) || !isInside(sy, source.height)) {
        continue;
      }
      const at = y * size + x;
      known[at] = 1;
      const x0 = Math.floor(sx) - taps / 2 + 1;
      const y0 = Math.floor(sy) - taps / 2 + 1;
      const sum = kernel(wx, sx - x0, widen) * kernel(wy, sy - y0, widen);
      let [r, g, b] = [0, 0, 0];
      for (let j = 0; j < taps; j++) {
        const row = clamp(y0 + j, 0, source.height - 1) * stride;
        let [rr, gg, bb] = [0, 0, 0];
        for (let i = 0; i < taps; i++) {
          const from = row + clamp(x0 + i, 0, source.width - 1) * 3;
          const w = wx[i]!;
          rr += w * source.data[from]!;
          gg += w * source.data[from + 1]!;
          bb += w * source.data[from + 2]!;
        }
        r += wy[j]! * rr;
        g += wy[j]! * gg;
        b += wy[j]! * bb;
      }
      out.data[at * 3] = clamp(r / sum + 0.5, 0, 255);
      out.data[at * 3 + 1] = clamp(g / sum + 0.5, 0, 255);
      out.data[at * 3 + 2] = clamp(b / sum + 0.5, 0, 255);
    }
  }
  return { image: out, known };
}

/** The taps of one axis, for each pixel of the crop. */
interface Axis {
  /** The first source pixel under the kernel, or undefined outside the picture. */
  readonly first: readonly (number | undefined)[];
  /** `taps` weights per pixel, and their sum. */
  readonly weights: readonly Float32Array[];
  readonly sums: readonly number[];
}

function axisOf(centre: number, length: number, { scale, widen, taps, size }: Sampling): Axis {
  const first: (number | undefined)[] = [];
  const weights: Float32Array[] = [];
  const sums: number[] = [];
  for (let k = 0; k < size; k++) {
    const at = centre + scale * (k + 0.5 - size / 2) - 0.5;
    const from = Math.floor(at) - taps / 2 + 1;
    weights.push(new Float32Array(taps));
    sums.push(kernel(weights[k]!, at - from, widen));
    first.push(isInside(at, length) ? from : undefined);
  }
  return { first, weights, sums };
}

/**
 * Without rotation each source row is filtered once for all rows of the crop that need it: the same
 * sums in the same order as sampleRotated, in a third of the time.
 */
function sampleUpright(sampling: Sampling): { image: RgbImage; known: Uint8Array } {
  const { source, taps, size } = sampling;
  const columns = axisOf(sampling.cx, source.width, sampling);
  const rows = axisOf(sampling.cy, source.height, sampling);
  const out = rgbImage(size, size);
  const known = new Uint8Array(size * size);
  // A window of `taps` source rows, each at its number modulo `taps`.
  const filtered = Array.from({ length: taps }, () => new Float64Array(size * 3));
  const held = new Int32Array(taps).fill(-1);
  const sums = new Float64Array(size * 3);
  for (let y = 0; y < size; y++) {
    const y0 = rows.first[y];
    if (y0 === undefined) {
      continue;
    }
    sums.fill(0);
    const lineAt = (j: number): Float64Array => {
      const row = clamp(y0 + j, 0, source.height - 1);
      const line = filtered[row % taps]!;
      if (held[row % taps] !== row) {
        held[row % taps] = row;
        filterRow(source, row, columns, line);
      }
      return line;
    };
    // Two rows at a time (there is an even number): sums are loaded and stored half as often.
    for (let j = 0; j < taps; j += 2) {
      const [above, below] = [lineAt(j), lineAt(j + 1)];
      const [weightAbove, weightBelow] = [rows.weights[y]![j]!, rows.weights[y]![j + 1]!];
      for (let k = 0; k < sums.length; k++) {
        sums[k] = sums[k]! + weightAbove * above[k]! + weightBelow * below[k]!;
      }
    }
    for (let x = 0; x < size; x++) {
      if (columns.first[x] === undefined) {
        continue;
      }
      const at = y * size + x;
      known[at] = 1;
      const sum = columns.sums[x]! * rows.sums[y]!;
      for (let c = 0; c < 3; c++) {
        out.data[at * 3 + c] = clamp(sums[x * 3 + c]! / sum + 0.5, 0, 255);
      }
    }
  }
  return { image: out, known };
}

/** Filters one row of the source: `line` gets three weighted sums per column of the crop. */
function filterRow(source: RgbImage, row: number, columns: Axis, line: Float64Array): void {
  const { data, width } = source;
  const start = row * width * 3;
  for (let x = 0; x < columns.first.length; x++) {
    const x0 = columns.first[x];
    if (x0 === undefined) {
      continue;
    }
    const weights = columns.weights[x]!;
    const isInner = x0 >= 0 && x0 + weights.length <= width;
    let r = 0;
    let g = 0;
    let b = 0;
    for (let i = 0; i < weights.length; i++) {
      const from = start + (isInner ? x0 + i : clamp(x0 + i, 0, width - 1)) * 3;
      const w = weights[i]!;
      r += w * data[from]!;
      g += w * data[from + 1]!;
      b += w * data[from + 2]!;
    }
    line[x * 3] = r;
    line[x * 3 + 1] = g;
    line[x * 3 + 2] = b;
  }
}

/**
 * Writes the kernel weights of the taps at 0, 1, 2… for a sample at position `at`.
 * @returns the sum of the weights
 */
function kernel(weights: Float32Array, at: number, widen: number): number {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    const t = Math.min((Math.abs(i - at) / widen) * TABLE_STEPS, LANCZOS_RADIUS * TABLE_STEPS);
    const k = Math.floor(t);
    const w = LANCZOS[k]! + (t - k) * (LANCZOS[k + 1]! - LANCZOS[k]!);
    weights[i] = w;
    sum += w;
  }
  return sum;
}
