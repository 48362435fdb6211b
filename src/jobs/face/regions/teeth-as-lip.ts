// Landmarks of a smile below a moustache that covers the upper lip: FaceMesh may take the upper teeth
// for that lip, and the mouth for closed.
import { mean, medianLab, quantile } from '../imaging/colour.ts';
import type { RgbImage } from '../imaging/image.ts';
import {
  LOWER_INNER,
  LOWER_OUTER,
  type Landmarks,
  UPPER_INNER,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import { at, labsAlong, MIDDLE } from './mouth-opening.ts';

/**
 * Teeth against the lower lip and the moustache: how much lighter (L*) and less red (a*) than the lip
 * they are at least, how much they differ from the hair above them (L*), and how much they differ among
 * each other at most (L*, the middle four fifths of a line across). At how many of five places.
 */
const TEETH = { lighter: 17, paler: 16, unlikeHair: 6, even: 18, places: 4 } as const;
/** Where the upper lip ends that the moustache covers, share of the way down what was taken for it. */
const COVERED = 0.06;

/**
 * Moves the inner contour of the upper lip to the upper edge of the teeth where they were taken for the
 * lip.
 * @returns the landmarks themselves where they were not
 */
export function withTeethFound(image: RgbImage, points: Landmarks): Landmarks {
  if (MIDDLE.filter((k) => isTooth(image, points, k)).length < TEETH.places) {
    return points;
  }
  const found = points.slice();
  for (const [k, inner] of UPPER_INNER.entries()) {
    const outer = UPPER_OUTER[k]!;
    for (const axis of [0, 1]) {
      const edge = points[outer * 3 + axis]!;
      found[inner * 3 + axis] = edge + COVERED * (points[inner * 3 + axis]! - edge);
    }
  }
  return found;
}

/** Whether what lies at place `k` between the contours of the upper lip is a tooth. */
function isTooth(image: RgbImage, points: Landmarks, k: number): boolean {
  const [outer, inner] = [at(points, UPPER_OUTER[k]!), at(points, UPPER_INNER[k]!)];
  const above = { x: 2 * outer.x - inner.x, y: 2 * outer.y - inner.y };
  const upper = labsAlong(image, outer, inner);
  const [tooth, hair] = [medianLab(upper), labsAlong(image, above, outer).map(({ l }) => l)];
  const [from, to] = [at(points, LOWER_INNER[k]!), at(points, LOWER_OUTER[k]!)];
  const lip = medianLab(labsAlong(image, from, to).slice(2, 8));
  const lights = upper.map(({ l }) => l);
  return (
    tooth.l - lip.l > TEETH.lighter &&
    lip.a - tooth.a > TEETH.paler &&
    tooth.l - mean(hair) > TEETH.unlikeHair &&
    quantile(lights, 0.9) - quantile(lights, 0.1) < TEETH.even
  );
}
