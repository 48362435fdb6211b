// Softens the folds that a smile draws from the nose to the corners of the mouth and beside them.
import { lumaAt } from '../imaging/colour.ts';
import { clamp, type Plane, plane, type RgbImage, sampleAt, smoothstep } from '../imaging/image.ts';
import { blur, dilate, erode, polygonMask } from '../imaging/mask.ts';
import {
  FACE_OVAL,
  LOWER_OUTER,
  type Landmarks,
  NOSE_BASE,
  px,
  py,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import { MouthFrame } from './mouth-frame.ts';

/** Widest fold, share of the face's height. */
const WIDEST = 0.045;
/** Luma by which a fold is darker than the skin beside it: where it begins to count, and fully. */
const DEPTH: readonly [number, number] = [2, 9];
/** Mean depth of dark lines in skin, and in a beard: there a fold cannot be told from hair. */
const HAIRY: readonly [number, number] = [8, 16];
/** Most of a fold that is removed. All of it would look painted. */
const MOST = 0.75;

/**
 * Softens the folds in place.
 * @param points landmarks of `image`
 * @param amount 0..1
 */
export function softenFolds(image: RgbImage, points: Landmarks, amount: number): void {
  const frame = new MouthFrame(points);
  const { width, height } = image;
  const { halfWidth, faceHeight } = frame;
  const nose = frame.local(points, [NOSE_BASE])[0]!.y;
  const lips = dilate(
    polygonMask(
      width,
      height,
      [...UPPER_OUTER, ...LOWER_OUTER.toReversed()].map((i) => ({
        x: px(points, i),
        y: py(points, i),
      })),
    ),
    2,
  );
  // The region: beside the mouth, from the wings of the nose to the jaw.
  const region = plane(width, height);
  const luma = plane(width, height);
  const margin = Math.ceil(WIDEST * faceHeight);
  for (let i = 0; i < region.data.length; i++) {
    const { x: u, y: v } = frame.toLocal((i % width) + 0.5, Math.floor(i / width) + 0.5);
    const r = Math.abs(u) / halfWidth;
    if (r > 2.6 || v < nose - 0.8 * halfWidth - margin || v > 2 * halfWidth + margin) {
      continue;
    }
    luma.data[i] = 1 + lumaAt(image, i);
    region.data[i] =
      smoothstep(0.72, 0.95, r) *
      smoothstep(2.3, 1.9, r) *
      smoothstep(nose - 0.55 * halfWidth, nose - 0.15 * halfWidth, v) *
      smoothstep(1.9 * halfWidth, 1.1 * halfWidth, v) *
      // The wing of the nose ends in a fold of its own.
      smoothstep(0.8, 1.05, r + smoothstep(nose, nose + 0.3 * halfWidth, v)) *
      // The dark points of the corners that a smile has pulled apart belong to it.
      (1 - Math.min(1, lips.data[i]!) * smoothstep(1, 0.85, r));
  }
  const radius = Math.max(2, Math.round((WIDEST * faceHeight) / 2));
  const closed = erode(dilate(luma, radius), radius);
  const depth = plane(width, height);
  let [sum, mass] = [0, 1];
  for (let i = 0; i < depth.data.length; i++) {
    if (region.data[i]! > 0) {
      depth.data[i] = closed.data[i]! - luma.data[i]!;
      sum += depth.data[i]! * region.data[i]!;
      mass += region.data[i]!;
    }
  }
  const strength = MOST * amount * smoothstep(HAIRY[1], HAIRY[0], sum / mass);
  if (strength < 0.02) {
    return;
  }
  levelCheeks(image, points, frame, region, lips, strength);
  // The colour of the skin beside the fold continues in it: a normalised convolution.
  const plain = plane(width, height);
  for (let i = 0; i < plain.data.length; i++) {
    plain.data[i] = luma.data[i] === 0 ? 0 : 1e-3 + Math.exp(-((depth.data[i]! / 5) ** 2));
  }
  const share = blur(plain, radius);
  const cover = blur(coverOf(depth, region), 1);
  const channel = plane(width, height);
  for (let c = 0; c < 3; c++) {
    for (let i = 0; i < plain.data.length; i++) {
      channel.data[i] = plain.data[i]! * image.data[i * 3 + c]!;
    }
    const skin = blur(channel, radius);
    for (let i = 0; i < plain.data.length; i++) {
      const alpha = strength * cover.data[i]!;
      if (alpha > 0.004) {
        const to = skin.data[i]! / share.data[i]!;
        image.data[i * 3 + c] =
          image.data[i * 3 + c]! + alpha * (to - image.data[i * 3 + c]!) + 0.5;
      }
    }
  }
}

/** Side of the cells in which slow changes of light are looked at, pixels. */
const CELL = 4;
/** Bulges and hollows between these sizes (of a Gaussian, share of the face's height) are levelled. */
const BULGE: readonly [number, number] = [0.014, 0.1];
/** How much of them, with the folds' whole strength. */
const LEVELLED = 0.9;

/**
 * Levels the light on the cheeks beside the mouth: a smile pushes them into bulges, with broad bright
 * ridges and dark hollows beside them. What is finer than these stays.
 */
function levelCheeks(
  image: RgbImage,
  points: Landmarks,
  frame: MouthFrame,
  region: Plane,
  lips: Plane,
  strength: number,
): void {
  const { width, height } = image;
  const face = polygonMask(
    width,
    height,
    FACE_OVAL.map((i) => ({ x: px(points, i), y: py(points, i) })),
  );
  const cells = plane(Math.floor(width / CELL), Math.floor(height / CELL));
  const share = plane(cells.width, cells.height);
  // Skin of the lower face. Nostrils, lips and what is dark are left out of every mean.
  const sums = [cells, cells, cells].map(({ data }) => ({ ...cells, data: data.slice() }));
  const nose = frame.local(points, [NOSE_BASE])[0]!.y;
  for (let i = 0; i < face.data.length; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    const { x: u, y: v } = frame.toLocal(x + 0.5, y + 0.5);
    const beside = Math.abs(u) > 0.75 * frame.halfWidth || v > nose + 0.12 * frame.halfWidth;
    if (face.data[i]! < 0.9 || lips.data[i]! > 0.05 || !beside || v < nose - frame.halfWidth) {
      continue;
    }
    const cell = Math.floor(y / CELL) * cells.width + Math.floor(x / CELL);
    share.data[cell]!++;
    for (let c = 0; c < 3; c++) {
      sums[c]!.data[cell]! += image.data[i * 3 + c]!;
    }
  }
  const scales = BULGE.map((size) => (size * frame.faceHeight) / CELL);
  const shares = scales.map((sigma) => blur(share, sigma));
  const soft = blur(region, 2);
  for (let c = 0; c < 3; c++) {
    const [fine, coarse] = scales.map((sigma) => blur(sums[c]!, sigma)) as [Plane, Plane];
    const change = plane(cells.width, cells.height);
    for (let i = 0; i < change.data.length; i++) {
      const known = shares[0]!.data[i]!;
      change.data[i] =
        known > 1 ? coarse.data[i]! / shares[1]!.data[i]! - fine.data[i]! / known : 0;
    }
    for (let i = 0; i < soft.data.length; i++) {
      const alpha = LEVELLED * strength * soft.data[i]!;
      if (alpha < 0.004) {
        continue;
      }
      const [x, y] = [(i % width) / CELL - 0.5, Math.floor(i / width) / CELL - 0.5];
      image.data[i * 3 + c] = clamp(
        image.data[i * 3 + c]! + alpha * sampleAt(change, x, y) + 0.5,
        0,
        255,
      );
    }
  }
}

const coverOf = (depth: Plane, region: Plane): Plane => ({
  ...depth,
  data: depth.data.map((value, i) => region.data[i]! * smoothstep(...DEPTH, value)),
});
