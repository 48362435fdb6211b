// The inside of the mouth: the person's own upper teeth where the portrait shows them, and colours
// in the portrait's light for what the renderer paints.
import type { FacePatch, FaceTints } from '../../../media/face-asset.ts';
import { labAt, lumaOf, quantile } from '../imaging/colour.ts';
import { blur, dilate } from '../imaging/mask.ts';
import { clamp, plane, type Plane, type RgbImage } from '../imaging/image.ts';
import { inpaint } from '../imaging/inpaint.ts';
import { castOf, type Lighting, withCast } from './lighting.ts';
import { type Box, cutPatch, type Rgb, rgbToYuv } from '../imaging/patch.ts';

/** Teeth cut out of the portrait. */
export interface OwnTeeth {
  readonly patch: FacePatch;
  /** The 0.6 quantile of each channel of the teeth. */
  readonly colour: Rgb;
}

/** Least size of the opening, pixels. */
const MIN_OPENING_PIXELS = 150;
/** Least share of teeth in the opening. When fewer are visible, painted teeth look better. */
const MIN_TEETH_SHARE = 0.3;
/** Least share of the teeth within the contour that the landmarks give. */
const LEAST_WITHIN = 0.4;
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

/**
 * The upper row of teeth as visible in a smile: bright and not red. In each column the run nearest
 * the upper lip counts; below it may be the cavity, the tongue or the lower row.
 * @param opening where the mouth is open, 0..1 per pixel
 * @param contour the same as the landmarks show it; teeth lie in it, the gloss of grey lips does not
 * @returns undefined when too little or only a part of a row is visible
 */
export function ownTeeth(image: RgbImage, opening: Plane, contour?: Plane): OwnTeeth | undefined {
  const { width, height } = image;
  const inside: { index: number; l: number; a: number }[] = [];
  for (let i = 0; i < opening.data.length; i++) {
    if (opening.data[i]! > 0.5) {
      inside.push({ index: i, ...labAt(image, i) });
    }
  }
  if (inside.length < MIN_OPENING_PIXELS) {
    return undefined;
  }
  const bright =
    0.62 *
    quantile(
      inside.map(({ l }) => l),
      0.92,
    );
  const pale = Math.min(
    16,
    quantile(
      inside.map(({ a }) => a),
      0.85,
    ) + 3,
  );
  const teeth = inside.filter(({ l, a }) => l >= bright && a <= pale);
  if (teeth.length < MIN_TEETH_SHARE * inside.length) {
    return undefined;
  }
  if (
    contour &&
    teeth.filter(({ index }) => contour.data[index]! > 0.5).length < LEAST_WITHIN * teeth.length
  ) {
    return undefined;
  }
  const tooth = plane(width, height);
  for (const { index } of teeth) {
    tooth.data[index] = 1;
  }
  const box = boundsOf(opening, 12);
  const row = upperRow(dilate(tooth, 1), opening, box);
  trim(row, box);
  if (!isWhole(row, box)) {
    return undefined;
  }
  const known = Uint8Array.from(row.data, (value, i) =>
    value > 0.5 && opening.data[i]! > 0.9 && tooth.data[i]! > 0.5 ? 1 : 0,
  );
  if (!known.includes(1)) {
    return undefined;
  }
  // Continue the colours beyond the visible part, for a lip that rises further still.
  const filled: RgbImage = { width, height, data: image.data.slice() };
  inpaint(filled, known);
  completeSides(filled, row, box);
  const alpha = blur(extendUp(row, box, Math.round((box.bottom - box.top) * 0.22)), 0.8);
  const channel = (c: number): number =>
    quantile(
      teeth.map(({ index }) => image.data[index * 3 + c]!),
      0.6,
    );
  return { patch: cutPatch(filled, alpha, box), colour: [channel(0), channel(1), channel(2)] };
}

/** Share of the lips' hue in that of gums and tongue. */
const LIKE_LIPS = 0.4;
/** Share of the skin's hue in that of the teeth, which lie in light that lips and cheeks reflect. */
const LIKE_SKIN = 0.12;
/**
 * Most chroma of painted teeth, in units of the skin's, for blue and for red, and what is allowed on
 * pale skin: teeth are paler than skin in any light.
 */
const PALER = { blue: 0.5, red: 0.3, least: 0.02 } as const;
/** Redness of skin below which a picture's colours are faded, unless the lips are redder. */
const FADED_SKIN = 0.3;
/** Redness of lips in a black and white picture that was tinted, and in one in colour. */
const TINTED_LIPS = 0.2;
const RED_LIPS = 0.45;

/** @returns 0 for a grey to 1 for a pure red */
const redness = ([r, g, b]: Rgb): number => Math.max(0, r - Math.min(g, b)) / Math.max(1, r);

/**
 * The colours (limited-range YUV) of cavity, gums, tongue and teeth in the light of the portrait.
 * The renderer paints with them. The colours in white light were chosen by eye.
 * @param teeth their colour where the portrait shows them
 * @param lip colour of the lower lip
 */
