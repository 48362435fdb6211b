// Exposure and sharpness of a face.
import { lumaAt, quantile } from '../imaging/colour.ts';
import type { Crop } from './crop.ts';
import { indicesAbove, polygonMask } from '../imaging/mask.ts';
import type { Plane, RgbImage } from '../imaging/image.ts';
import { FACE_OVAL, LEFT_EYE, type Landmarks, px, py, RIGHT_EYE } from './landmarks.ts';

/** How bright a face is. */
export interface Exposure {
  /** The 0.02 and the 0.95 quantile of its luma, 0..255. */
  readonly dark: number;
  readonly bright: number;
  /** Share of its pixels that are clipped (luma above 251), 0..1. */
  readonly clipped: number;
}

/** Measures the exposure of a face. */
export function exposureOf({ image, points }: Pick<Crop, 'image' | 'points'>): Exposure {
  const face = outlineMask(image, points, FACE_OVAL);
  const lumas = indicesAbove(face, 0.5).map((i) => lumaAt(image, i));
  return {
    dark: quantile(lumas, 0.02),
    bright: quantile(lumas, 0.95),
    clipped: lumas.filter((luma) => luma > 251).length / lumas.length,
  };
}

/** Below this `bright` a face counts as lit poorly, and is measured as if it were as bright as LIT. */
export const POORLY_LIT = 110;
export const LIT = 170;
/**
 * A face whose `dark` is above this share of its `bright` is faded, as in old prints: nine of ten
 * portraits have .3 at most. It is measured as if its `dark` were BLACK.
 */
const FADED = 0.4;
const BLACK = 8;

/**
 * The face as more light and more contrast would show it, to be measured like others. One in good
 * light that is not faded is returned as it is.
 */
export function lit<T extends Pick<Crop, 'image' | 'points'>>(
  face: T,
  { dark, bright }: Exposure,
): T {
  const faded = dark > FADED * bright;
  if (bright >= POORLY_LIT && !faded) {
    return face;
  }
  const black = faded ? dark - BLACK : 0;
  const gain = Math.max(bright, LIT) / Math.max(1, bright - black);
  const data = face.image.data.map((value) => Math.min(255, Math.max(0, gain * (value - black))));
  return { ...face, image: { ...face.image, data } };
}

/**
 * Width of the sharpest edges round the eyes, pixels: contrast over steepness, about 2.5 standard
 * deviations of a Gaussian blur.
 */
export function edgeWidth({ image, points }: Crop): number {
  const widths = [LEFT_EYE, RIGHT_EYE].map(({ outer, inner, upper, lower }) => {
    const ring = [outer, inner, ...upper, ...lower];
    const xs = ring.map((i) => px(points, i));
    const ys = ring.map((i) => py(points, i));
    const lumas: number[] = [];
    let steepest = 1;
    for (
      let y = Math.max(1, Math.floor(Math.min(...ys)) - 6);
      y < Math.min(image.height - 1, Math.max(...ys) + 6);
      y++
    ) {
      for (
        let x = Math.max(1, Math.floor(Math.min(...xs)));
        x < Math.min(image.width - 1, Math.max(...xs));
        x++
      ) {
        const i = y * image.width + x;
        lumas.push(lumaAt(image, i));
        steepest = Math.max(
          steepest,
          Math.abs(lumaAt(image, i + 1) - lumaAt(image, i - 1)) / 2,
          Math.abs(lumaAt(image, i + image.width) - lumaAt(image, i - image.width)) / 2,
        );
      }
    }
    return (quantile(lumas, 0.98) - quantile(lumas, 0.02)) / steepest / 2.5;
  });
  return Math.min(...widths);
}

/** Edges with a blur of so many pixels are sharp: nine of ten portraits have sharper ones. */
export const SHARP_EDGE = 1.5;

/** 1 or more in a sharp picture, less in one that was enlarged, or is blurred. */
export const sharpnessOf = (crop: Crop): number =>
  Math.min(crop.scale, SHARP_EDGE / Math.max(1e-3, edgeWidth(crop)));

/** A mask of the polygon through some landmarks. */
export const outlineMask = (
  image: RgbImage,
  points: Landmarks,
  outline: readonly number[],
): Plane =>
  polygonMask(
    image.width,
    image.height,
    outline.map((index) => ({ x: px(points, index), y: py(points, index) })),
  );
