// Masks: rasterised polygons, dilation, erosion and Gaussian blur of a plane of floats.
import { native } from '../../../native/addon.ts';
import type { Point } from './curve.ts';
import { clamp, type Plane, plane } from './image.ts';
import type { Box } from './patch.ts';

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
  for (let start = 0; start < line.length; start += size) {
    const end = Math.min(start + size, line.length);
    for (let i = start + 1; i < end; i++) {
      fromStart[i] = pick(fromStart[i - 1]!, line[i]!);
    }
    for (let i = end - 2; i >= start; i--) {
      fromEnd[i] = pick(fromEnd[i + 1]!, line[i]!);
    }
  }
  for (let i = 0; i < out.length; i++) {
    out[i] = pick(fromEnd[i]!, fromStart[i + size - 1]!);
  }
}

/** Gaussian blur, `sigma` in pixels. The edge pixels are repeated outside the plane. */
export function blur(source: Plane, sigma: number): Plane {
  const { width, height, data } = source;
  const out = plane(width, height);
  native.gaussianBlur(data, width, height, sigma, out.data);
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

/** Filters a line that has `radius` values more at each end than `out`. */
type LineFilter = (line: Float32Array, out: Float32Array) => void;

/**
 * Filters all rows, then all columns, of the box that holds all values other than 0: masks of eyes and
 * lips are mostly empty.
 * @param edge what lies outside the plane
 */
function separable(source: Plane, radius: number, edge: number, filter: LineFilter): Plane {
  const { width, height } = source;
  const out = plane(width, height);
  const { left, right, top, bottom } = filledBounds(source, radius);
  if (left >= right) {
    return out;
  }
  const box = plane(right - left, bottom - top);
  for (let y = top; y < bottom; y++) {
    const row = y * width;
    box.data.set(source.data.subarray(row + left, row + right), (y - top) * box.width);
  }
  const rows = filterRows(box, radius, [left, width - right], edge, filter);
  const columns = filterRows(transpose(rows), radius, [top, height - bottom], edge, filter);
  const done = transpose(columns);
  for (let y = top; y < bottom; y++) {
    const from = (y - top) * box.width;
    out.data.set(done.data.subarray(from, from + box.width), y * width + left);
  }
  return out;
}

/**
 * @param room pixels of the plane before and after each row, all 0; what is beyond them is its edge
 */
function filterRows(
  { width, height, data }: Plane,
  radius: number,
  [before, after]: readonly [number, number],
  edge: number,
  filter: LineFilter,
): Plane {
  const out = plane(width, height);
  const line = new Float32Array(width + 2 * radius);
  const end = radius + width;
  for (let y = 0; y < height; y++) {
    const row = data.subarray(y * width, (y + 1) * width);
    line.set(row, radius);
    if (before < radius) {
      line.fill(edge, 0, radius - before);
    }
    if (after < radius) {
      line.fill(edge, end + after);
    }
    filter(line, out.data.subarray(y * width, (y + 1) * width));
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

/** The bounding box of all values other than 0, `margin` pixels larger on each side. */
function filledBounds({ width, height, data }: Plane, margin: number): Box {
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let y = 0; y < height; y++) {
    const row = y * width;
    let x = 0;
    while (x < width && data[row + x] === 0) {
      x++;
    }
    if (x === width) {
      continue;
    }
    left = Math.min(left, x);
    top = Math.min(top, y);
    bottom = y + 1;
    x = width;
    while (x > right && data[row + x - 1] === 0) {
      x--;
    }
    right = x;
  }
  return {
    left: Math.max(0, left - margin),
    right: Math.min(width, right + margin),
    top: Math.max(0, top - margin),
    bottom: Math.min(height, bottom + margin),
  };
}
