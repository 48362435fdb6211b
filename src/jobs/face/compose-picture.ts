// The picture of a face in another size, with another framing or background: a window into the
// portrait, sampled again at the resolution of the picture. Everything that was found in the crop of
// PICTURE_SIZE is moved into it.
import { BREATH_CELL, type FacePatch } from '../../media/face-asset.ts';
import type { FaceLook, PictureSize } from '../../media/face-look.ts';
import { sizeOf } from '../../media/face-look.ts';
import { PICTURE_SIZE } from '../../media/picture.ts';
import { type Crop, resample } from './detect/crop.ts';
import type { PersonSegmenter } from './detect/person-segmenter.ts';
import { FACE_OVAL, type Landmarks, px, py } from './detect/landmarks.ts';
import { type Box, extendPicture } from './extend-picture.ts';
import {
  clamp,
  type Plane,
  plane,
  type Pyramid,
  type RgbImage,
  rgbImage,
  sampleAt,
} from './imaging/image.ts';
import { blur } from './imaging/mask.ts';
import { replaceBackground } from './replace-background.ts';
import { limitSteps, MAX_STEP } from './regions/head-matte.ts';
import { segmentHead } from './regions/head-mask.ts';

/** Shorter side of the window, in pixels of the crop. */
const WINDOW_SIDES = { head: PICTURE_SIZE, shoulders: 1.35 * PICTURE_SIZE } as const;
/** Share of what a window is higher than the crop that lies above it: the rest shows the body. */
const SHARE_ABOVE = 0.25;
/**
 * Where a window is higher than the portrait, the rest is above the head as long as the middle of the
 * crop is not lower than this, share of the height: a wall goes on up there, no body ends.
 */
const LOWEST_MIDDLE = 0.53;
/** Hair around the face, share of its width and height. */
const HAIR_SHARE = { aside: 0.15, above: 0.4 } as const;
/** How far a window may move sideways to stay inside the portrait, share of its width. */
const ASIDE_SHARE = 0.08;
/** Pixels of the crop that differ by less than this were not retouched; sum of three channels. */
const RETOUCHED = 6;

/** Where the picture lies in the crop. */
interface Window extends PictureSize {
  /** Its corner, in pixels of the crop. */
  readonly left: number;
  readonly top: number;
  /** Pixels of the picture per pixel of the crop. */
  readonly scale: number;
}

/** The picture of a face, and the way into it from the crop. */
export interface ComposedPicture {
  readonly image: RgbImage;
  /** Pixels of the picture per pixel of the crop. */
  readonly scale: number;
  /** Share of the picture that lies outside the portrait and was inpainted, 0..1. */
  readonly inpaintedShare: number;
  /** False where the background was kept, as wished or as it and the person could not be told apart. */
  readonly isReplaced: boolean;
  points(points: Landmarks): Landmarks;
  patch(patch: FacePatch): FacePatch;
  /** One value per pixel of the crop becomes one per pixel of the picture. */
  matte(weight: Uint8Array): Uint8Array;
  /** One value per cell becomes one per cell. */
  shoulders(cells: Uint8Array): Uint8Array;
}

/**
 * @param rested the crop with its mouth closed
 * @param points of `rested`
 */
export async function composePicture(
  source: Pyramid,
  crop: Crop,
  { image: rested, points }: { readonly image: RgbImage; readonly points: Landmarks },
  look: FaceLook,
  segmenter: PersonSegmenter,
): Promise<ComposedPicture> {
  const window = windowOf(source, crop, look);
  const moved = movedPoints(points, window);
  const { image, inpaintedShare, sharp } = sampled(source, crop, window, headBox(moved));
  retouch(image, crop.image, rested, window);
  const isReplaced =
    look.background !== 'keep' &&
    replaceBackground(
      image,
      segmentHead(image, moved, await segmenter.segment(image)).mask,
      headBox(moved),
      look.background,
      sharp,
    );
  const across = PICTURE_SIZE / BREATH_CELL;
  return {
    image,
    scale: window.scale,
    inpaintedShare,
    isReplaced,
    points: (given) => movedPoints(given, window),
    patch: (given) => movedPatch(given, window),
    matte: (weight) => movedMatte(weight, window),
    shoulders: (cells) => {
      const from: Plane = { width: across, height: across, data: Float32Array.from(cells) };
      const columns = window.width / BREATH_CELL;
      return Uint8Array.from({ length: columns * (window.height / BREATH_CELL) }, (_, i) => {
        const x = cropX(((i % columns) + 0.5) * BREATH_CELL, window);
        const y = cropY((Math.floor(i / columns) + 0.5) * BREATH_CELL, window);
        // Beside the crop nobody knows where the body ends.
        const beside = Math.max(0, -x, x - PICTURE_SIZE) / (PICTURE_SIZE / 4);
        return (
          sampleAt(from, x / BREATH_CELL - 0.5, y / BREATH_CELL - 0.5) * Math.max(0, 1 - beside)
        );
      });
    },
  };
}

