// Smooth functions y(x) through a few points, for the contours of lips and eyelids.
import { clamp } from './image.ts';

/** Pixels; y points down. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** y for an x, both in pixels. */
export type Curve = (x: number) => number;

/**
 * Monotone cubic interpolation (Fritsch and Carlson 1980): no overshoot between points, constant
 * beyond the ends. The points may come in any order.
 */
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

/**
 * The same curve from a table with half-pixel steps between `from` and `to`, linear in between: for
 * functions called for every pixel.
 */
export function tabulated(curve: Curve, from: number, to: number): Curve {
  const steps = Math.ceil((to - from) * 2) + 2;
  const table = Float32Array.from({ length: steps }, (_, i) => curve(from + i / 2));
  return (x) => {
    const t = clamp((x - from) * 2, 0, steps - 1.001);
    const i = Math.floor(t);
    return table[i]! + (t - i) * (table[i + 1]! - table[i]!);
  };
}

/** The straight line through points by least squares: its slope, and the middle of the points. */
export function lineThrough(points: readonly Point[]): { slope: number; middle: Point } {
  const n = Math.max(1, points.length);
  const middle = {
    x: points.reduce((sum, { x }) => sum + x, 0) / n,
    y: points.reduce((sum, { y }) => sum + y, 0) / n,
  };
  const spread = points.reduce((sum, { x }) => sum + (x - middle.x) ** 2, 0);
  const along = points.reduce((sum, { x, y }) => sum + (x - middle.x) * (y - middle.y), 0);
  return { slope: along / Math.max(1, spread), middle };
}
