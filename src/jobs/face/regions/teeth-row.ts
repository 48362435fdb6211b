// The row of upper teeth that a smile shows, as a mask: found, measured, straightened and completed.
import { quantile } from '../imaging/colour.ts';
import { clamp, plane, type Plane, type RgbImage } from '../imaging/image.ts';
import type { Box } from '../imaging/patch.ts';

/**
 * A whole row: the least share of columns in the middle of the mouth with a tooth of at least STUMP
 * of the usual height. Shade and reflections can hide a tooth, and a row with a gap looks worse
 * than a painted one.
 */
const MIN_WHOLE = 0.9;
const STUMP = 0.5;
/** A step in the biting edge, share of the usual height, and how many columns may lie at one. */
const JUMP = 0.3;
const JUMPS = 3;
/** Widest gap between two teeth of a whole row, share of the mouth's width. */
const WIDEST_GAP = 0.012;
/**
 * Least usual height of the teeth, in widths of the mouth. Of shorter ones only the lower ends are
 * visible, and an opened mouth would show stumps.
 */
const MIN_HEIGHT = 0.09;

/** The pixels of the upper row of teeth. */
export function upperRow(tooth: Plane, opening: Plane, box: Box): Plane {
  const row = plane(tooth.width, tooth.height);
  for (let x = box.left; x < box.right; x++) {
    let started = false;
    for (let y = box.top; y < box.bottom; y++) {
      const i = y * tooth.width + x;
      const isTooth = opening.data[i]! > 0.3 && tooth.data[i]! > 0;
      if (isTooth) {
        row.data[i] = 1;
      } else if (started) {
        break;
      }
      started ||= isTooth;
    }
  }
  return row;
}

/** Number of tooth pixels of each column of the box, and the lowest of them. */
function columnsOf(
  { width, data }: Pick<Plane, 'width' | 'data'>,
  { left, right, top, bottom }: Box,
): { height: number; end: number }[] {
  return Array.from({ length: right - left }, (_, i) => {
    let [height, end] = [0, top];
    for (let y = top; y < bottom; y++) {
      if (data[y * width + left + i]! > 0.5) {
        height++;
        end = y;
      }
    }
    return { height, end };
  });
}

const usualHeight = (columns: readonly { readonly height: number }[]): number =>
  quantile(
    columns.map(({ height }) => height).filter((height) => height > 0),
    0.6,
  );

/**
 * Columns on either side that a column is compared with, share of the mouth's width. In a straight
 * row also distant ones should end at one height.
 */
export const NEIGHBOURS = { bent: 0.07, straight: 0.15 } as const;
/** A column may end this much lower than its neighbours do, share of the usual height. */
const OVERHANG = 0.08;

/**
 * Cuts off what hangs below the neighbouring teeth: a lower tooth that touches an upper one.
 * @param neighbours one of NEIGHBOURS
 */
export function trim(
  { width, data }: Plane,
  { left, right, top, bottom }: Box,
  neighbours: number,
): void {
  const columns = columnsOf({ width, data }, { left, right, top, bottom });
  const usual = usualHeight(columns);
  const reach = Math.ceil(neighbours * (right - left));
  columns.forEach(({ end }, i) => {
    const near = columns
      .slice(Math.max(0, i - reach), i + reach + 1)
      .filter(({ height }) => height > 0);
    const most = quantile(
      near.map((column) => column.end),
      0.5,
    );
    for (let y = Math.ceil(most + OVERHANG * usual) + 1; y <= end; y++) {
      data[y * width + left + i] = 0;
    }
  });
}

/** Whether the row of teeth is whole in the middle half of the mouth. */
export function isWhole({ width, data }: Plane, { left, right, top, bottom }: Box): boolean {
  const heights: number[] = [];
  const ends: number[] = [];
  for (let x = Math.round(left + 0.27 * (right - left)); x < left + 0.73 * (right - left); x++) {
    let [height, end] = [0, 0];
    for (let y = top; y < bottom; y++) {
      if (data[y * width + x]! > 0.5) {
        height++;
        end = y;
      }
    }
    heights.push(height);
    ends.push(end);
  }
  const usual = quantile(heights, 0.7);
  if (usual < MIN_HEIGHT * (right - left)) {
    return false;
  }
  // The ends of lower teeth that hang on the upper ones.
  const jumps = ends.filter((end, k) => Math.abs(end - (ends[k - 2] ?? end)) > JUMP * usual);
  if (jumps.length > JUMPS) {
    return false;
  }
  const stumps = heights.map((height) => height === 0 || height < STUMP * usual);
  let [missing, run] = [0, 0];
  for (const isStump of stumps) {
    run = isStump ? run + 1 : 0;
    missing = Math.max(missing, run);
  }
  return (
    stumps.filter(Boolean).length <= (1 - MIN_WHOLE) * heights.length &&
    missing <= Math.max(1, WIDEST_GAP * (right - left))
  );
}

/** A parabola through the ends of a row's columns. Across, the box reaches from -1 to 1. */
export interface BitingEdge {
  /** Pixels per half width of the box. */
  readonly slope: number;
  /** Pixels at the ends of the box: below 0 when the edge rises towards them. */
  readonly bend: number;
  /** Root mean square of what remains, share of the usual height of the teeth. */
  readonly unevenness: number;
}

/** Position of a column across a box of `count` columns. */
function across(count: number): (i: number) => number {
  const middle = (count - 1) / 2;
  return (i) => (i - middle) / middle;
}