const cropX = (x: number, { left, scale }: Window): number => left + x / scale;
const cropY = (y: number, { top, scale }: Window): number => top + y / scale;

/** The part of the portrait to show, moved into the portrait where that is near. */
function windowOf({ image }: Pyramid, { square }: Crop, { size, framing }: FaceLook): Window {
  const { width, height } = sizeOf(size);
  const unit = square.side / PICTURE_SIZE;
  const short = Math.min(width, height);
  // No wider than the portrait, but never closer than the crop.
  const fitting = Math.min(image.width / width, image.height / height) * (short / unit);
  const side = clamp(fitting, PICTURE_SIZE, WINDOW_SIDES[framing]);
  const scale = short / side;
  const [across, down] = [width / scale, height / scale];
  let left = (PICTURE_SIZE - across) / 2;
  let top = -(down - PICTURE_SIZE) * SHARE_ABOVE;
  if (square.angle === 0) {
    const first = PICTURE_SIZE / 2 - square.cx / unit;
    const last = first + image.width / unit - across;
    if (last >= first) {
      left += clamp(clamp(left, first, last) - left, -ASIDE_SHARE * across, ASIDE_SHARE * across);
    }
    const highest = PICTURE_SIZE / 2 - square.cy / unit;
    const lowest = highest + image.height / unit - down;
    // Never lower than the crop: hair must stay inside.
    top = Math.min(
      0,
      lowest >= highest
        ? clamp(top, highest, lowest)
        : Math.max(lowest, PICTURE_SIZE / 2 - LOWEST_MIDDLE * down),
    );
  }
  return { width, height, left, top, scale };
}

/** What must stay as it is: the face, and the hair around it. */
function headBox(points: Landmarks): Box {
  const xs = FACE_OVAL.map((index) => px(points, index));
  const ys = FACE_OVAL.map((index) => py(points, index));
  const [left, right, top, bottom] = [
    Math.min(...xs),
    Math.max(...xs),
    Math.min(...ys),
    Math.max(...ys),
  ];
  const [width, height] = [right - left, bottom - top];
  return {
    left: left - HAIR_SHARE.aside * width,
    top: top - HAIR_SHARE.above * height,
    right: right + HAIR_SHARE.aside * width,
    bottom,
  };
}

/** The portrait in the window, and what lies beside it. `sharp`: see `extendPicture`. */
function sampled(
  source: Pyramid,
  { square }: Crop,
  window: Window,
  head: Box,
): {
  readonly image: RgbImage;
  readonly inpaintedShare: number;
  readonly sharp: Plane | undefined;
} {
  const { width, height, left, top, scale } = window;
  const size = Math.max(width, height);
  const unit = square.side / PICTURE_SIZE;
  const x = (left + width / scale / 2 - PICTURE_SIZE / 2) * unit;
  const y = (top + height / scale / 2 - PICTURE_SIZE / 2) * unit;
  const [cos, sin] = [Math.cos(square.angle), Math.sin(square.angle)];
  const { image, known } = resample(
    source,
    {
      cx: square.cx + cos * x - sin * y,
      cy: square.cy + sin * x + cos * y,
      side: (size / scale) * unit,
      angle: square.angle,
    },
    size,
  );
  const out = rgbImage(width, height);
  const seen = new Uint8Array(width * height);
  const [dx, dy] = [(size - width) / 2, (size - height) / 2];
  for (let row = 0; row < height; row++) {
    const from = (row + dy) * size + dx;
    out.data.set(image.data.subarray(from * 3, (from + width) * 3), row * width * 3);
    seen.set(known.subarray(from, from + width), row * width);
  }
  const unseen = seen.reduce((count, value) => count + 1 - value, 0);
  const sharp = extendPicture(out, seen, head);
  return { image: out, inpaintedShare: unseen / seen.length, sharp };
}

