// Masks: rasterised polygons, dilation, erosion and Gaussian blur of a plane of floats.
import type { Point } from './curve.ts';
import { clamp, type Plane, plane } from './image.ts';

/**
 * Rasterises a polygon (even-odd rule) by scan lines, four to a pixel row.
 * @returns the share of each pixel inside the polygon, 0..1
 */
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

/**
 * Dilates a mask of values >= 0: each pixel takes the maximum within `radius` (a square window).
 */
export const dilate = (mask: Plane, radius: number): Plane =>
  slide(slide(mask, radius, 1, 0, Math.max), radius, 0, 1, Math.max);

/**
 * Erodes a mask of values >= 0: each pixel takes the minimum within `radius` (a square window).
 * Pixels outside the plane are left out of the minimum.
 */
export const erode = (mask: Plane, radius: number): Plane =>
  slide(slide(mask, radius, 1, 0, Math.min), radius, 0, 1, Math.min);

/** One pass of a separable minimum or maximum filter in the direction (dx, dy). */
function slide(
  mask: Plane,
  radius: number,
  dx: number,
  dy: number,
  pick: (a: number, b: number) => number,
): Plane {
  const { width, height, data } = mask;
  const out = plane(width, height);
  const { left, right, top, bottom } = filledBounds(mask, radius);
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

/** Gaussian blur, `sigma` in pixels. The edge pixels are repeated outside the plane. */
export function blur(source: Plane, sigma: number): Plane {
  const radius = Math.ceil(sigma * 3);
  const weights = Float32Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp(-((i - radius) ** 2) / (2 * sigma * sigma)),
  );
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return convolve(convolve(source, weights, sum, 1, 0), weights, sum, 0, 1);
}

/** One pass of a separable convolution in the direction (dx, dy). */
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
  const { left, right, top, bottom } = filledBounds(source, radius);
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

/**
 * The bounding box of all values other than 0, `margin` pixels larger on each side. Masks of eyes
 * and lips are mostly empty, so filters run on this box alone.
 */
function filledBounds(
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
