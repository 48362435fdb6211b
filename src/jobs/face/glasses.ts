// Whether somebody wears glasses: their bridge is a dark bar across the nose, where skin shows nothing of the kind.
import { lumaAt } from './colour.ts';
import { clamp, type RgbImage } from './image.ts';
import { BROW_MIDDLE, CHIN, type Landmarks, NOSE_BACK, NOSE_BRIDGE, px, py } from './landmarks.ts';

/** Least dip of brightness along the nose, of its surroundings. Measured: 0.77 (a rendered frame), 0.29 to 0.88 (drawn ones, from thin grey to thick black); bare noses 0.18 at most, in 25 portraits. */
const DIP = .24;
/** Bars wider than twice this, in face heights, are shadows. */
const REACH = .1;

/** Frames that are as light as the skin are not found. */
export function wearsGlasses(image: RgbImage, points: Landmarks): boolean {
  const faceHeight = Math.hypot(px(points, NOSE_BRIDGE) - px(points, CHIN), py(points, NOSE_BRIDGE) - py(points, CHIN));
  const profile = alongNose(image, points, Math.round(.012 * faceHeight));
  const reach = Math.round(REACH * faceHeight);
  return profile.some((luma, i) => {
    if (i < 3 || i >= profile.length - 3) return false;
    const beside = Math.min(Math.max(...profile.slice(Math.max(0, i - reach), i)), Math.max(...profile.slice(i + 1, i + 1 + reach)));
    return beside - luma > DIP * beside;
  });
}

/** Mean brightness across a strip from between the brows down the back of the nose, pixel by pixel. */
function alongNose(image: RgbImage, points: Landmarks, halfWidth: number): number[] {
  const [x0, y0, x1, y1] = [px(points, BROW_MIDDLE), py(points, BROW_MIDDLE), px(points, NOSE_BACK), py(points, NOSE_BACK)];
  const length = Math.max(1, Math.round(Math.hypot(x1 - x0, y1 - y0)));
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  return Array.from({ length: length + 1 }, (_, k) => {
    let sum = 0;
    for (let w = -halfWidth; w <= halfWidth; w++) {
      const x = clamp(Math.round(x0 + ux * k - uy * w), 0, image.width - 1);
      const y = clamp(Math.round(y0 + uy * k + ux * w), 0, image.height - 1);
      sum += lumaAt(image, y * image.width + x);
    }
    return sum / (2 * halfWidth + 1);
  });
}
