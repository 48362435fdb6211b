// The closed eye: a patch of lid skin over the eye, inpainted from its surroundings, with the
// portrait's own grain. The renderer moves the patch for a blink.
import { clamp, plane, type Plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { lumaAt, lumaOf, median } from '../imaging/colour.ts';
import type { Curve, Point } from '../imaging/curve.ts';
import { blur, polygonMask } from '../imaging/mask.ts';
import { inpaint } from '../imaging/inpaint.ts';
import { type EyeIndices, type Landmarks, px, py } from '../detect/landmarks.ts';
import { boundsOf, eyeHeight, lidMargins } from './eye-contours.ts';
import { drawLashes, lashColour } from './eyelashes.ts';
import { rimMask } from './glasses-rim.ts';
import type { Lighting } from './lighting.ts';
import { noiseSource } from '../imaging/noise.ts';
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
  const box = boundsOf(outline, 6, image);
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
  toneLid(lid, image, surround, inpainted, box);
  const [upper, lower] = lidMargins(points, eye);
  const corners = [px(points, eye.outer), px(points, eye.inner)];
  shadeLid(lid, inpainted, box, Math.min(...corners), Math.max(...corners), upper, lower);
  addGrain(lid, inpainted, box, lighting.grain, seed);
  drawLashes(lid, points, eye, lashColour(image, points, eye, lighting));
  const alpha = blur(mask, 2.2);
  if (rim) {
    blur(rim, 0.7).data.forEach((value, i) => {
      alpha.data[i] = alpha.data[i]! * (1 - Math.min(1, 1.4 * value));
    });
  }
  return cutPatch(lid, alpha, box);
}

/**
 * The pixels at the landmarks of the lid and of the skin under the eye, sorted by luma: brow and
 * lashes come first, then skin in shade, then skin in light or with make-up.
 * @returns pixel indices
 */
function surroundingPixels(
  image: RgbImage,
  points: Landmarks,
  { crease, aboveCrease, under }: EyeIndices,
): number[] {
  const pixel = (index: number): number =>
    clamp(Math.floor(py(points, index)), 0, image.height - 1) * image.width +
    clamp(Math.floor(px(points, index)), 0, image.width - 1);
  return [...crease, ...aboveCrease, ...under]
    .map(pixel)
    .toSorted((a, b) => lumaAt(image, a) - lumaAt(image, b) || a - b);
}

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

/** The darkest lid, in the shade of the brow: share of the luma of the skin round the eye. */
const MIN_LID_LUMA = 0.78;

/**
 * Corrects the colour of the inpainted lid, because brows, lashes and glasses bleed into it. Its
 * hue moves towards the lighter half of the skin round the eye as far as it is less saturated than
 * that skin, and its luma is raised towards MIN_LID_LUMA.
 */
function toneLid(
  lid: RgbImage,
  image: RgbImage,
  surround: readonly number[],
  mask: Plane,
  box: Box,
): void {
  const skin = surround.slice(surround.length >> 1);
  const channel = (c: number): number => median(skin.map((i) => image.data[i * 3 + c]!));
  const tone = [channel(0), channel(1), channel(2)] as const;
  const full = saturation(...tone);
  const luma = Math.max(1, lumaOf(...tone));
  for (let y = box.top; y < box.bottom; y++) {
    for (let x = box.left; x < box.right; x++) {
      const i = y * lid.width + x;
      const share = mask.data[i]!;
      if (share <= 0) {
        continue;
      }
      const before = lumaAt(lid, i);
      const light = Math.max(before, mix(before, MIN_LID_LUMA * luma, 0.7));
      const hue = clamp(
        3 *
          (1 -
            saturation(lid.data[i * 3]!, lid.data[i * 3 + 1]!, lid.data[i * 3 + 2]!) /
              Math.max(0.02, full)),
        0,
        0.85,
      );
      for (let c = 0; c < 3; c++) {
        const toned = mix(
          (lid.data[i * 3 + c]! * light) / Math.max(1, before),
          (tone[c]! * light) / luma,
          hue,
        );
        lid.data[i * 3 + c] = clamp(mix(lid.data[i * 3 + c]!, toned, share) + 0.5, 0, 255);
      }
    }
  }
}

const saturation = (r: number, g: number, b: number): number =>
  1 - Math.min(r, g, b) / Math.max(1, r, g, b);
const mix = (a: number, b: number, share: number): number => a + (b - a) * share;

/**
 * The area that the patch covers: the eye and a margin for lashes and lid margins, wider towards
 * the outer corner and upwards, where the lashes fan out.
 */
function patchOutline(points: Landmarks, eye: EyeIndices): Point[] {
  const { outer, inner, upper, lower } = eye;
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
    const lift = isCorner
      ? -fan * 0.5 * opening
      : i <= upper.length
        ? -(0.42 + fan) * opening - 1
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

/**
 * Shades the lid like a part of a sphere: lighter where it bulges, darker in the crease above and
 * towards the lash line. The gains (6 % and 7 %) were chosen by eye.
 */
function shadeLid(
  lid: RgbImage,
  mask: Plane,
  box: Box,
  left: number,
  right: number,
  upper: Curve,
  lower: Curve,
): void {
  const soft = blur(mask, 3);
  for (let y = box.top; y < box.bottom; y++) {
    for (let x = box.left; x < box.right; x++) {
      const i = y * lid.width + x;
      const weight = soft.data[i]!;
      if (weight < 0.01) {
        continue;
      }
      const top = upper(x + 0.5);
      const open = Math.max(2, lower(x + 0.5) - top);
      const t = (y + 0.5 - (top - 0.35 * open)) / (1.35 * open);
      const across = smoothstep(1.15, 0.5, Math.abs((2 * (x + 0.5 - left)) / (right - left) - 1));
      const crease = 0.07 * Math.exp(-(((t - 0.1) / 0.11) ** 2));
      const gain =
        1 +
        weight *
          across *
          (0.06 * Math.sin(Math.PI * clamp((t - 0.15) / 0.85, 0, 1)) -
            0.06 * smoothstep(0.78, 1.05, t) -
            crease);
      for (let c = i * 3; c < i * 3 + 3; c++) {
        lid.data[c] = clamp(lid.data[c]! * gain + 0.5, 0, 255);
      }
    }
  }
}

/**
 * Adds film grain of the portrait's strength (`grain`: standard deviation, luma 0..255; at most 6).
 */
function addGrain(lid: RgbImage, mask: Plane, box: Box, grain: number, seed: number): void {
  const noise = noiseSource(seed);
  const field = plane(box.right - box.left, box.bottom - box.top);
  for (let i = 0; i < field.data.length; i++) {
    field.data[i] = noise();
  }
  const soft = blur(field, 0.6);
  for (let k = 0; k < field.data.length; k++) {
    const i = (Math.floor(k / field.width) + box.top) * lid.width + (k % field.width) + box.left;
    const delta = soft.data[k]! * Math.min(6, 1.8 * grain) * mask.data[i]!;
    for (let c = i * 3; c < i * 3 + 3; c++) {
      lid.data[c] = clamp(lid.data[c]! + delta + 0.5, 0, 255);
    }
  }
}
