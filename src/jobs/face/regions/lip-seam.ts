// Locates the seam between closed lips and moves the inner-lip landmarks onto it.
import { type Curve, curveThrough, type Point } from '../imaging/curve.ts';
import { blur } from '../imaging/mask.ts';
import { cheapestPath } from '../imaging/path.ts';
import { lumaAt, mean } from '../imaging/colour.ts';
import { clamp, type Plane, plane, type RgbImage, sampleAt, smoothstep } from '../imaging/image.ts';
import {
  LOWER_INNER,
  LOWER_LIP,
  LOWER_OUTER,
  MOUTH_CORNERS,
  UPPER_INNER,
  UPPER_LIP,
  UPPER_OUTER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';
import { joinInnerLips, type MouthFrame } from './mouth-frame.ts';

/** Places from the left to the right corner at which the seam is searched. */
const SEAM_COLUMNS = 49;
/** Shares of the width between the outer corners where the path is not trusted, and is. */
const ENDS: readonly [number, number] = [0.07, 0.2];
/** How much darker than the lips a line is that is the seam: perhaps, and surely; luma. */
const LINE: readonly [number, number] = [6, 16];

/**
 * Moves the inner-lip landmarks of a closed mouth onto the dark seam between the lips. The seam is
 * the smooth path of least luma (dynamic programming) within a few pixels of the contour that
 * FaceMesh gives.
 */
export function snapToLipSeam(image: RgbImage, points: Landmarks, frame: MouthFrame): Landmarks {
  const upper = frame.local(points, UPPER_INNER);
  const lower = frame.local(points, LOWER_INNER);
  const [first, last] = frame.local(points, MOUTH_CORNERS) as [Point, Point];
  const line = curveThrough([
    first,
    ...upper.map((point, i) => ({
      x: (point.x + lower[i]!.x) / 2,
      y: (point.y + lower[i]!.y) / 2,
    })),
    last,
  ]);
  const reach = Math.max(2, 0.035 * frame.faceHeight);
  const steps = Math.max(5, Math.ceil(reach * 2) * 2 + 1);
  const [left, right] = [first.x, last.x];
  const luma = lumaPlane(image);
  const offset = (k: number): number => ((k / (steps - 1)) * 2 - 1) * reach;
  /** How much darker the seam is than the lips above and below it, luma. */
  const depthAt = (u: number, at: number): number => {
    const [above, seam, below] = [-0.6 * reach, 0, 0.6 * reach].map((d) => {
      const { x, y } = frame.toPicture(u, line(u) + at + d);
      return sampleAt(luma, x - 0.5, y - 0.5);
    }) as [number, number, number];
    return Math.min(above, below) - seam;
  };
  const columns = Array.from(
    { length: SEAM_COLUMNS },
    (_, column) => left + ((right - left) * column) / (SEAM_COLUMNS - 1),
  );
  const costs = columns.map((u) =>
    Float32Array.from({ length: steps }, (_, k) => {
      const { x, y } = frame.toPicture(u, line(u) + offset(k));
      return sampleAt(luma, x - 0.5, y - 0.5) + ((0.6 * Math.abs(offset(k))) / reach) * 12;
    }),
  );
  const path: Point[] = cheapestPath(costs, 2.5).map((k, column) => {
    const u = columns[column]!;
    // Towards the corners the seam fades into skin, and the path is unreliable unless it is a dark
    // line.
    const end = Math.min(column, SEAM_COLUMNS - 1 - column) / SEAM_COLUMNS;
    const trust = Math.max(smoothstep(...ENDS, end), smoothstep(...LINE, depthAt(u, offset(k))));
    return { x: u, y: offset(k) * trust };
  });
  const smooth = path.map(({ x }, i) => ({
    x,
    y: mean([-2, -1, 0, 1, 2].map((d) => path[clamp(i + d, 0, path.length - 1)]!.y)),
  }));
  return shiftLips(points, frame, line, curveThrough(smooth));
}

/**
 * Moves the inner contours onto line + shift. The other landmarks of the lips follow, less towards
 * the outer contour.
 */
function shiftLips(points: Landmarks, frame: MouthFrame, line: Curve, shift: Curve): Landmarks {
  const moved = points.slice();
  const upperOuter = curveThrough(frame.local(points, UPPER_OUTER));
  const lowerOuter = curveThrough(frame.local(points, LOWER_OUTER));
  const inner = new Set<number>([...MOUTH_CORNERS, ...UPPER_INNER, ...LOWER_INNER]);
  for (const index of new Set([...MOUTH_CORNERS, ...UPPER_LIP, ...LOWER_LIP, ...inner])) {
    const { x, y } = frame.toLocal(px(points, index), py(points, index));
    const middle = line(x);
    const edge = UPPER_LIP.has(index) ? upperOuter(x) : lowerOuter(x);
    const weight = inner.has(index) ? 1 : clamp(1 - (y - middle) / (edge - middle || 1), 0, 1);
    const to = frame.toPicture(x, (inner.has(index) ? middle : y) + shift(x) * weight);
    moved[index * 3] = to.x;
    moved[index * 3 + 1] = to.y;
  }
  joinInnerLips(moved);
  return moved;
}

/** The luma of the picture, slightly blurred. */
export function lumaPlane(image: RgbImage): Plane {
  const luma = plane(image.width, image.height);
  for (let i = 0; i < luma.data.length; i++) {
    luma.data[i] = lumaAt(image, i);
  }
  return blur(luma, 0.8);
}
