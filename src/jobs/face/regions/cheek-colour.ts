// The colour of a face's skin: that of its cheeks.
import { type Lab, labAt, medianLab } from '../imaging/colour.ts';
import { clamp, type RgbImage } from '../imaging/image.ts';
import { CHEEKS, type Landmarks, px, py } from '../detect/landmarks.ts';

/** Difference from the cheeks' colour (a*, b* and half of L*) of skin, and of hair or clothes. */
export const OTHER: readonly [number, number] = [16, 30];

/** Median L*a*b* of the cheeks. */
export function cheekColour(image: RgbImage, points: Landmarks): Lab {
  const labs = CHEEKS.flatMap((index) =>
    Array.from({ length: 49 }, (_, k) => {
      const x = clamp(Math.round(px(points, index)) + 2 * (k % 7) - 6, 0, image.width - 1);
      const y = clamp(
        Math.round(py(points, index)) + 2 * Math.floor(k / 7) - 6,
        0,
        image.height - 1,
      );
      return labAt(image, y * image.width + x);
    }),
  );
  return medianLab(labs);
}
