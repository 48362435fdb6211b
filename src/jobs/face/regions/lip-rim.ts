// Takes the lips' colour out of the skin beside lips that were brought to rest: where they were wider or
// thicker in the portrait than the landmarks say, their red edge stays behind.
import { lumaOf } from '../imaging/colour.ts';
import { clamp, type Plane, plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { blur, dilate, polygonMask } from '../imaging/mask.ts';
import type { Rgb } from '../imaging/patch.ts';
import { type Landmarks, LOWER_OUTER, px, py, UPPER_OUTER } from '../detect/landmarks.ts';
import { MouthFrame } from './mouth-frame.ts';

/** Width of the rim in which lip colour was seen beside lips, share of the face's height. */
const RIM = 0.022;
/** From the colour of skin (0) to that of the lips (1): what counts as lip, and fully. */
const LIP_LIKE: readonly [number, number] = [0.2, 0.6];
/** Least difference of the colours of lips and skin, 0..255: paler lips leave no rim. */
const TELLS: readonly [number, number] = [8, 20];
/** Luma in units of that of the skin beside: what is darker is hair or a shadow, and stays. */
const SHADOW: readonly [number, number] = [0.5, 0.7];
/** How much of the rim's own light gives way to that of the skin. */
const LIGHT = 0.7;
/**
 * How much of what is round a pixel is lip: where the rim begins, and where it is all cleared. Lips end
 * softly: in portraits at rest half of their red is left at the outline, and a fifth 2 % of the distance
 * between the eyes beyond it.
 */
const FADES: readonly [number, number] = [0.52, 0.12];

/**
 * Gives the rim of the lips the colour of the skin round it, in place.
 * @param points landmarks of `image`, with closed lips
 * @param lip colour of the lips
 * @param amount 0..1
 */
export function clearLipRim(image: RgbImage, points: Landmarks, lip: Rgb, amount: number): void {
  const { faceHeight } = new MouthFrame(points);
  const rim = Math.max(2, Math.round(RIM * faceHeight));
  const outline = [...UPPER_OUTER, ...LOWER_OUTER.toReversed()];
  const xs = outline.map((i) => px(points, i));
  const ys = outline.map((i) => py(points, i));
  const left = Math.max(0, Math.floor(Math.min(...xs)) - 6 * rim);
  const top = Math.max(0, Math.floor(Math.min(...ys)) - 6 * rim);
  const width = Math.min(image.width, Math.ceil(Math.max(...xs)) + 6 * rim) - left;
  const height = Math.min(image.height, Math.ceil(Math.max(...ys)) + 6 * rim) - top;
  const lips = polygonMask(
    width,
    height,
    outline.map((_, k) => ({ x: xs[k]! - left, y: ys[k]! - top })),
  );
  const inside = blur(lips, 0.4 * rim);
  const near = blur(dilate(lips, rim), 0.5 * rim);
  const covered = dilate(lips, rim);
  const index = (i: number): number =>
    3 * ((top + Math.floor(i / width)) * image.width + left + (i % width));
  const known = plane(width, height);
  for (let i = 0; i < known.data.length; i++) {
    known.data[i] = covered.data[i]! > 0.02 ? 0 : 1;
  }
  const skin = [0, 1, 2].map((c) => meanOf(known, (i) => image.data[index(i) + c]!, 1.5 * rim));
  for (let i = 0; i < known.data.length; i++) {
    const share = amount * near.data[i]! * smoothstep(...FADES, inside.data[i]!);
    if (share < 0.01) {
      continue;
    }
    const at = index(i);
    const [r, g, b] = [image.data[at]!, image.data[at + 1]!, image.data[at + 2]!];
    const beside: Rgb = [skin[0]!.data[i]!, skin[1]!.data[i]!, skin[2]!.data[i]!];
    const light = lumaOf(...beside);
    const luma = lumaOf(r, g, b);
    const bright = smoothstep(...SHADOW, luma / Math.max(1, light));
    const alpha = share * bright * lipLike([r, g, b], beside, lip);
    const factor = (luma + LIGHT * (light - luma)) / Math.max(1, light);
    for (let c = 0; c < 3; c++) {
      const value = image.data[at + c]!;
      image.data[at + c] = clamp(value + alpha * (factor * beside[c]! - value) + 0.5, 0, 255);
    }
  }
}

/** How much a colour is that of the lips rather than that of the skin, at the same light, 0..1. */
function lipLike(colour: Rgb, skin: Rgb, lip: Rgb): number {
  const light = lumaOf(...skin);
  const from = (other: Rgb, c: 0 | 1 | 2): number =>
    (other[c] * light) / Math.max(1, lumaOf(...other)) - skin[c];
  let [along, length] = [0, 0];
  for (const c of [0, 1, 2] as const) {
    along += from(colour, c) * from(lip, c);
    length += from(lip, c) ** 2;
  }
  return (
    smoothstep(...TELLS, Math.sqrt(length)) * smoothstep(...LIP_LIKE, along / Math.max(1, length))
  );
}

/** The Gaussian mean of `value` within `known`. */
function meanOf(known: Plane, value: (i: number) => number, sigma: number): Plane {
  const product = plane(known.width, known.height);
  for (let i = 0; i < product.data.length; i++) {
    product.data[i] = known.data[i]! * value(i);
  }
  const [sum, share] = [blur(product, sigma), blur(known, sigma)];
  for (let i = 0; i < sum.data.length; i++) {
    sum.data[i] = sum.data[i]! / Math.max(1e-3, share.data[i]!);
  }
  return sum;
}
