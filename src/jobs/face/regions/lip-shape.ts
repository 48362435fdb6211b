// The shape of lips at rest, from the stretched lips of a smile: where they meet, and how thick they
// are. Measured on 84 portraits with closed lips (MediaPipe FaceMesh), then made more bowed by eye:
// the medians themselves look flat.
import { type Curve, curveThrough, type Point, tabulated } from '../imaging/curve.ts';
import { clamp, smoothstep } from '../imaging/image.ts';
import {
  LOWER_INNER,
  LOWER_OUTER,
  UPPER_INNER,
  UPPER_OUTER,
  type Landmarks,
} from '../detect/landmarks.ts';
import type { MouthFrame } from './mouth-frame.ts';

/** Width of a mouth at rest, and of one that is fully stretched, in eye distances. */
const REST_WIDTH = 0.56;
const STRETCHED_WIDTH = 0.72;

/** A lip's mean thickness within half the width of the mouth, and its outline. */
interface Lip {
  /** In eye distances, at rest: the medians are .062 and .096. */
  readonly typical: number;
  /** Thickness at rest in units of that in a broad smile. */
  readonly grown: number;
  /** Thickness over |u| from the middle to the corner, in steps of a tenth of the half width. */
  readonly profile: readonly number[];
}
const UPPER: Lip = {
  typical: 0.062,
  grown: 1.25,
  profile: [0.94, 1.02, 1.13, 1.12, 1, 0.86, 0.71, 0.54, 0.37, 0.2, 0],
};
const LOWER: Lip = {
  typical: 0.098,
  grown: 1.15,
  profile: [1.05, 1.05, 1.04, 1.02, 0.97, 0.9, 0.79, 0.65, 0.48, 0.27, 0],
};
/** How much of a thickness at rest comes from the person. */
const OWN = 0.65;
/** Most that a lip grows when a smile closes: lips that doubled looked swollen. */
const GROWN = 1.28;
/**
 * Lips that are thinner than this share of the typical thickness get it back, as far as they grow by
 * no more than this: an open mouth has rolled them in.
 */
const LEAST = 0.84;
const UNROLLED = 1.5;
/** Most of the typical outline in that of the person. */
const TYPICAL_OUTLINE = 0.8;
/** How much of its skew the seam of a crooked smile keeps. */
const SKEW = 0.35;
/** The seam dips below the bow of the upper lip by this, and is as wide as this; half widths. */
const DIP = 0.01;
const DIP_WIDTH = 0.13;

/** Lines of the lips at rest: v over u, in the mouth's coordinates before the corners move. */
export interface LipShape {
  readonly seam: Curve;
  readonly upper: Curve;
  readonly lower: Curve;
}

/**
 * @param points landmarks of the open mouth
 * @param gap height of the opening in widths of the mouth
 * @param upperShare how far the upper lip comes to meet the lower one, share of the gap
 */