/** Measures the biting edge of a row by least squares. */
export function bitingEdge(row: Plane, box: Box): BitingEdge {
  const columns = columnsOf(row, box);
  const usual = usualHeight(columns);
  const at = across(columns.length);
  const teeth = columns.flatMap(({ height, end }, i) =>
    height > END * usual ? [{ x: at(i), y: end }] : [],
  );
  const mean = (f: (x: number, y: number) => number): number =>
    teeth.reduce((total, { x, y }) => total + f(x, y), 0) / Math.max(1, teeth.length);
  const x1 = mean((x) => x);
  const x2 = mean((x) => x ** 2);
  const y1 = mean((_, y) => y);
  // Without the means two equations are left.
  const xx = x2 - x1 ** 2;
  const xq = mean((x) => x ** 3) - x1 * x2;
  const qq = mean((x) => x ** 4) - x2 ** 2;
  const xy = mean((x, y) => x * y) - x1 * y1;
  const qy = mean((x, y) => x ** 2 * y) - x2 * y1;
  const determinant = Math.max(1e-9, xx * qq - xq ** 2);
  const slope = (xy * qq - qy * xq) / determinant;
  const bend = (qy * xx - xy * xq) / determinant;
  const rest = (x: number, y: number): number => y - y1 - slope * (x - x1) - bend * (x ** 2 - x2);
  return { slope, bend, unevenness: Math.sqrt(mean((x, y) => rest(x, y) ** 2)) / usual };
}

/** How far the biting edge rises towards the ends of a row that speaks, share of the usual height. */
const CURVE = 0.3;

/**
 * Moves the row's columns so that its biting edge is level with the corners of the mouth and hardly
 * bent. A smile that is seen from above bends it: when its corners sink, the teeth at the sides
 * would stay up behind the lip.
 */
export function straighten(
  image: RgbImage,
  row: Plane,
  box: Box,
  opening: Plane,
  { slope, bend }: BitingEdge,
): void {
  const columns = columnsOf(row, box);
  const usual = usualHeight(columns);
  const at = across(columns.length);
  const corners = columnsOf(opening, box)
    .map(({ height, end }, i) => ({ x: at(i), y: end - height / 2, height }))
    .filter(({ height }) => height > 0);
  const [left, right] = [corners[0]!, corners.at(-1)!];
  const level = (right.y - left.y) / Math.max(0.5, right.x - left.x);
  const bent = Math.max(bend, -CURVE * usual) - bend;
  const { width } = row;
  const source = { image: image.data.slice(), row: row.data.slice() };
  columns.forEach((_, i) => {
    const down = clamp((level - slope) * at(i) + bent * at(i) ** 2, -usual, usual);
    for (let y = box.top; y < box.bottom; y++) {
      const from = clamp(y - down, box.top, box.bottom - 1.001);
      const upper = Math.floor(from) * width + box.left + i;
      const share = from - Math.floor(from);
      const mixed = (data: ArrayLike<number>, step: number, c: number): number =>
        data[upper * step + c]! * (1 - share) + data[(upper + width) * step + c]! * share;
      const to = y * width + box.left + i;
      row.data[to] = mixed(source.row, 1, 0) > 0.5 ? 1 : 0;
      for (let c = 0; c < 3; c++) {
        image.data[to * 3 + c] = mixed(source.image, 3, c);
      }
    }
  });
}

/** How far a row is continued at each side, share of the mouth's width. */
const SIDES = 0.13;
/** Light of the teeth that are added: of the first and of the last, which lie in the cheek's shade. */
const SIDE_LIGHT: readonly [number, number] = [0.82, 0.34];
/** A column of less than this share of the usual height does not belong to the visible row. */
const END = 0.4;

/**
 * Continues the row at both sides with its own last teeth, mirrored: smaller and darker, as the arch
 * goes back. The corners of a smile hide them, and a row that stops there looks cut off.
 */
export function completeSides(image: RgbImage, row: Plane, box: Box): void {
  const { width } = row;
  const columns = columnsOf(row, box);
  const usual = usualHeight(columns);
  const isTooth = ({ height }: { height: number }): boolean => height > END * usual;
  const most = Math.round(SIDES * columns.length);
  for (const [edge, way] of [
    [columns.findIndex(isTooth), -1],
    [columns.findLastIndex(isTooth), 1],
  ] as const) {
    for (let k = 1; k <= most; k++) {
      const [to, from] = [edge + way * k, edge - way * k];
      const source = columns[from];
      if (!columns[to] || !source) {
        break;
      }
      // The biting edge goes on level, and the teeth become shorter.
      const t = k / most;
      const rise = Math.round(
        Math.min(usual / 2, Math.max(0, source.end - columns[edge]!.end)) + 0.15 * usual * t,
      );
      const light = SIDE_LIGHT[0] + (SIDE_LIGHT[1] - SIDE_LIGHT[0]) * t;
      for (let y = box.top; y < box.bottom; y++) {
        const at = y * width + box.left + to;
        const [below, lower] = [y + rise, (y + rise) * width + box.left + from];
        row.data[at] = below < box.bottom ? row.data[lower]! : 0;
        for (let c = 0; c < 3; c++) {
          const value = below < box.bottom ? image.data[lower * 3 + c]! : 0;
          image.data[at * 3 + c] = light * value;
        }
      }
    }
  }
}

/** Extends the row of teeth upwards, behind the upper lip, by `by` pixels. */
export function extendUp(row: Plane, box: Box, by: number): Plane {
  const out = plane(row.width, row.height);
  out.data.set(row.data);
  for (let x = box.left; x < box.right; x++) {
    for (let y = box.top; y < box.bottom; y++) {
      if (row.data[y * row.width + x]! < 0.5) {
        continue;
      }
      for (let k = 1; k <= by && y - k >= box.top; k++) {
        out.data[(y - k) * row.width + x] = 1;
      }
      break;
    }
  }
  return out;
}
