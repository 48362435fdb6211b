// Curves and areas given by a few points: interpolation along x, and polygon masks with soft edges.
import { clamp, type Plane, plane } from './image.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export type Curve = (x: number) => number;

/** @returns a smooth function through the points (monotone cubic, Fritsch and Carlson 1980), constant beyond the ends. Points may come in any order. */
export function curveThrough(points: readonly Point[]): Curve {
  const sorted = points
    .toSorted((a, b) => a.x - b.x)
    .filter((point, i, all) => i === 0 || point.x - all[i - 1]!.x > 1e-3);
  const slopes = sorted
    .slice(1)
    .map((point, i) => (point.y - sorted[i]!.y) / (point.x - sorted[i]!.x));
  const tangents = sorted.map((_, i) => {
    const before = slopes[i - 1] ?? slopes[i] ?? 0;
    const after = slopes[i] ?? before;
    return before * after <= 0 ? 0 : (2 * before * after) / (before + after);
  });
  const first = sorted[0]!;
  const last = sorted.at(-1)!;
  return (x) => {
    if (x <= first.x) {
      return first.y;
    }
    if (x >= last.x) {
      return last.y;
    }
    let i = 0;
    while (sorted[i + 1]!.x < x) {
      i++;
    }
    const a = sorted[i]!;
    const b = sorted[i + 1]!;
    const h = b.x - a.x;
    const t = (x - a.x) / h;
    const u = 1 - t;
    return (
      (1 + 2 * t) * u * u * a.y +
      t * u * u * h * tangents[i]! +
      t * t * (3 - 2 * t) * b.y -
      t * t * u * h * tangents[i + 1]!
    );
  };
}

/** @returns the curve from a table of half-pixel steps between `from` and `to`: for functions that are called for every pixel. */
export function tabulated(curve: Curve, from: number, to: number): Curve {
  const steps = Math.ceil((to - from) * 2) + 2;
  const table = Float32Array.from({ length: steps }, (_, i) => curve(from + i / 2));
  return (x) => {
    const t = clamp((x - from) * 2, 0, steps - 1.001);
    const i = Math.floor(t);
    return table[i]! + (t - i) * (table[i + 1]! - table[i]!);
  };
}

/** @returns a mask of the polygon's inside, edges anti-aliased by sampling each pixel 4x4 times (even-odd rule). */
export function polygonMask(width: number, height: number, polygon: readonly Point[]): Plane {
  const mask = plane(width, height);
  const SUB = 4;
  const crossings: number[] = [];
  for (let row = 0; row < height * SUB; row++) {
    const y = (row + 0.5) / SUB;
    crossings.length = 0;
    for (let i = 0; i < polygon.length; i++) {
      const a = polygon[i]!;
      const b = polygon[(i + 1) % polygon.length]!;
      if (a.y <= y !== b.y <= y) {
        crossings.push(a.x + ((y - a.y) / (b.y - a.y)) * (b.x - a.x));
      }
    }
    crossings.sort((p, q) => p - q);
    for (let k = 0; k + 1 < crossings.length; k += 2) {
      const from = clamp(crossings[k]!, 0, width);
      const to = clamp(crossings[k + 1]!, 0, width);
      for (let x = Math.floor(from); x < Math.ceil(to); x++) {
        const at = Math.floor(row / SUB) * width + x;
        mask.data[at] = mask.data[at]! + (Math.min(to, x + 1) - Math.max(from, x)) / SUB;
      }
    }
  }
  return mask;
}

/** Grows a mask of values not below 0: each pixel becomes the largest within `radius` (a square). */
export const dilate = (mask: Plane, radius: number): Plane =>
  slide(slide(mask, radius, 1, 0, Math.max), radius, 0, 1, Math.max);

/** Shrinks such a mask: each pixel becomes the smallest within `radius` (a square); beyond the border there is as much as at it. */
export const erode = (mask: Plane, radius: number): Plane =>
  slide(slide(mask, radius, 1, 0, Math.min), radius, 0, 1, Math.min);

function slide(
  mask: Plane,
  radius: number,
  dx: number,
  dy: number,
  pick: (a: number, b: number) => number,
): Plane {
  const { width, height, data } = mask;
  const out = plane(width, height);
  const { left, right, top, bottom } = filledPart(mask, radius);
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      let value = data[y * width + x]!;
      for (let k = -radius; k <= radius; k++) {
        const sx = x + k * dx;
        const sy = y + k * dy;
        if (sx >= 0 && sy >= 0 && sx < width && sy < height) {
          value = pick(value, data[sy * width + sx]!);
        }
      }
      out.data[y * width + x] = value;
    }
  }
  return out;
}

/** Gaussian blur; outside the plane counts as its edge. */
export function blur(source: Plane, sigma: number): Plane {
  const radius = Math.ceil(sigma * 3);
  const weights = Float32Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp(-((i - radius) ** 2) / (2 * sigma * sigma)),
  );
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return convolve(convolve(source, weights, sum, 1, 0), weights, sum, 0, 1);
}

function convolve(
  source: Plane,
  weights: Float32Array,
  sum: number,
  dx: number,
  dy: number,
): Plane {
  const { width, height, data } = source;
  const out = plane(width, height);
  const radius = weights.length >> 1;
  const { left, right, top, bottom } = filledPart(source, radius);
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      let value = 0;
      for (let k = -radius; k <= radius; k++) {
        value +=
          weights[k + radius]! *
          data[clamp(y + k * dy, 0, height - 1) * width + clamp(x + k * dx, 0, width - 1)]!;
      }
      out.data[y * width + x] = value / sum;
    }
  }
  return out;
}

/** The smallest rectangle round all that is not 0, `margin` wider: masks of eyes and lips are mostly empty. */
function filledPart(
  { width, height, data }: Plane,
  margin: number,
): { left: number; right: number; top: number; bottom: number } {
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      if (data[i] === 0) {
        continue;
      }
      if (x < left) {
        left = x;
      }
      if (x >= right) {
        right = x + 1;
      }
      if (y < top) {
        top = y;
      }
      bottom = y + 1;
    }
  }
  return {
    left: Math.max(0, left - margin),
    right: Math.min(width, right + margin),
    top: Math.max(0, top - margin),
    bottom: Math.min(height, bottom + margin),
  };
}