export function lipShape(
  points: Landmarks,
  frame: MouthFrame,
  gap: number,
  upperShare: number,
): LipShape {
  const { halfWidth } = frame;
  const line = (indices: readonly number[]): Curve => curveThrough(frame.local(points, indices));
  const [upperOuter, lowerOuter] = [line(UPPER_OUTER), line(LOWER_OUTER)];
  const [upperInner, lowerInner] = [line(UPPER_INNER), line(LOWER_INNER)];
  const eyes = frame.eyeDistance;
  const stretched = clamp(
    ((2 * halfWidth) / eyes - REST_WIDTH) / (STRETCHED_WIDTH - REST_WIDTH),
    0,
    1,
  );
  const opened = smoothstep(0.035, 0.1, gap);
  const meet = (u: number): number =>
    upperInner(u) + upperShare * Math.max(0, lowerInner(u) - upperInner(u));
  const seam = smoothSeam(meet, frame, points, opened);
  const thickness = (inner: Curve, outer: Curve, lip: Lip): Curve => {
    const own = (u: number): number => Math.max(0, Math.abs(outer(u) - inner(u)));
    let mean = 0;
    for (let k = -5; k <= 5; k++) {
      mean += own((k / 10) * halfWidth) / 11;
    }
    const relaxed = Math.min(OWN * lip.grown * mean + (1 - OWN) * lip.typical * eyes, GROWN * mean);
    const least = Math.min(LEAST * lip.typical * eyes, UNROLLED * mean);
    const grown = mean + stretched * (relaxed - mean);
    const rest = grown + opened * Math.max(0, least - grown);
    const typical = curveThrough(
      [...lip.profile.slice(1).toReversed(), ...lip.profile].map((value, k) => ({
        x: ((k - 10) / 10) * halfWidth,
        y: value,
      })),
    );
    const share = TYPICAL_OUTLINE * Math.max(stretched, opened);
    return (u) => rest * (share * typical(u) + ((1 - share) * own(u)) / Math.max(1, mean));
  };
  const up = thickness(upperInner, upperOuter, UPPER);
  const low = thickness(lowerInner, lowerOuter, LOWER);
  const across = (curve: Curve): Curve => tabulated(curve, -1.2 * halfWidth, 1.2 * halfWidth);
  return {
    seam: across(seam),
    upper: across((u) => seam(u) - up(u)),
    lower: across((u) => seam(u) + low(u)),
  };
}

/**
 * The line where the lips meet: a smooth arch through the corners, fitted to `meet` by least squares.
 * @param opened how much of it replaces `meet`, 0..1
 */
function smoothSeam(meet: Curve, frame: MouthFrame, points: Landmarks, opened: number): Curve {
  const { halfWidth } = frame;
  const [left, right] = frame.local(points, [UPPER_OUTER[0], UPPER_OUTER[10]]) as [Point, Point];
  const chord = (u: number): number =>
    left.y + ((right.y - left.y) * (u - left.x)) / Math.max(1, right.x - left.x);
  // v = chord + (1 - r²) (a + b r + c r²)
  const basis = (r: number): [number, number, number] => {
    const arch = Math.max(0, 1 - r * r);
    return [arch, arch * r, arch * r * r];
  };
  const sums = Array.from({ length: 3 }, () => [0, 0, 0, 0]);
  for (let k = -18; k <= 18; k++) {
    const r = k / 20;
    const row = basis(r);
    const value = meet(r * halfWidth) - chord(r * halfWidth);
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 3; j++) {
        sums[i]![j]! += row[i]! * row[j]!;
      }
      sums[i]![3]! += row[i]! * value;
    }
  }
  const [a, b, c] = solve(sums);
  return (u) => {
    const r = u / halfWidth;
    const [p, q, s] = basis(r);
    const dip =
      DIP *
      halfWidth *
      (Math.exp(-((r / DIP_WIDTH) ** 2)) - 0.5 * Math.exp(-(((Math.abs(r) - 0.3) / 0.16) ** 2)));
    return (1 - opened) * meet(u) + opened * (chord(u) + a! * p + SKEW * b! * q + c! * s + dip);
  };
}

/** Solves three linear equations, rows of three factors and a sum, by Gaussian elimination. */
function solve(rows: number[][]): number[] {
  for (let i = 0; i < 3; i++) {
    const pivot = rows[i]!;
    for (let j = i + 1; j < 3; j++) {
      const factor = rows[j]![i]! / pivot[i]!;
      rows[j] = rows[j]!.map((value, k) => value - factor * pivot[k]!);
    }
  }
  const found = [0, 0, 0];
  for (let i = 2; i >= 0; i--) {
    const rest = rows[i]!.slice(0, 3).reduce(
      (sum, value, k) => sum + (k > i ? value * found[k]! : 0),
      0,
    );
    found[i] = (rows[i]![3]! - rest) / rows[i]![i]!;
  }
  return found;
}