/** What was changed in the crop, the mouth that was closed, is changed in the picture. */
function retouch(image: RgbImage, before: RgbImage, after: RgbImage, window: Window): void {
  const changed = plane(PICTURE_SIZE, PICTURE_SIZE);
  for (let i = 0; i < changed.data.length; i++) {
    const at = i * 3;
    const difference =
      Math.abs(after.data[at]! - before.data[at]!) +
      Math.abs(after.data[at + 1]! - before.data[at + 1]!) +
      Math.abs(after.data[at + 2]! - before.data[at + 2]!);
    changed.data[i] = difference > RETOUCHED ? 1 : 0;
  }
  if (!changed.data.includes(1)) {
    return;
  }
  const mask = blur(changed, 2);
  const channels = [0, 1, 2].map((channel) => {
    const out = plane(PICTURE_SIZE, PICTURE_SIZE);
    for (let i = 0; i < out.data.length; i++) {
      out.data[i] = after.data[i * 3 + channel]!;
    }
    return out;
  });
  for (let i = 0; i < image.width * image.height; i++) {
    const x = cropX((i % image.width) + 0.5, window) - 0.5;
    const y = cropY(Math.floor(i / image.width) + 0.5, window) - 0.5;
    if (x < 0 || y < 0 || x > PICTURE_SIZE - 1 || y > PICTURE_SIZE - 1) {
      continue;
    }
    const weight = Math.min(1, 2 * sampleAt(mask, x, y));
    for (let c = 0; weight > 0 && c < 3; c++) {
      const at = i * 3 + c;
      image.data[at] = image.data[at]! * (1 - weight) + sampleAt(channels[c]!, x, y) * weight + 0.5;
    }
  }
}

const movedPoints = (points: Landmarks, { left, top, scale }: Window): Landmarks =>
  points.map(
    (value, i) => (i % 3 === 0 ? value - left : i % 3 === 1 ? value - top : value) * scale,
  );

function movedMatte(weight: Uint8Array, window: Window): Uint8Array {
  const from: Plane = {
    width: PICTURE_SIZE,
    height: PICTURE_SIZE,
    data: Float32Array.from(weight),
  };
  const out = plane(window.width, window.height);
  for (let i = 0; i < out.data.length; i++) {
    const x = cropX((i % window.width) + 0.5, window) - 0.5;
    const y = cropY(Math.floor(i / window.width) + 0.5, window) - 0.5;
    const isInside = x >= 0 && y >= 0 && x <= PICTURE_SIZE - 1 && y <= PICTURE_SIZE - 1;
    out.data[i] = isInside ? sampleAt(from, x, y) : 0;
  }
  limitSteps(out, MAX_STEP); // a smaller picture is steeper
  return Uint8Array.from(out.data, (value) => Math.floor(value));
}

function movedPatch(patch: FacePatch, window: Window): FacePatch {
  const even = (value: number, most: number): number => clamp(2 * Math.floor(value / 2), 0, most);
  const x = even((patch.x - window.left) * window.scale, window.width - 2);
  const y = even((patch.y - window.top) * window.scale, window.height - 2);
  const right = (patch.x + patch.width - window.left) * window.scale;
  const bottom = (patch.y + patch.height - window.top) * window.scale;
  const width = Math.max(2, even(right - x + 1, window.width - x));
  const height = Math.max(2, even(bottom - y + 1, window.height - y));
  const sampledPlane = (values: Uint8Array, shrink: number): Uint8Array => {
    const from: Plane = {
      width: patch.width / shrink,
      height: patch.height / shrink,
      data: Float32Array.from(values),
    };
    const columns = width / shrink;
    return Uint8Array.from({ length: columns * (height / shrink) }, (_, i) => {
      const px = cropX(x + ((i % columns) + 0.5) * shrink, window) - patch.x;
      const py = cropY(y + (Math.floor(i / columns) + 0.5) * shrink, window) - patch.y;
      return sampleAt(from, px / shrink - 0.5, py / shrink - 0.5) + 0.5;
    });
  };
  return {
    x,
    y,
    width,
    height,
    luma: sampledPlane(patch.luma, 1),
    u: sampledPlane(patch.u, 2),
    v: sampledPlane(patch.v, 2),
    alpha: sampledPlane(patch.alpha, 1),
  };
}
