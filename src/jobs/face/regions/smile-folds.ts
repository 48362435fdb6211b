// Flattens what a smile draws into the skin round the mouth: the folds from the nose to the corners
// and beside them, the ridges along the folds, and the bulges of the cheeks.
import { labAt, lumaAt, lumaOf } from '../imaging/colour.ts';
import {
  clamp,
  type Plane,
  plane,
  product,
  type RgbImage,
  sampleAt,
  smoothstep,
} from '../imaging/image.ts';
import { blur, dilate, erode, polygonMask } from '../imaging/mask.ts';
import {
  FACE_OVAL,
  LOWER_OUTER,
  type Landmarks,
  NOSE_BASE,
  NOSE_OUTLINE,
  px,
  py,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import type { Rgb } from '../imaging/patch.ts';
import { cheekColour, OTHER } from './cheek-colour.ts';
import { MouthFrame } from './mouth-frame.ts';

/** Widest fold, share of the face's height. */
const WIDEST = 0.045;
/** Mean depth of dark lines in skin, and in a beard: there a fold cannot be told from hair. */
const HAIRY: readonly [number, number] = [8, 16];
/** The same round a pixel: beside bare cheeks a moustache keeps its hair. */
const HAIRY_HERE: readonly [number, number] = [12, 18];
/** Folds, ridges and bulges between these sizes (sigma of a Gaussian, share of the face's height). */
const SIZES: readonly [number, number] = [0.011, 0.1];
/** How much of them is taken away. With few of them a cheek looks painted. */
const MOST = 0.66;
/** How much of that a cheek loses higher up, where a smile has raised it. */
const APPLE = 0.6;
/** What is finer than a fold stays up to this luma, in units of the mean: pores, and no creases. */
const FINEST = 2.4;
/** Depth of a smooth dark line (luma): none, and a fold. */
const FOLD: readonly [number, number] = [2.5, 12];
/** How much less of what is finer than a fold stays in it. */
const IN_FOLD = 0.9;
/**
 * What is finer than this (pixels, sigma) is a pore in a fold, too, up to this share of what stays
 * elsewhere.
 */
const PORES = 1;
const FINE = 0.8;
/** How much of a fold is taken away: a cheek that has lost all looks wiped (judged: .88). */
const DEEP = 0.6;
/** How little folds count in the mean of the skin round them. */
const UNEVEN = 0.85;
/**
 * The chin, which a smile makes red and tight between cheeks that have been flattened: how much of its
 * form is flattened, and how much of its hue becomes that of the skin round it.
 */
const CHIN = { form: 0.36, hue: 0.9 } as const;
/**
 * The same for the skin between nose and lips: a stretched upper lip shows its stubble and its shade
 * more, and beside cheeks that have been flattened they would be a patch.
 */
const ABOVE = { form: 0.75, hue: 0.75 } as const;
/**
 * Share of the skin's colour between nose and lips, on the side that has less of it: in a moustache,
 * and without one (19 faces: 0 to .75, and .92 to .98). A moustache may be as light as skin where
 * the light falls on it.
 */
const SHAVEN: readonly [number, number] = [0.75, 0.9];
/** How far round a place its hue is taken from, in units of the widest size that is flattened. */
const AROUND = 2.5;
/** Distance from the outline of the face over which the change begins, share of its height. */
const MARGIN = 0.02;
/** Distance of the outline on the far side of a turned head, half widths of the mouth. */
const FAR: readonly [number, number] = [2.2, 1.95];
/** Share of skin round a pixel: it lies among hair or clothes, or in a face. */
const SKIN_SHARE: readonly [number, number] = [0.45, 0.8];
/** Pixels in a cell, along x and y, in which slow changes of light are computed. */
const CELL = 4;

/**
 * Flattens the folds in place.
 * @param points landmarks of `image`
 * @param amount how much of all that a smile draws goes, 0..1
 * @param folded the same for the folds alone
 */
export function softenFolds(
  image: RgbImage,
  points: Landmarks,
  amount: number,
  folded = amount,
): void {
  const frame = new MouthFrame(points);
  const around = surroundings(image, points, frame);
  const { region, hued } = around;
  const depth = depthOfLines(around, frame);
  const bare = 1 - smoothstep(...HAIRY, meanIn(region, depth));
  const strength = MOST * amount * bare;
  if (strength < 0.02) {
    return;
  }
  const hair = blur(depth, 0.08 * frame.faceHeight);
  for (let i = 0; i < region.data.length; i++) {
    const isBare = 1 - smoothstep(...HAIRY_HERE, hair.data[i]!);
    region.data[i] = region.data[i]! * isBare;
    hued.data[i] = hued.data[i]! * isBare;
  }
  flattenSizes(
    image,
    around,
    SIZES.map((size) => size * frame.faceHeight) as [number, number],
    strength,
    Math.min(DEEP, Math.max(strength, DEEP * folded * bare)),
  );
}

/**
 * Takes lines, ridges and bulges of some sizes away in place.
 * @param sizes from and to which size, pixels: sigma of a Gaussian
 * @param strength share that is taken away where the region is 1
 * @param deep the same in folds
 */
export function flattenSizes(
  image: RgbImage,
  { box, region, hued, bare, skin }: Flattened,
  [fine, coarse]: readonly [number, number],
  strength: number,
  deep = strength,
): void {
  const luma = plane(box.width, box.height);
  const channels = [0, 1, 2].map((c) => {
    const channel = plane(box.width, box.height);
    for (let i = 0; i < channel.data.length; i++) {
      channel.data[i] = image.data[indexIn(image, box, i) * 3 + c]!;
    }
    return channel;
  });
  const blurred = channels.map((channel) => meanWithin(channel, bare, fine));
  const folds = foldsIn(blurred, bare, fine);
  // Folds are no part of what they become.
  const even = {
    ...skin,
    data: skin.data.map((value, i) => value * (1 - UNEVEN * folds.data[i]!)),
  };
  const means = channels.map((channel, c) => ({
    near: blurred[c]!,
    wide: meanInCells(channel, even, coarse),
    around: hued && meanInCells(channel, skin, AROUND * coarse),
  }));
  let [sum, mass] = [0, 1e-3];
  for (let i = 0; i < luma.data.length; i++) {
    const [r, g, b] = means.map(({ near }) => near.data[i]!);
    luma.data[i] = lumaAt(image, indexIn(image, box, i)) - (0.299 * r! + 0.587 * g! + 0.114 * b!);
    sum += region.data[i]! * Math.abs(luma.data[i]!);
    mass += region.data[i]!;
  }
  const pores = blur(luma, PORES);
  for (let i = 0; i < pores.data.length; i++) {
    pores.data[i] = luma.data[i]! - pores.data[i]!;
  }
  const most = FINEST * Math.max(1, sum / mass);
  for (let i = 0; i < region.data.length; i++) {
    const fold = folds.data[i]!;
    const alpha = (strength + (deep - strength) * fold) * region.data[i]!;
    const hue = strength * (hued?.data[i] ?? 0);
    if (alpha + hue < 0.004) {
      continue;
    }
    const at = indexIn(image, box, i) * 3;
    const [cx, cy] = cellAt(box, i);
    const rgb = (value: (mean: (typeof means)[number]) => number): Rgb => [
      value(means[0]!),
      value(means[1]!),
      value(means[2]!),
    ];
    const from = rgb(({ near }) => near.data[i]!);
    const flat = rgb(({ wide }) => sampleAt(wide, cx, cy));
    const skinned = rgb(({ around, wide }) => sampleAt(around ?? wide, cx, cy));
    // The line in a fold's depth and its rims are as fine as pores: only what is finer stays.
    const kept = 1 / Math.hypot(1, luma.data[i]! / (most * (1 - IN_FOLD * fold)));
    const pore =
      Math.max(0, 1 / Math.hypot(1, pores.data[i]! / (FINE * most)) - kept) * pores.data[i]!;
    const light = lumaOf(...from) / Math.max(1, lumaOf(...skinned));
    for (let c = 0; c < 3; c++) {
      const detail = image.data[at + c]! - from[c]!;
      const change =
        alpha * (flat[c]! - from[c]!) +
        hue * (1 - alpha) * (light * skinned[c]! - from[c]!) -
        Math.min(1, alpha / MOST) * ((1 - kept) * detail - pore);
      image.data[at + c] = clamp(image.data[at + c]! + change + 0.5, 0, 255);
    }
  }
}

/**
 * Where dark lines run through the skin, 0..1: those that are left when hair and pores are blurred.
 * @param near the blurred channels
 */
function foldsIn(near: readonly Plane[], bare: Plane, fine: number): Plane {
  const luma = plane(bare.width, bare.height);
  for (let i = 0; i < luma.data.length; i++) {
    luma.data[i] = lumaOf(near[0]!.data[i]!, near[1]!.data[i]!, near[2]!.data[i]!);
  }
  const radius = Math.max(1, Math.round(2 * fine));
  const closed = erode(dilate(luma, radius), radius);
  for (let i = 0; i < luma.data.length; i++) {
    luma.data[i] = bare.data[i]! * smoothstep(...FOLD, closed.data[i]! - luma.data[i]!);
  }
  return blur(dilate(luma, Math.max(1, Math.round(fine))), fine / 2);
}

/** A rectangle of a picture, pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Index in the picture of pixel `i` of the box. */
export const indexIn = ({ width }: RgbImage, box: Box, i: number): number =>
  (box.top + Math.floor(i / box.width)) * width + box.left + (i % box.width);

/** What is flattened: planes of the box, 0..1. */
interface Flattened {
  readonly box: Box;
  /** Where folds are flattened. */
  readonly region: Plane;
  /** Where the hue becomes that of the skin round it, whatever the light. */
  readonly hued?: Plane;
  /** The face without lips and nose, and its skin alone. */
  readonly bare: Plane;
  readonly skin: Plane;
}

/** What lies round a part of the face. */
interface Surroundings extends Flattened {
  readonly hued: Plane;
  /** 1 + luma. */
  readonly luma: Plane;
}

function surroundings(image: RgbImage, points: Landmarks, frame: MouthFrame): Surroundings {
  const { halfWidth, faceHeight } = frame;
  const reach = Math.ceil(3 * halfWidth);
  const box: Box = {
    left: Math.max(0, Math.round(frame.x) - reach),
    top: Math.max(0, Math.round(frame.y) - reach),
    width: 0,
    height: 0,
  };
  const { left, top } = box;
  const width = Math.min(image.width, Math.round(frame.x) + reach) - left;
  const height = Math.min(image.height, Math.round(frame.y) + reach) - top;
  const inside = { left, top, width, height };
  const mask = (indices: readonly number[]): Plane =>
    polygonMask(
      width,
      height,
      indices.map((i) => ({ x: px(points, i) - left, y: py(points, i) - top })),
    );
  const lips = dilate(mask([...UPPER_OUTER, ...LOWER_OUTER.toReversed()]), 2);
  const nose = blur(dilate(mask(NOSE_OUTLINE), Math.round(0.012 * faceHeight)), 0.01 * faceHeight);
  const face = mask(FACE_OVAL);
  const margin = MARGIN * faceHeight;
  const within = blur(erode(face, Math.round(margin)), margin / 2);
  const region = plane(width, height);
  const hued = plane(width, height);
  const bare = plane(width, height);
  const skin = plane(width, height);
  const luma = plane(width, height);
  const between = plane(width, height);
  // Between nose and lips, on the left and on the right: skin, and all that there is.
  const sides = [
    { skin: 0, all: 1e-3 },
    { skin: 0, all: 1e-3 },
  ];
  const cheek = cheekColour(image, points);
  const noseY = frame.local(points, [NOSE_BASE])[0]!.y;
  const far = farSide(points, frame);
  for (let i = 0; i < region.data.length; i++) {
    const at = indexIn(image, inside, i);
    const { x: u, y: v } = frame.toLocal(
      left + (i % width) + 0.5,
      top + Math.floor(i / width) + 0.5,
    );
    // A bright background beside a cheek makes no dark line of it.
    luma.data[i] = face.data[i]! > 0.5 ? 1 + lumaAt(image, at) : 1;
    const { l, a, b } = labAt(image, at);
    const alike = Math.hypot((l - cheek.l) / 2, a - cheek.a, b - cheek.b);
    const dim = Math.min(1, l / Math.max(1, cheek.l));
    const shaded = Math.hypot((l - cheek.l) / 4, a - dim * cheek.a, b - dim * cheek.b);
    const other = alike - far(u) * Math.max(0, alike - shaded);
    const isFree = face.data[i]! > 0.9 && lips.data[i]! < 0.05;
    bare.data[i] = isFree && nose.data[i]! < 0.5 ? 1 : 0;
    skin.data[i] = bare.data[i]! * (1 - smoothstep(...OTHER, other));
    const r = Math.abs(u) / halfWidth;
    const besideLips = within.data[i]! * (1 - Math.min(1, lips.data[i]!));
    const besideNose = 1 - Math.min(1, nose.data[i]!);
    const chin =
      besideLips * smoothstep(0.1 * halfWidth, 0.4 * halfWidth, v) * smoothstep(1.4, 1, r);
    const isAbove = smoothstep(0.1 * halfWidth, -0.1 * halfWidth, v);
    between.data[i] =
      besideLips *
      besideNose *
      isAbove *
      smoothstep(noseY, noseY + 0.2 * halfWidth, v) *
      smoothstep(1.1, 0.8, r);
    const side = sides[u < 0 ? 0 : 1]!;
    side.skin += skin.data[i]! * between.data[i]!;
    side.all += between.data[i]!;
    hued.data[i] = CHIN.hue * chin;
    region.data[i] =
      within.data[i]! *
      besideNose *
      smoothstep(0.74 - 0.32 * isAbove, 0.96 - 0.26 * isAbove, r) *
      smoothstep(2.4, 1.9, r) *
      Math.max(
        smoothstep(noseY - 0.8 * halfWidth, noseY - 0.3 * halfWidth, v),
        APPLE * skin.data[i]! * smoothstep(noseY - 1.4 * halfWidth, noseY - 0.8 * halfWidth, v),
      ) *
      smoothstep(1.9 * halfWidth, 1.1 * halfWidth, v) *
      // The dark points of the corners that a smile has pulled apart belong to it.
      (1 - Math.min(1, lips.data[i]!) * smoothstep(1, 0.85, r));
    region.data[i] = Math.max(region.data[i]!, CHIN.form * chin);
  }
  const shaven = smoothstep(
    ...SHAVEN,
    Math.min(...sides.map(({ skin: shown, all }) => shown / all)),
  );
  const share = blur(skin, 0.04 * faceHeight);
  const known = blur(bare, 0.04 * faceHeight);
  for (let i = 0; i < region.data.length; i++) {
    const isSkin = smoothstep(...SKIN_SHARE, share.data[i]! / Math.max(0.05, known.data[i]!));
    const moustache = (1 - shaven) * between.data[i]!;
    const bareLip = shaven * skin.data[i]! * between.data[i]!;
    region.data[i] = isSkin * Math.max((1 - moustache) * region.data[i]!, ABOVE.form * bareLip);
    hued.data[i] = isSkin * Math.max(hued.data[i]!, ABOVE.hue * bareLip);
  }
  return { box: inside, region: blur(region, 1.5), hued: blur(hued, 3), bare, skin, luma };
}

/**
 * How far a place lies on the far side of a turned head, 0..1 over u: there the fold beside the mouth
 * lies in deep shade at the outline of the face.
 */
function farSide(points: Landmarks, frame: MouthFrame): (u: number) => number {
  const oval = frame.local(points, FACE_OVAL).map(({ x }) => x / frame.halfWidth);
  const [left, right] = [-Math.min(...oval), Math.max(...oval)];
  const turned = smoothstep(...FAR, Math.min(left, right));
  const side = left < right ? -1 : 1;
  return (u) => turned * smoothstep(0, 0.5 * frame.halfWidth, u * side);
}

/** Depth of the dark lines, luma. */
function depthOfLines({ luma }: Surroundings, frame: MouthFrame): Plane {
  const radius = Math.max(2, Math.round((WIDEST * frame.faceHeight) / 2));
  const closed = erode(dilate(luma, radius), radius);
  for (let i = 0; i < closed.data.length; i++) {
    closed.data[i] = closed.data[i]! - luma.data[i]!;
  }
  return closed;
}

/** Where pixel `i` of the box lies in cells. */
const cellAt = ({ width }: Box, i: number): [number, number] => [
  ((i % width) + 0.5) / CELL - 0.5,
  (Math.floor(i / width) + 0.5) / CELL - 0.5,
];

/** Mean of `values` where `weight` is. */
function meanIn(weight: Plane, values: Plane): number {
  let [sum, mass] = [0, 1];
  for (let i = 0; i < weight.data.length; i++) {
    sum += values.data[i]! * weight.data[i]!;
    mass += weight.data[i]!;
  }
  return sum / mass;
}

/** The Gaussian mean of what `weight` covers (a normalised convolution). */
function meanWithin(channel: Plane, weight: Plane, sigma: number): Plane {
  const [sums, shares] = [blur(product(channel, weight), sigma), blur(weight, sigma)];
  for (let i = 0; i < sums.data.length; i++) {
    const share = shares.data[i]!;
    sums.data[i] = share > 0.02 ? sums.data[i]! / share : channel.data[i]!;
  }
  return sums;
}

/** The same for a large sigma, in cells. */
function meanInCells(channel: Plane, weight: Plane, sigma: number): Plane {
  const cells = plane(Math.ceil(channel.width / CELL), Math.ceil(channel.height / CELL));
  const [sums, shares] = [cells, { ...cells, data: cells.data.slice() }];
  for (let i = 0; i < channel.data.length; i++) {
    const [x, y] = [i % channel.width, Math.floor(i / channel.width)];
    const cell = Math.floor(y / CELL) * cells.width + Math.floor(x / CELL);
    sums.data[cell] = sums.data[cell]! + channel.data[i]! * weight.data[i]!;
    shares.data[cell] = shares.data[cell]! + weight.data[i]!;
  }
  const [sum, share] = [blur(sums, sigma / CELL), blur(shares, sigma / CELL)];
  for (let i = 0; i < sum.data.length; i++) {
    sum.data[i] = sum.data[i]! / Math.max(1e-3, share.data[i]!);
  }
  return sum;
}
