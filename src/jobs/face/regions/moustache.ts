// Moves the upper lip's outer contour from a moustache to the lip's edge: where hair begins right
// above the lip, FaceMesh takes a line inside it for the edge.
import { type Lab, labAt, lumaAt, mean, median, medianLab } from '../imaging/colour.ts';
import { type Curve, curveThrough } from '../imaging/curve.ts';
import { clamp, type RgbImage, smoothstep } from '../imaging/image.ts';
import {
  type Landmarks,
  px,
  py,
  UPPER_INNER,
  UPPER_LIP,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import type { MouthFrame } from './mouth-frame.ts';

/** Where the edge is searched, in thicknesses of the lip by its landmarks, and in which steps. */
const NEAREST = 0.3;
const FURTHEST = 1.15;
const STEP = 0.05;
/** Where colours are compared, in the same unit: the lip, and what is above it. */
const LIP: readonly [number, number] = [0.1, 0.3];
const ABOVE: readonly [number, number] = [1.1, 1.6];
/** Half widths of the mouth from its middle within which these colours are taken. */
const MIDDLE = 0.6;
/** Mean contrast of a moustache's hair, luma: where it begins to hide the lip, and hides it. */
const HAIR: readonly [number, number] = [7, 14];
/** The same for hair that begins at the lip, if its colour tells. Skin has 2.4 to 4. */
const SOME_HAIR: readonly [number, number] = [5, 8];
/** Difference of the colours of lip and hair (CIE 1976): too small to find the edge, and enough. */
const TELLS: readonly [number, number] = [8, 14];

/**
 * Moves the landmarks of the upper lip.
 * @param points landmarks of closed lips
 * @returns the same landmarks where no moustache is
 */
export function snapToMoustache(image: RgbImage, points: Landmarks, frame: MouthFrame): Landmarks {
  const { halfWidth } = frame;
  const seam = curveThrough(frame.local(points, UPPER_INNER));
  const outer = curveThrough(frame.local(points, UPPER_OUTER));
  const labOf = (u: number, v: number): Lab => {
    const { x, y } = frame.toPicture(u, v);
    const column = clamp(Math.floor(x), 0, image.width - 1);
    return labAt(image, clamp(Math.floor(y), 0, image.height - 1) * image.width + column);
  };
  const above = (u: number, share: number): number => seam(u) - share * (seam(u) - outer(u));
  const typical = ([from, to]: readonly [number, number]): Lab => {
    const colours: Lab[] = [];
    for (let u = -MIDDLE * halfWidth; u <= MIDDLE * halfWidth; u++) {
      for (let share = from; share <= to; share += STEP) {
        colours.push(labOf(u, above(u, share)));
      }
    }
    return medianLab(colours);
  };
  const [lip, hair] = [typical(LIP), typical(ABOVE)];
  const axis = [hair.l - lip.l, hair.a - lip.a, hair.b - lip.b] as const;
  const apart = Math.hypot(...axis);
  const amount =
    smoothstep(...SOME_HAIR, hairiness(image, frame, outer)) * smoothstep(...TELLS, apart);
  if (amount === 0) {
    return points;
  }
  /** How far a place has the colour of hair, 0..1. */
  const hairAt = (u: number, v: number): number => {
    const { l, a, b } = labOf(u, v);
    const along = (l - lip.l) * axis[0] + (a - lip.a) * axis[1] + (b - lip.b) * axis[2];
    return clamp(along / apart ** 2, 0, 1);
  };
  const found = UPPER_OUTER.slice(1, -1).map((landmark) => {
    const { x } = frame.toLocal(px(points, landmark), py(points, landmark));
    // The mean over a few columns.
    const hairy = (share: number): number =>
      mean([-3, -2, -1, 0, 1, 2, 3].map((k) => hairAt(x + 0.02 * k * halfWidth, above(x, share))));
    return { x, y: edgeAt(hairy) };
  });
  const edge = curveThrough(
    found.map(({ x }, i) => ({
      x,
      y: median([-1, 0, 1].map((d) => found[clamp(i + d, 0, found.length - 1)]!.y)),
    })),
  );
  const moved = points.slice();
  for (const landmark of UPPER_LIP) {
    const { x, y } = frame.toLocal(px(points, landmark), py(points, landmark));
    const share = 1 + amount * (edge(x) - 1);
    const to = frame.toPicture(x, seam(x) - share * (seam(x) - y));
    moved[landmark * 3] = to.x;
    moved[landmark * 3 + 1] = to.y;
  }
  return moved;
}

/** How far a moustache covers the skin above the lip, 0..1. `outer` is the lip's outer contour. */
export const moustache = (image: RgbImage, frame: MouthFrame, outer: Curve): number =>
  smoothstep(...HAIR, hairiness(image, frame, outer));

/** The share of the thickness below which is lip and above which is hair, by least error. */
function edgeAt(hairy: (share: number) => number): number {
  const values: { share: number; value: number }[] = [];
  for (let share = LIP[0]; share <= ABOVE[1]; share += STEP) {
    values.push({ share, value: hairy(share) });
  }
  let [best, least] = [1, Infinity];
  for (let edge = NEAREST; edge <= FURTHEST; edge += STEP) {
    let error = 0;
    for (const { share, value } of values) {
      error += share < edge ? value : 1 - value;
    }
    if (error < least) {
      [best, least] = [edge, error];
    }
  }
  return best;
}

/** Mean contrast of what is above the lip, luma: that of a moustache is high. */
function hairiness(image: RgbImage, frame: MouthFrame, outer: Curve): number {
  let [sum, count] = [0, 1];
  const step = Math.max(1, Math.round(0.012 * frame.faceHeight));
  for (let u = -0.6 * frame.halfWidth; u < 0.6 * frame.halfWidth; u += 1) {
    for (let rise = 0.025 * frame.faceHeight; rise < 0.07 * frame.faceHeight; rise += 1) {
      const at = (du: number): number => {
        const { x, y } = frame.toPicture(u + du, outer(u) - rise);
        const column = clamp(Math.round(x), 0, image.width - 1);
        return lumaAt(image, clamp(Math.round(y), 0, image.height - 1) * image.width + column);
      };
      sum += Math.abs(at(0) - (at(-step) + at(step)) / 2);
      count++;
    }
  }
  return sum / count;
}
