// Colour measures that separate lips, teeth and skin, and quantiles of them.
import { clamp, type RgbImage } from './image.ts';

/** From an sRGB value 0..255 to linear light 0..1 (IEC 61966-2-1). */
const LINEAR = Float32Array.from({ length: 256 }, (_, i) =>
  i <= 10 ? i / 255 / 12.92 : ((i / 255 + 0.055) / 1.055) ** 2.4,
);

/** The CIE Lab transfer function. */
const curve = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);

/** CIE L*a*b* (D65): lightness 0..100, a* towards red, b* towards yellow. */
export interface Lab {
  readonly l: number;
  readonly a: number;
  readonly b: number;
}

/** L*a*b* of the pixel `index`. */
export function labAt(image: RgbImage, index: number): Lab {
  const r = LINEAR[image.data[index * 3]!]!;
  const g = LINEAR[image.data[index * 3 + 1]!]!;
  const b = LINEAR[image.data[index * 3 + 2]!]!;
  const x = curve((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
  const y = curve(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = curve((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
  return { l: 116 * y - 16, a: 500 * (x - y), b: 200 * (y - z) };
}

/** Rec. 601 luma, on the scale of its arguments. */
export const lumaOf = (r: number, g: number, b: number): number =>
  0.299 * r + 0.587 * g + 0.114 * b;

/** Luma of the pixel `index`, 0..255. */
export const lumaAt = ({ data }: RgbImage, index: number): number =>
  lumaOf(data[index * 3]!, data[index * 3 + 1]!, data[index * 3 + 2]!);

/** The value below which `share` (0..1) of `values` lie; 0 when there are none. */
export function quantile(values: readonly number[] | Float32Array, share: number): number {
  if (values.length === 0) {
    return 0;
  }
  const at = Math.min(values.length - 1, Math.floor(share * values.length));
  return select(new Float32Array(values), at);
}

/** The value that would stand at `at` if all were sorted; reorders them (Hoare 1961, FIND). */
function select(values: Float32Array, at: number): number {
  let [from, to] = [0, values.length - 1];
  while (from < to) {
    const pivot = values[at]!;
    let [left, right] = [from, to];
    while (left <= right) {
      while (values[left]! < pivot) {
        left++;
      }
      while (values[right]! > pivot) {
        right--;
      }
      if (left <= right) {
        const value = values[left]!;
        values[left++] = values[right]!;
        values[right--] = value;
      }
    }
    if (right < at) {
      from = left;
    }
    if (at < left) {
      to = right;
    }
  }
  return values[at]!;
}

/** The 0.5 quantile; 0 when there are no values. */
export const median = (values: readonly number[] | Float32Array): number => quantile(values, 0.5);

/**
 * The standard deviation of values about 0 that are normal but for outliers, from the median of
 * their sizes.
 */
export const robustDeviation = (values: readonly number[]): number =>
  median(values.map(Math.abs)) / 0.6745;

/** The mean of numbers; NaN of none. */
export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The median of each channel; black when there are no colours. */
export const medianLab = (labs: readonly Lab[]): Lab => ({
  l: median(labs.map(({ l }) => l)),
  a: median(labs.map(({ a }) => a)),
  b: median(labs.map(({ b }) => b)),
});

/** The same of some pixels. */
export const medianColour = (image: RgbImage, indices: readonly number[]): Lab =>
  medianLab(indices.map((i) => labAt(image, i)));

/** Indices of the pixels of a square round (x, y), clamped to the picture. */
export function patchAt(
  { width, height }: RgbImage,
  x: number,
  y: number,
  radius: number,
): number[] {
  const found: number[] = [];
  for (let dy = -radius; dy <= radius; dy++) {
    for (let dx = -radius; dx <= radius; dx++) {
      found.push(
        clamp(Math.round(y) + dy, 0, height - 1) * width + clamp(Math.round(x) + dx, 0, width - 1),
      );
    }
  }
  return found;
}
