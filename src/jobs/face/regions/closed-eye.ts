// The closed eye: a patch of lid skin over the eye, inpainted from its surroundings, with the
// texture of the cheek. The renderer moves the patch for a blink.
import { clamp, mix, plane, type Plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { lumaAt, quantile } from '../imaging/colour.ts';
import type { Curve, Point } from '../imaging/curve.ts';
import { blur, polygonMask } from '../imaging/mask.ts';
import { inpaint } from '../imaging/inpaint.ts';
import { type EyeIndices, type Landmarks, px, py } from '../detect/landmarks.ts';
import { boundsOf, eyeHeight, lidMargins } from './eye-contours.ts';
import { drawLashes, lashColour } from './eyelashes.ts';
import { rimMask } from './glasses-rim.ts';
import type { Lighting } from './lighting.ts';
import { addGrain, addTexture, shadeLid, toneLid } from './lid-skin.ts';
import { type Box, cutPatch } from '../imaging/patch.ts';
import type { FacePatch } from '../../../media/face-asset.ts';

/**
 * Makes the patch that closes one eye. Its alpha is full over the eye, soft round it, and 0 under
 * the rim of glasses.
 * @param image the portrait with a closed mouth, PICTURE_SIZE square
 * @param lighting as measured on the same portrait: its grain is added to the skin
 * @param seed of the grain: the same seed gives the same patch
 * @param wearsGlasses whether to look for the rim of glasses in front of the lid
 */
export function closedEye(
  image: RgbImage,
  points: Landmarks,
  eye: EyeIndices,
  lighting: Lighting,
  seed: number,
  wearsGlasses: boolean,
): FacePatch {
  const outline = patchOutline(points, eye);
  const mask = polygonMask(image.width, image.height, outline);
  const lid: RgbImage = { width: image.width, height: image.height, data: image.data.slice() };
  // Inpaint a wider area: lashes and eyeliner at the lid margin would bleed into the result.
  const inpainted = polygonMask(image.width, image.height, grow(outline, 1.04, 3));
  const box = boundsOf(outline, 12, image);
  const surround = surroundingPixels(image, points, eye);
  const near = boundsOf(outline, 30, image);
  const rim = wearsGlasses ? rimMask(image, points, eye, near) : undefined;
  const known = knownSkin(image, surround, inpainted, near);
  rim?.data.forEach((value, i) => {
    if (value > 0) {
      known[i] = 0;
    }
  });
  inpaint(lid, known);
  const [upper, lower] = lidMargins(points, eye);
  const corners = [px(points, eye.outer), px(points, eye.inner)];
  const down = CHEEK * Math.abs(corners[0]! - corners[1]!);
  toneLid(
    lid,
    image,
    surround,
    cheekPixels(image, points, eye, down),
    socketLuma(image, points, eye),
    inpainted,
    box,
    upper,
    eyeHeight(points, eye),
  );
  shadeLid(lid, inpainted, box, Math.min(...corners), Math.max(...corners), upper, lower);
  if (wearsGlasses) {
    addGrain(lid, inpainted, box, lighting.grain, seed);
  }
  addTexture(lid, image, inpainted, box, down, wearsGlasses);
  drawLashes(lid, points, eye, lashColour(image, points, eye, lighting), lighting);
  const alpha = softOutline(mask, points, eye, upper, box);
  const hair = blur(hairOver(image, surround, points, eye, upper, box), HAIR_FADE);
  hair.data.forEach((value, k) => {
    const [x, y] = [k % hair.width, Math.floor(k / hair.width)];
    const i = (box.top + y) * image.width + box.left + x;
    alpha.data[i] = alpha.data[i]! * (1 - Math.min(1, 1.5 * value));
  });
  if (rim) {
    blur(rim, 0.7).data.forEach((value, i) => {
      alpha.data[i] = alpha.data[i]! * (1 - Math.min(1, 1.4 * value));
    });
  }
  return cutPatch(lid, alpha, box);
}

/** @returns the indices of the pixels at the landmarks */
const pixelsAt = (image: RgbImage, points: Landmarks, indices: readonly number[]): number[] =>
  indices.map(
    (index) =>
      clamp(Math.floor(py(points, index)), 0, image.height - 1) * image.width +
      clamp(Math.floor(px(points, index)), 0, image.width - 1),
  );

/**
 * The pixels at the landmarks of the lid and of the skin under the eye, sorted by luma: brow and
 * lashes come first, then skin in shade, then skin in light or with make-up.
 * @returns pixel indices
 */
const surroundingPixels = (
  image: RgbImage,
  points: Landmarks,
  { crease, aboveCrease, under }: EyeIndices,
): number[] =>
  pixelsAt(image, points, [...crease, ...aboveCrease, ...under]).toSorted(
    (a, b) => lumaAt(image, a) - lumaAt(image, b) || a - b,
  );

/** @returns the indices of pixels of the cheek: the row under the eye, moved by `down` and by half of it */
const cheekPixels = (
  image: RgbImage,
  points: Landmarks,
  { under }: EyeIndices,
  down: number,
): number[] =>
  under.flatMap((index) =>
    [0.5 * down, 0.75 * down, down].map((dy) => {
      const y = clamp(Math.floor(py(points, index) + dy), 0, image.height - 1);
      return y * image.width + clamp(Math.floor(px(points, index)), 0, image.width - 1);
    }),
  );

/** @returns the luma of the skin between the eye and the brow */
const socketLuma = (
  image: RgbImage,
  points: Landmarks,
  { crease, aboveCrease }: EyeIndices,
): number =>
  quantile(
    pixelsAt(image, points, [...crease, ...aboveCrease]).map((i) => lumaAt(image, i)),
    0.6,
  );

/**
 * Where skin is known: 1 outside the eye, except on pixels near it that are darker than skin (the
 * frame of glasses, brow and hair).
 */
function knownSkin(
  image: RgbImage,
  surround: readonly number[],
  eye: Plane,
  near: Box,
): Uint8Array {
  const dark = 0.72 * lumaAt(image, surround[Math.floor(0.65 * surround.length)]!);
  // Not Uint8Array.from: its callback takes as long as all the rest of the eye.
  const known = new Uint8Array(eye.data.length).fill(1);
  for (let i = 0; i < known.length; i++) {
    if (eye.data[i]! > 0) {
      known[i] = 0;
    }
  }
  for (let y = near.top; y < near.bottom; y++) {
    for (let x = near.left; x < near.right; x++) {
      const i = y * image.width + x;
      if (lumaAt(image, i) < dark) {
        known[i] = 0;
      }
    }
  }
  return known;
}

/** How far below the lid is skin without folds, eye lengths. */
const CHEEK = 0.8;

/** Widths over which the patch fades: round the eye and beside hair, pixels. */
const FADE = 2.2;
const HAIR_FADE = 1;
/** The same above the eye, eye lengths. */
const FADE_ABOVE = 0.12;

/** @returns the opacity of the patch: full over the eye, and soft above it */
function softOutline(
  mask: Plane,
  points: Landmarks,
  eye: EyeIndices,
  upper: Curve,
  box: Box,
): Plane {
  const inside = cropped(mask, box);
  const [sharp, soft] = [
    blur(inside, FADE),
    blur(inside, FADE_ABOVE * Math.abs(px(points, eye.outer) - px(points, eye.inner))),
  ];
  const opening = eyeHeight(points, eye);
  const alpha = plane(mask.width, mask.height);
  for (let y = box.top, k = 0; y < box.bottom; y++) {
    for (let x = box.left; x < box.right; x++, k++) {
      const above = smoothstep(0.05, 0.4, (upper(x + 0.5) - y - 0.5) / opening);
      alpha.data[y * mask.width + x] = mix(sharp.data[k]!, soft.data[k]!, above);
    }
  }
  return alpha;
}

function cropped({ width, data }: Plane, { left, top, right, bottom }: Box): Plane {
  const out = plane(right - left, bottom - top);
  for (let y = top; y < bottom; y++) {
    out.data.set(data.subarray(y * width + left, y * width + right), (y - top) * out.width);
  }
  return out;
}

/**
 * How far above the lid's margin dark pixels count as hair, eye heights: at least `margin`, and below
 * `sure` only where pixels by `run` higher are hair, too. Eyeliner and the shade of a crease are thin.
 */
const HAIR_ABOVE = { margin: 0.15, sure: 0.7, run: 0.3 } as const;
/** Over this distance to the margin it fades, eye heights: a dark crease would end as a stub. */
const HAIR_FADES: readonly [number, number] = [0.1, 0.45];
/** Luma of a socket in shade, at least, a share of that of skin in light; darker ones show hair. */
const DARKEST_SOCKET = 0.4;
/** Luma of what may be hair or a brow, and of what surely is; shares of the luma of the socket. */
const HAIR: readonly [number, number] = [0.75, 0.5];

/**
 * Hair and brows over the lid: what is dark and goes on upwards out of the box. Lashes and the lid's
 * crease do not, and go.
 * @returns a mask of the box: 1 on dark hair
 */
function hairOver(
  image: RgbImage,
  surround: readonly number[],
  points: Landmarks,
  eye: EyeIndices,
  upper: Curve,
  { left, top, right, bottom }: Box,
): Plane {
  const inLight = lumaAt(image, surround[Math.floor(0.8 * surround.length)]!);
  const skin = Math.max(socketLuma(image, points, eye), DARKEST_SOCKET * inLight);
  const height = eyeHeight(points, eye);
  const run = Math.round(HAIR_ABOVE.run * height);
  const hair = plane(right - left, bottom - top);
  const isHair = (x: number, y: number): boolean =>
    x >= 0 && x < hair.width && (y < 0 || hair.data[y * hair.width + x]! > 0);
  for (let y = 0, k = 0; y < hair.height; y++) {
    for (let x = 0; x < hair.width; x++, k++) {
      const above = upper(left + x + 0.5) - top - y - 0.5;
      const goesOn = [-1, 0, 1].some((dx) => isHair(x + dx, y - 1));
      const isThick =
        above > HAIR_ABOVE.sure * height || [-2, 0, 2].some((dx) => isHair(x + dx, y - run));
      if (above > HAIR_ABOVE.margin * height + 1 && goesOn && isThick) {
        const luma = lumaAt(image, (top + y) * image.width + left + x) / Math.max(1, skin);
        hair.data[k] = smoothstep(...HAIR, luma) * smoothstep(...HAIR_FADES, above / height);
      }
    }
  }
  return hair;
}

/** Where the patch ends, from the lid's crease (0) to the skin above it (1): it has no crease. */
const ABOVE_CREASE = 0.7;

/**
 * The area that the patch covers: the eye and a margin for lashes and lid margins, wider towards
 * the outer corner and upwards, where the lashes fan out.
 */
function patchOutline(points: Landmarks, eye: EyeIndices): Point[] {
  const { outer, inner, upper, lower, crease, aboveCrease } = eye;
  const at = (index: number): Point => ({ x: px(points, index), y: py(points, index) });
  const ring = [outer, ...upper, inner, ...lower.toReversed()].map(at);
  const opening = eyeHeight(points, eye);
  const centre = (px(points, outer) + px(points, inner)) / 2;
  const half = (px(points, outer) - px(points, inner)) / 2; // signed: positive towards the outer corner
  return ring.map(({ x, y }, i) => {
    const t = (x - centre) / half;
    const spread = t > 0 ? 1 + 0.34 * t * t : 1.14;
    const fan = 0.5 * smoothstep(0.3, 1, t);
    const isCorner = i === 0 || i === upper.length + 1;
    const folds =
      !isCorner && i <= upper.length
        ? y - mix(py(points, crease[i - 1]!), py(points, aboveCrease[i - 1]!), ABOVE_CREASE)
        : 0;
    const lift = isCorner
      ? -fan * 0.5 * opening
      : i <= upper.length
        ? -Math.max((0.42 + fan) * opening + 1, folds)
        : (0.24 - 0.1 * fan) * opening + 1;
    return { x: centre + t * half * spread, y: y + lift };
  });
}

/** Scales an outline about its centroid by `factor`, and moves it outwards by `margin` pixels. */
function grow(outline: readonly Point[], factor: number, margin: number): Point[] {
  const cx = outline.reduce((sum, { x }) => sum + x, 0) / outline.length;
  const cy = outline.reduce((sum, { y }) => sum + y, 0) / outline.length;
  return outline.map(({ x, y }) => {
    const length = Math.hypot(x - cx, y - cy) || 1;
    return {
      x: cx + (x - cx) * (factor + margin / length),
      y: cy + (y - cy) * (factor + margin / length),
    };
  });
}
