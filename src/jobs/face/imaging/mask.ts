// Masks: rasterised polygons, dilation, erosion and blurs of a plane of floats.
import { native, type PlaneFilter } from '../../../native/addon.ts';
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
  const ys = polygon.map(({ y }) => y);
  const first = Math.max(0, Math.floor(Math.min(...ys)) * SUB);
  const end = Math.min(height, Math.ceil(Math.max(...ys))) * SUB;
  for (let row = first; row < end; row++) {
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

/** Indices of the pixels where a mask is above `least`; of these, the ones that are wanted. */
export function indicesAbove(
  { data }: Plane,
  least: number,
  isWanted: (index: number) => boolean = () => true,
): number[] {
  const found: number[] = [];
  for (let i = 0; i < data.length; i++) {
    // Most pixels are not in the mask: they cost no call.
    if (data[i]! > least && isWanted(i)) {
      found.push(i);
    }
  }
  return found;
}

/**
 * Dilates a mask of values >= 0: each pixel takes the maximum within `radius` (a square window).
 */
export const dilate = (mask: Plane, radius: number): Plane =>
  filtered(native.largestWithin, mask, radius);

/**
 * Erodes a mask of values >= 0: each pixel takes the minimum within `radius` (a square window).
 * Pixels outside the plane are left out of the minimum.
 */
export const erode = (mask: Plane, radius: number): Plane =>
  filtered(native.smallestWithin, mask, radius);

/** Gaussian blur, `sigma` in pixels. The edge pixels are repeated outside the plane. */
export const blur = (source: Plane, sigma: number): Plane =>
  filtered(native.gaussianBlur, source, sigma);

function filtered(filter: PlaneFilter, { width, height, data }: Plane, reach: number): Plane {
  const out = plane(width, height);
  filter(data, width, height, reach, out.data);
  return out;
}

/** The mean of each square window of 2 `radius` + 1 pixels, as much of it as lies in the plane. */
export function boxMean({ width, height, data }: Plane, radius: number): Plane {
  const out = plane(width, height);
  const columns = new Float64Array(width);
  const add = (y: number, sign: number): void => {
    for (let x = 0; x < width; x++) {
      columns[x]! += sign * data[y * width + x]!;
    }
  };
  for (let y = 0; y < Math.min(radius, height); y++) {
    add(y, 1);
  }
  for (let y = 0; y < height; y++) {
    if (y + radius < height) {
      add(y + radius, 1);
    }
    if (y > radius) {
      add(y - radius - 1, -1);
    }
    const rows = Math.min(y + radius, height - 1) - Math.max(y - radius, 0) + 1;
    let sum = 0;
    for (let x = 0; x < Math.min(radius, width); x++) {
      sum += columns[x]!;
    }
    for (let x = 0; x < width; x++) {
      sum += x + radius < width ? columns[x + radius]! : 0;
      sum -= x > radius ? columns[x - radius - 1]! : 0;
      const count = Math.min(x + radius, width - 1) - Math.max(x - radius, 0) + 1;
      out.data[y * width + x] = sum / (rows * count);
    }
  }
  return out;
}
