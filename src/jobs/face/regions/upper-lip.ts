// Gives back the upper lip that a smile has drawn thin: people who speak show it.
import { lumaAt, lumaOf, median } from '../imaging/colour.ts';
import { type Curve, curveThrough } from '../imaging/curve.ts';
import { clamp, type Plane, plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { blur, indicesAbove, polygonMask } from '../imaging/mask.ts';
import {
  type Landmarks,
  LOWER_INNER,
  LOWER_OUTER,
  px,
  py,
  UPPER_INNER,
  UPPER_LIP,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import type { Rgb } from '../imaging/patch.ts';
import { moustache } from './moustache.ts';
import { MouthFrame } from './mouth-frame.ts';

/**
 * Median colour of the visible lower lip; undefined when too few pixels of it are visible.
 * @param unknown what does not count, 0..1 per pixel
 */
export function lowerLip(image: RgbImage, points: Landmarks, unknown?: Plane): Rgb | undefined {
  const inner = LOWER_INNER.map((i) => ({ x: px(points, i), y: py(points, i) }));
  const lip = polygonMask(image.width, image.height, [
    ...inner,
    ...LOWER_OUTER.toReversed().map((i) => ({ x: px(points, i), y: py(points, i) })),
  ]);
  const seen = indicesAbove(lip, 0.9, (i) => (unknown?.data[i] ?? 0) < 0.15);
  if (seen.length < 20) {
    return undefined;
  }
  const channel = (c: number): number => median(seen.map((i) => image.data[i * 3 + c]!));
  return [channel(0), channel(1), channel(2)];
}

/** Thickness of a thin upper lip at rest, share of the face's height. */
const THIN = 0.034;
/** Luma of the upper lip, share of that of the lower one: it faces down. */
const SHADED = 0.86;
/** Most of the lip's colour in its new part: a little skin shows the same pores and light. */
const MOST = 0.85;
/** Luma of a moustache, share of that of the lip. */
const BEARD = 0.6;

/** The outline of a lip at rest over |u| in half widths: two peaks, fine ends. */
const outline = (r: number): number =>
  r < 1
    ? (1 - r ** 2.2) ** 0.8 *
      (1 - 0.1 * Math.exp(-((r / 0.11) ** 2)) + 0.06 * Math.exp(-(((r - 0.24) / 0.14) ** 2)))
    : 0;

/**
 * Completes the upper lip in place, where it is thinner than a thin one at rest, or where skin lies in
 * its outline.
 * @param points landmarks of `image`, with closed lips; those of the upper lip are moved
 * @param lip colour of the lower lip; undefined leaves everything as it is
 * @param amount 0..1
 */
export function completeUpperLip(
  image: RgbImage,
  points: Landmarks,
  lip: Rgb | undefined,
  amount: number,
): void {
  const frame = new MouthFrame(points);
  const { halfWidth, faceHeight } = frame;
  const seam = curveThrough(frame.local(points, UPPER_INNER));
  const outer = curveThrough(frame.local(points, UPPER_OUTER));
  const strength = amount * (1 - moustache(image, frame, outer));
  if (!lip || strength < 0.05) {
    return;
  }
  const edge = (u: number): number =>
    Math.min(outer(u), seam(u) - strength * THIN * faceHeight * outline(Math.abs(u) / halfWidth));
  if (!paint(image, frame, { seam, outer, edge }, lip, strength)) {
    return;
  }
  for (const index of UPPER_LIP) {
    const { x, y } = frame.toLocal(px(points, index), py(points, index));
    const before = seam(x) - outer(x);
    if (before > 0.5) {
      const to = frame.toPicture(x, seam(x) - ((seam(x) - y) * (seam(x) - edge(x))) / before);
      points[index * 3] = to.x;
      points[index * 3 + 1] = to.y;
    }
  }
}

/** Lines along the lip, in the mouth's coordinates. */
interface Lines {
  readonly seam: Curve;
  /** The edge of the lip, and where it is to be. */
  readonly outer: Curve;
  readonly edge: Curve;
}

/** @returns false when a moustache covers the lip */
function paint(
  image: RgbImage,
  frame: MouthFrame,
  { seam, outer, edge }: Lines,
  lip: Rgb,
  strength: number,
): boolean {
  const { width, height, data } = image;
  const luma = plane(width, height);
  for (let i = 0; i < luma.data.length; i++) {
    luma.data[i] = lumaAt(image, i);
  }
  const smooth = blur(luma, 0.02 * frame.faceHeight);
  const soft = Math.max(1, 0.006 * frame.faceHeight);
  /** Pixels above the seam, with their height above it and the lip's. */
  const band: { i: number; rise: number; to: number; from: number }[] = [];
  for (let i = 0; i < luma.data.length; i++) {
    const { x: u, y: v } = frame.toLocal((i % width) + 0.5, Math.floor(i / width) + 0.5);
    if (Math.abs(u) < frame.halfWidth && Math.abs(v) < frame.halfWidth) {
      const one = { i, rise: seam(u) - v, to: seam(u) - edge(u), from: seam(u) - outer(u) };
      if (one.rise > 0 && one.rise < one.to + 4 * soft) {
        band.push(one);
      }
    }
  }
  const typical = (some: readonly { i: number }[]): Rgb => {
    const channel = (c: number): number => median(some.map(({ i }) => data[i * 3 + c]!));
    return [channel(0), channel(1), channel(2)];
  };
  const skin = band.filter(({ rise, to }) => rise > to + 2 * soft);
  const seen = band.filter(({ rise, from }) => rise > 0.3 * from && rise < 0.8 * from);
  if (skin.length < 20 || seen.length < 10) {
    return false;
  }
  // From 0, the upper lip is as red as the lower one, to 1, skin.
  const shade: Rgb = [SHADED * lip[0], SHADED * lip[1], SHADED * lip[2]];
  const [shown, beside] = [typical(seen), typical(skin)];
  const isSkin = clamp(hueDistance(shown, shade) / Math.max(4, hueDistance(beside, shade)), 0, 1);
  // What is much darker than the skin is a lip in its own shadow, and what is darker than the lip beside
  // it a moustache.
  const hidden = isSkin * smoothstep(0.75, 0.92, lumaOf(...shown) / Math.max(1, lumaOf(...beside)));
  if (lumaOf(...beside) < BEARD * lumaOf(...lip)) {
    return false;
  }
  const light = Math.min(0.92 * lumaOf(...beside), lumaOf(...shade)) / Math.max(1, lumaOf(...lip));
  for (const { i, rise, to, from } of band) {
    const added = smoothstep(from - soft, from + soft, rise);
    const alpha =
      strength *
      MOST *
      (1 - smoothstep(to - soft, to + soft, rise)) *
      // The seam's own darkness stays.
      smoothstep(0, 1.5 * soft, rise) *
      (hidden + (1 - hidden) * added);
    // The lip's colour in the skin's light and texture, a little darker towards the seam.
    const dim = 1 - 0.14 * clamp(1 - rise / Math.max(1, to), 0, 1);
    const detail = clamp(luma.data[i]! / Math.max(1, smooth.data[i]!), 0.8, 1.15);
    for (let c = 0; c < 3; c++) {
      const colour = Math.min(255, lip[c]! * light * dim * detail);
      data[i * 3 + c] = data[i * 3 + c]! + alpha * (colour - data[i * 3 + c]!) + 0.5;
    }
  }
  return true;
}

/** How different the chroma of two colours is, 0..255. */
const hueDistance = (a: Rgb, b: Rgb): number => {
  const scale = lumaOf(...b) / Math.max(1, lumaOf(...a));
  return Math.hypot(a[0] * scale - b[0], a[1] * scale - b[1], a[2] * scale - b[2]);
};
