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
  separable(mask, radius, 0, (line, out) => {
    slide(line, radius, out, larger);
  });

/**
 * Erodes a mask of values >= 0: each pixel takes the minimum within `radius` (a square window).
 * Pixels outside the plane are left out of the minimum.
 */
export const erode = (mask: Plane, radius: number): Plane =>
  separable(mask, radius, Infinity, (line, out) => {
    slide(line, radius, out, smaller);
  });

// Unlike Math.max and Math.min, V8 inlines them.
const larger = (a: number, b: number): number => (a > b ? a : b);
const smaller = (a: number, b: number): number => (a < b ? a : b);

/**
 * Takes the minimum or maximum of each 2 `radius` + 1 values. It joins what was picked from the
 * start and from the end of blocks of that length, so a larger radius takes no longer (van Herk
 * 1992).
 */
function slide(
  line: Float32Array,
  radius: number,
  out: Float32Array,
  pick: (a: number, b: number) => number,
): void {
  const size = 2 * radius + 1;
  const [fromStart, fromEnd] = [line.slice(), line.slice()];
  for (let i = 1; i < line.length; i++) {
    if (i % size > 0) {
      fromStart[i] = pick(fromStart[i - 1]!, line[i]!);
    }
  }
  for (let i = line.length - 2; i >= 0; i--) {
    if ((i + 1) % size > 0) {
      fromEnd[i] = pick(fromEnd[i + 1]!, line[i]!);
    }
  }
  for (let i = 0; i < out.length; i++) {
    out[i] = pick(fromEnd[i]!, fromStart[i + size - 1]!);
  }
}

/** Gaussian blur, `sigma` in pixels. The edge pixels are repeated outside the plane. */
export function blur(source: Plane, sigma: number): Plane {
  const radius = Math.ceil(sigma * 3);
  /** Of the pixel itself and of the pairs at 1, 2, ... pixels from it. */
  const weights = Float64Array.from({ length: radius + 1 }, (_, k) =>
    Math.exp(-(k ** 2) / (2 * sigma * sigma)),
  );
  const sum = weights.reduce((total, weight) => total + 2 * weight, -weights[0]!);
  return separable(source, radius, undefined, (line, out) => {
    for (let i = 0, centre = radius; i < out.length; i++, centre++) {
      let value = weights[0]! * line[centre]!;
      for (let k = 1; k <= radius; k++) {
        value += weights[k]! * (line[centre - k]! + line[centre + k]!);
      }
      out[i] = value / sum;
    }
  });
}

/** Filters a line that has `radius` values more at each end than `out`. */
type LineFilter = (line: Float32Array, out: Float32Array) => void;

/**
 * Filters all rows, then all columns.
 * @param edge what lies outside the plane; undefined repeats its edge pixels
 */
function separable(
  source: Plane,
  radius: number,
  edge: number | undefined,
  filter: LineFilter,
): Plane {
  const rows = filterRows(source, radius, edge, filter);
  return transpose(filterRows(transpose(rows), radius, edge, filter));
}

function filterRows(
  source: Plane,
  radius: number,
  edge: number | undefined,
  filter: LineFilter,
): Plane {
  const { width, height } = source;
  const out = plane(width, height);
  const { left, right, top, bottom } = filledBounds(source, radius);
  const [from, to] = [Math.max(0, left - radius), Math.min(width, right + radius)];
  const line = new Float32Array(Math.max(0, right - left) + 2 * radius);
  /** Of the line: where the pixels of the plane begin and end. */
  const [first, last] = [from - left + radius, to - left + radius];
  for (let y = top; y < bottom; y++) {
    const row = source.data.subarray(y * width, (y + 1) * width);
    line.set(row.subarray(from, to), first);
    line.fill(edge ?? row[0]!, 0, first);
    line.fill(edge ?? row[width - 1]!, last);
    filter(line, out.data.subarray(y * width + left, y * width + right));
  }
  return out;
}

/** Rows become columns. By tiles: whole columns would miss the processor's cache at each pixel. */
function transpose({ width, height, data }: Plane): Plane {
  const TILE = 16;
  const out = plane(height, width);
  for (let top = 0; top < height; top += TILE) {
    for (let left = 0; left < width; left += TILE) {
      const [bottom, right] = [Math.min(height, top + TILE), Math.min(width, left + TILE)];
      for (let y = top; y < bottom; y++) {
        for (let x = left; x < right; x++) {
          out.data[x * height + y] = data[y * width + x]!;
        }
      }
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
