// The skin of a closed lid, over what was inpainted there: its colour, shading, texture and grain.
import { clamp, mix, plane, type Plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { lumaAt, lumaOf, median, robustDeviation } from '../imaging/colour.ts';
import type { Curve } from '../imaging/curve.ts';
import { blur } from '../imaging/mask.ts';
import { noiseSource } from '../imaging/noise.ts';
import type { Box } from '../imaging/patch.ts';

/** The darkest lid, in the shade of the brow: share of the luma of the skin round the eye. */
const MIN_LID_LUMA = 0.78;
/**
 * Saturation from which on a lid would be orange, in units of that of the skin round the eye or of
 * the cheek, if it has more, though not by more than the factor: on dark skin the lightest places are
 * highlights, which are grey.
 */
const ORANGE = 1.05;
const WARMER = 1.25;
/**
 * A lid that is lighter than the skin round the eye by the first factor may have less of its hue, by
 * the second any: skin in light is less saturated than in shade.
 */
const IN_LIGHT: readonly [number, number] = [1.15, 1.45];

/**
 * Corrects the colour of the inpainted lid, because brows, lashes and glasses bleed into it. Its
 * hue moves towards the lighter half of the skin round the eye as far as its saturation differs from
 * that of that skin, and its luma is raised towards MIN_LID_LUMA; less so in the socket above.
 * @param cheek pixels of the skin below the eye
 * @param socket luma of the skin between the eye and the brow: a lid is not raised above it
 * @param upper the margin of the open lid
 * @param opening the height of the eye, pixels
 */
export function toneLid(
  lid: RgbImage,
  image: RgbImage,
  surround: readonly number[],
  cheek: readonly number[],
  socket: number,
  mask: Plane,
  box: Box,
  upper: Curve,
  opening: number,
): void {
  const skin = medianColour(image, surround.slice(surround.length >> 1));
  const warmest = clamp(
    medianColour(image, cheek).saturation,
    skin.saturation,
    WARMER * skin.saturation,
  );
  for (let y = box.top; y < box.bottom; y++) {
    for (let x = box.left; x < box.right; x++) {
      const i = y * lid.width + x;
      const inside = mask.data[i]!;
      if (inside <= 0) {
        continue;
      }
      const before = lumaAt(lid, i);
      const isLid = smoothstep(0.9, 0.1, (upper(x + 0.5) - y - 0.5) / opening);
      const light = Math.max(
        before,
        mix(before, Math.min(MIN_LID_LUMA * skin.luma, socket), 0.6 * isLid),
      );
      const own = saturation(lid.data[i * 3]!, lid.data[i * 3 + 1]!, lid.data[i * 3 + 2]!);
      const inShade = smoothstep(IN_LIGHT[1], IN_LIGHT[0], light / skin.luma);
      const lacks = (1 - own / skin.saturation) * inShade;
      const exceeds = own / warmest - ORANGE;
      const hue = clamp(3 * Math.max(lacks, exceeds), 0, 0.85);
      for (let c = 0; c < 3; c++) {
        const toned = mix(
          (lid.data[i * 3 + c]! * light) / Math.max(1, before),
          (skin.rgb[c]! * light) / skin.luma,
          hue,
        );
        lid.data[i * 3 + c] = clamp(mix(lid.data[i * 3 + c]!, toned, inside) + 0.5, 0, 255);
      }
    }
  }
}

/** @returns the median of each channel of the pixels, with its luma and saturation, which are not 0 */
function medianColour(image: RgbImage, pixels: readonly number[]) {
  const channel = (c: number): number => median(pixels.map((i) => image.data[i * 3 + c]!));
  const rgb = [channel(0), channel(1), channel(2)] as const;
  return {
    rgb,
    luma: Math.max(1, lumaOf(...rgb)),
    saturation: Math.max(0.02, saturation(...rgb)),
  };
}

const saturation = (r: number, g: number, b: number): number =>
  1 - Math.min(r, g, b) / Math.max(1, r, g, b);

/**
 * Shades the lid like a part of a sphere: lighter where it bulges, darker towards the lash line.
 * The gain (6 %) was chosen by eye. A closed lid has no crease.
 */
export function shadeLid(
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
      const gain =
        1 +
        weight *
          across *
          (0.06 * Math.sin(Math.PI * clamp((t - 0.15) / 0.85, 0, 1)) -
            0.06 * smoothstep(0.78, 1.05, t));
      for (let c = i * 3; c < i * 3 + 3; c++) {
        lid.data[c] = clamp(lid.data[c]! * gain + 0.5, 0, 255);
      }
    }
  }
}

