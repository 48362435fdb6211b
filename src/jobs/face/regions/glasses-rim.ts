// The rim of glasses in front of an eyelid: it must stay in place when the lid closes behind it.
import { lumaAt, quantile } from '../imaging/colour.ts';
import { type Plane, plane, type RgbImage } from '../imaging/image.ts';
import { blur, dilate } from '../imaging/mask.ts';
import type { Box } from '../imaging/patch.ts';
import { type EyeIndices, type Landmarks, px, py } from '../detect/landmarks.ts';
import { eyeHeight, eyeMask, lidMargins } from './eye-contours.ts';

/**
 * Least contrast of the rim with its surroundings, luma 0..255, on at least four fifths of its
 * length.
 */
const MIN_RIM_CONTRAST = 10;
/** Contrast at which the rim ends across its thickness, luma 0..255. */
const RIM_EDGE_CONTRAST = 6;
/** Half the greatest thickness of a rim, pixels. */
const RIM_HALF_THICKNESS = 7;
/**
 * Least distance of the rim above the lid margin, in heights of the eye. What lies closer may be
 * lashes, which must not stay behind when the lid falls.
 */
const MIN_HEIGHT_ABOVE_LID = 0.2;
/** The most that the rim rises or falls from one column to the next, pixels. */
const RIM_SLOPE = 1;

/**
 * The upper rim of glasses that crosses the lid: the line of most contrast, dark or else light,
 * that runs from well beside the eye to well beside it. Lashes and creases end before.
 * @param near the part of the picture to search
 * @returns a mask: 1 on the rim, 0 elsewhere
 */
export function rimMask(image: RgbImage, points: Landmarks, eye: EyeIndices, near: Box): Plane {
  const { width, height } = image;
  const luma = plane(width, height);
  for (let y = Math.max(0, near.top - 24); y < Math.min(height, near.bottom + 24); y++) {
    for (let x = Math.max(0, near.left - 24); x < Math.min(width, near.right + 24); x++) {
      luma.data[y * width + x] = lumaAt(image, y * width + x);
    }
  }
  const smooth = blur(
    luma,
    0.16 *
      Math.hypot(
        px(points, eye.outer) - px(points, eye.inner),
        py(points, eye.outer) - py(points, eye.inner),
      ),
  );
  const opening = eyeMask(image, points, eye);
  const rim = plane(width, height);
  const [upper] = lidMargins(points, eye);
  for (const sign of [-1, 1]) {
    const contrast = (x: number, y: number): number =>
      sign * (luma.data[y * width + x]! - smooth.data[y * width + x]!);
    const path = bestLine(near, (x, y) => Math.min(40, contrast(x, y)));
    if (
      quantile(
        path.map((y, k) => contrast(near.left + k, y)),
        0.2,
      ) < MIN_RIM_CONTRAST
    ) {
      continue;
    }
    const above = path.flatMap((y, k) => {
      const x = near.left + k + 0.5;
      const t = (x - px(points, eye.outer)) / (px(points, eye.inner) - px(points, eye.outer));
      return t > 0.15 && t < 0.85 ? [upper(x) - y] : [];
    });
    if (quantile(above, 0.2) < MIN_HEIGHT_ABOVE_LID * eyeHeight(points, eye)) {
      continue;
    }
    path.forEach((middle, k) => {
      for (const step of [-1, 1]) {
        for (
          let d = 0, y = middle;
          d <= RIM_HALF_THICKNESS &&
          y >= 0 &&
          y < height &&
          contrast(near.left + k, y) > RIM_EDGE_CONTRAST;
          d++, y += step
        ) {
          if (opening.data[y * width + near.left + k] === 0) {
            rim.data[y * width + near.left + k] = 1;
          }
        }
      }
    });
    break; // skin beside a dark line would count as a light line
  }
  return dilate(rim, 1);
}

/**
 * The line across the box with the greatest sum of `gain`, found by dynamic programming.
 * @returns its row in each column of the box
 */
function bestLine(
  { left, right, top, bottom }: Box,
  gain: (x: number, y: number) => number,
): number[] {
  const rows = bottom - top;
  const from: Int16Array[] = [];
  let sums = Float32Array.from({ length: rows }, (_, k) => gain(left, top + k));
  for (let x = left + 1; x < right; x++) {
    const best = new Int16Array(rows);
    sums = Float32Array.from({ length: rows }, (_, k) => {
      best[k] = k;
      for (let j = Math.max(0, k - RIM_SLOPE); j <= Math.min(rows - 1, k + RIM_SLOPE); j++) {
        if (sums[j]! > sums[best[k]]!) {
          best[k] = j;
        }
      }
      return sums[best[k]]! + gain(x, top + k);
    });
    from.push(best);
  }
  let k = sums.indexOf(Math.max(...sums));
  const path = [k];
  for (const best of from.toReversed()) {
    path.push((k = best[k]!));
  }
  return path.toReversed().map((row) => top + row);
}
