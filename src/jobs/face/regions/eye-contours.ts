// The contours of an eye: its lid margins, and the area between them.
import type { Box } from '../imaging/patch.ts';
import { type Curve, curveThrough, type Point } from '../imaging/curve.ts';
import { polygonMask } from '../imaging/mask.ts';
import type { Plane, RgbImage } from '../imaging/image.ts';
import { type EyeIndices, type Landmarks, px, py } from '../detect/landmarks.ts';

/** @returns the margins of the upper and of the lower lid, each from corner to corner; pixels */
export function lidMargins(
  points: Landmarks,
  { outer, inner, upper, lower }: EyeIndices,
): [Curve, Curve] {
  const margin = (lid: readonly number[]): Curve =>
    curveThrough([outer, ...lid, inner].map((i) => ({ x: px(points, i), y: py(points, i) })));
  return [margin(upper), margin(lower)];
}

/** @returns the distance from the highest to the lowest landmark of the lid margins; pixels */
export function eyeHeight(points: Landmarks, { upper, lower }: EyeIndices): number {
  const ys = [...upper, ...lower].map((index) => py(points, index));
  return Math.max(...ys) - Math.min(...ys);
}

/** @returns a mask of the visible eye: 1 between the lid margins, 0 elsewhere */
export function eyeMask({ width, height }: RgbImage, points: Landmarks, eye: EyeIndices): Plane {
  return polygonMask(
    width,
    height,
    [eye.outer, ...eye.upper, eye.inner, ...eye.lower.toReversed()].map((i) => ({
      x: px(points, i),
      y: py(points, i),
    })),
  );
}

/** @returns the indices of the pixels that lie wholly (95 %) between the lid margins */
export function eyePixels(image: RgbImage, points: Landmarks, eye: EyeIndices): number[] {
  const mask = eyeMask(image, points, eye);
  const inside: number[] = [];
  for (let i = 0; i < mask.data.length; i++) {
    if (mask.data[i]! > 0.95) {
      inside.push(i);
    }
  }
  return inside;
}

/** @returns the bounding box of the outline, `margin` pixels larger and clipped to the picture */
export function boundsOf(outline: readonly Point[], margin: number, image: RgbImage): Box {
  return {
    left: Math.max(0, Math.floor(Math.min(...outline.map(({ x }) => x)) - margin)),
    top: Math.max(0, Math.floor(Math.min(...outline.map(({ y }) => y)) - margin)),
    right: Math.min(image.width, Math.ceil(Math.max(...outline.map(({ x }) => x)) + margin)),
    bottom: Math.min(image.height, Math.ceil(Math.max(...outline.map(({ y }) => y)) + margin)),
  };
}