/** Share of the cheek's texture that the lid has, and the most of it; 0..255. */
const TEXTURE = 0.8;
const TEXTURE_BOUND = 7;
/** Radius of what is texture, pixels. */
const TEXTURE_RADIUS = 3.5;
/**
 * Standard deviation of the cheek's texture from which on it is noise of the camera, 0..255: skin
 * has 3 to 6. All of it is on a lid as well, in colour, too. Spots and wrinkles of the cheek, which
 * are not, exceed it by this factor.
 */
const NOISE: readonly [number, number] = [6, 10];
const BEYOND_NOISE = 3;

/**
 * Gives the lid the texture and the grain of the skin below the eye: inpainted skin is as smooth as
 * plastic.
 * @param down how far below the lid that skin is, pixels
 * @param behindGlasses whether it may have the rim of glasses: then it gives its noise alone
 */
export function addTexture(
  lid: RgbImage,
  image: RgbImage,
  mask: Plane,
  box: Box,
  down: number,
  behindGlasses: boolean,
): void {
  const planes = [0, 1, 2].map(() => plane(box.right - box.left, box.bottom - box.top));
  const { width } = planes[0]!;
  for (let k = 0; k < planes[0]!.data.length; k++) {
    const y = Math.min(image.height - 1, Math.floor(k / width) + box.top + Math.round(down));
    const i = y * image.width + (k % width) + box.left;
    planes.forEach((skin, c) => (skin.data[k] = image.data[i * 3 + c]!));
  }
  const smooth = planes.map((skin) => blur(skin, TEXTURE_RADIUS));
  const of = (c: number, k: number): number => planes[c]!.data[k]! - smooth[c]!.data[k]!;
  const grain = robustDeviation(Array.from(planes[1]!.data, (_, k) => of(1, k)));
  const noisy = smoothstep(...NOISE, grain);
  const share = mix(behindGlasses ? 0 : TEXTURE, 1, noisy);
  const bound = mix(TEXTURE_BOUND, Math.max(TEXTURE_BOUND, BEYOND_NOISE * grain), noisy);
  addDetail(lid, mask, box, (k, c) => {
    const luma = lumaOf(of(0, k), of(1, k), of(2, k));
    return share * clamp(mix(luma, of(c, k), noisy), -bound, bound);
  });
}

/**
 * Adds film grain of the portrait's strength (`grain`: standard deviation, luma 0..255; at most 6).
 */
export function addGrain(lid: RgbImage, mask: Plane, box: Box, grain: number, seed: number): void {
  const noise = noiseSource(seed);
  const field = plane(box.right - box.left, box.bottom - box.top);
  for (let i = 0; i < field.data.length; i++) {
    field.data[i] = noise();
  }
  const soft = blur(field, 0.6);
  addDetail(lid, mask, box, (k) => soft.data[k]! * Math.min(6, 1.8 * grain));
}

/** @param detail what to add to a channel of the pixels of the box, in the order of its rows */
function addDetail(
  lid: RgbImage,
  mask: Plane,
  box: Box,
  detail: (k: number, channel: number) => number,
): void {
  const width = box.right - box.left;
  for (let k = 0; k < width * (box.bottom - box.top); k++) {
    const i = (Math.floor(k / width) + box.top) * lid.width + (k % width) + box.left;
    for (let c = 0; c < 3; c++) {
      const delta = detail(k, c) * mask.data[i]!;
      lid.data[3 * i + c] = clamp(lid.data[3 * i + c]! + delta + 0.5, 0, 255);
    }
  }
}