export function mouthTints(
  { white, skin, colour }: Lighting,
  teeth: Rgb | undefined,
  lip: Rgb | undefined,
): FaceTints {
  // A black and white photograph shows no colour in the mouth either, a faded one little.
  const red = lip ? (redness(lip) - TINTED_LIPS) / (RED_LIPS - TINTED_LIPS) : 0;
  const seen = Math.max(redness(skin) / FADED_SKIN, red);
  const saturation = colour * Math.min(1, seen);
  const lit = (r: number, g: number, b: number): Rgb => {
    const grey = lumaOf(r, g, b);
    const toned = (value: number): number => grey + (value - grey) * saturation;
    return [white[0] * toned(r), white[1] * toned(g), white[2] * toned(b)];
  };
  // Gums and tongue follow the tone of the skin: they are darker with dark skin.
  const tone = Math.min(1, 0.58 + (0.42 * (skin[0] + skin[1] + skin[2])) / 3 / 165);
  // What a painter makes of red, and what light makes of it, is seen on the lips. Lipstick counts too,
  // but little.
  const towards = (base: Rgb, other: Rgb, share: number): Rgb => {
    const light = lumaOf(...base) / Math.max(1, lumaOf(...other));
    const mixed = (c: 0 | 1 | 2): number => base[c] + share * (other[c] * light - base[c]);
    return [mixed(0), mixed(1), mixed(2)];
  };
  // Lips that are greyer than flesh, as dark ones are, make a tongue look grey: they count less.
  const flesh = (base: Rgb): Rgb =>
    lip
      ? towards(base, lip, LIKE_LIPS * Math.min(1, redness(lip) / Math.max(0.1, redness(base))))
      : base;
  return {
    cavity: rgbToYuv(lit(0.14 * tone, 0.05 * tone, 0.05 * tone)),
    gums: rgbToYuv(flesh(lit(0.74 * tone, 0.42 * tone, 0.42 * tone))),
    tongue: rgbToYuv(flesh(lit(0.86 * tone, 0.36 * tone, 0.38 * tone))),
    teeth: rgbToYuv(teeth ?? paler(towards(lit(0.98, 0.945, 0.86), skin, LIKE_SKIN), skin)),
  };
}

/** Bounds the chroma of teeth by that of the skin. */
function paler(teeth: Rgb, skin: Rgb): Rgb {
  const [u, v] = castOf(teeth);
  const [skinU, skinV] = castOf(skin);
  const bound = (value: number, share: number, like: number): number => {
    const most = share * Math.abs(like) + PALER.least;
    return clamp(value, -most, most);
  };
  return withCast(lumaOf(...teeth), [bound(u, PALER.blue, skinU), bound(v, PALER.red, skinV)]);
}

/** Bounding box of a mask, `margin` pixels larger on each side. */
function boundsOf({ width, height, data }: Plane, margin: number): Box {
  let [left, right, top, bottom] = [width, 0, height, 0];
  for (let i = 0; i < data.length; i++) {
    if (data[i]! < 0.5) {
      continue;
    }
    [left, right] = [Math.min(left, i % width), Math.max(right, (i % width) + 1)];
    [top, bottom] = [
      Math.min(top, Math.floor(i / width)),
      Math.max(bottom, Math.floor(i / width) + 1),
    ];
  }
  return {
    left: Math.max(0, left - margin),
    right: Math.min(width, right + margin),
    top: Math.max(0, top - margin),
    bottom: Math.min(height, bottom + margin),
  };
}

/** The pixels of the upper row of teeth. */
function upperRow(tooth: Plane, opening: Plane, box: Box): Plane {
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

/** Columns on either side that a column is compared with, share of the mouth's width. */
const NEIGHBOURS = 0.07;
/** A column may end this much lower than its neighbours do, share of the usual height. */
const OVERHANG = 0.08;

/** Cuts off what hangs below the neighbouring teeth: a lower tooth that touches an upper one. */
function trim({ width, data }: Plane, { left, right, top, bottom }: Box): void {
  const columns = Array.from({ length: right - left }, (_, i) => {
    const rows = [];
    for (let y = top; y < bottom; y++) {
      if (data[y * width + left + i]! > 0.5) {
        rows.push(y);
      }
    }
    return { height: rows.length, end: rows.at(-1) ?? -1 };
  });
  const filled = columns.filter(({ height }) => height > 0);
  const usual = quantile(
    filled.map(({ height }) => height),
    0.6,
  );
  const reach = Math.ceil(NEIGHBOURS * (right - left));
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
function isWhole({ width, data }: Plane, { left, right, top, bottom }: Box): boolean {
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
function completeSides(image: RgbImage, row: Plane, box: Box): void {
  const { width } = row;
  const columns = Array.from({ length: box.right - box.left }, (_, i) => {
    const rows = [];
    for (let y = box.top; y < box.bottom; y++) {
      if (row.data[y * width + box.left + i]! > 0.5) {
        rows.push(y);
      }
    }
    return { height: rows.length, end: rows.at(-1) ?? box.top };
  });
  const usual = quantile(
    columns.map(({ height }) => height).filter((height) => height > 0),
    0.6,
  );
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
function extendUp(row: Plane, box: Box, by: number): Plane {
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
