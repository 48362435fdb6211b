// Detects glasses by their bridge: a bar across the nose, where bare skin shows none.
import { lumaAt, mean, median, robustDeviation } from '../imaging/colour.ts';
import { clamp, type RgbImage } from '../imaging/image.ts';
import {
  BROW_MIDDLE,
  CHIN,
  type Landmarks,
  NOSE_BACK,
  NOSE_BRIDGE,
  px,
  py,
} from '../detect/landmarks.ts';

/**
 * Thick bridges: least dip of luma along the nose, share of its surroundings. Measured: 0.77 (a
 * rendered frame), 0.29 to 0.88 (drawn ones, from thin grey to thick black); bare noses have 0.18
 * at most, in 25 portraits.
 */
const DIP = 0.24;
/** Half the greatest thickness of a bridge, in face heights. Wider dips are shadows. */
const REACH = 0.1;

/**
 * Thin or light bridges: least contrast with the skin on both sides, at every place across the
 * nose. Measured: 0.05 to 0.42 (drawn: gold, silver, rose, clear, thin grey); bare noses have 0.04
 * at most, a cracked painting 0.08.
 */
const BAR = 0.055;
/**
 * Half the thickness of a thin bridge, and the offsets from the middle of the nose where it must
 * show; both in face heights.
 */
const BAR_REACH = 0.03;
const ACROSS = [-0.016, -0.008, 0, 0.008, 0.016] as const;
/**
 * Where the bridge can lie, share of the way from between the brows to the middle of the nose.
 * Frown lines lie above, the tip of the nose below.
 */
const BAR_PLACE: readonly [number, number] = [0.15, 0.78];
/** Vertical tolerance between the places across the nose, pixels. */
const BEND = 2;

/**
 * Noise that thresholds allow for, share of the luma; and by how much they rise with more. Of 494
 * everyday portraits without glasses 61 passed for some with glasses, 35 of them by noise; of 26
 * with glasses one is lost.
 */
const USUAL_NOISE = 0.015;
const PER_NOISE = { dip: 4, bar: 2.5 };

/** Whether the portrait shows glasses. Frames as light as the skin are not found. */
export function wearsGlasses(image: RgbImage, points: Landmarks): boolean {
  const faceHeight = Math.hypot(
    px(points, NOSE_BRIDGE) - px(points, CHIN),
    py(points, NOSE_BRIDGE) - py(points, CHIN),
  );
  const profile = alongNose(image, points, 0, Math.round(0.012 * faceHeight));
  const reach = Math.round(REACH * faceHeight);
  const strips = ACROSS.map((offset) => alongNose(image, points, offset * faceHeight, 1));
  const noise = noiseOf(strips);
  const broad = profile.some((luma, i) => {
    if (i < 3 || i >= profile.length - 3) {
      return false;
    }
    const beside = Math.min(
      Math.max(...profile.slice(Math.max(0, i - reach), i)),
      Math.max(...profile.slice(i + 1, i + 1 + reach)),
    );
    return beside - luma > (DIP + PER_NOISE.dip * noise) * beside;
  });
  return broad || thinBar(strips, faceHeight) > BAR + PER_NOISE.bar * noise;
}

/**
 * @returns the standard deviation of noise in the strips, share of their luma; what is usual is 0
 */
function noiseOf(strips: readonly (readonly number[])[]): number {
  const AROUND = 2;
  const deviations = strips.flatMap((strip) =>
    strip.map((luma, k) => {
      const near = strip.slice(Math.max(0, k - AROUND), k + AROUND + 1);
      return luma - mean(near);
    }),
  );
  const share = robustDeviation(deviations) / Math.max(1, median(strips.flat()));
  return Math.max(0, share - USUAL_NOISE);
}

/**
 * The contrast of the clearest thin bar across the nose, dark or light, where that contrast is
 * least; share, 0..1.
 */
function thinBar(profiles: readonly (readonly number[])[], faceHeight: number): number {
  const reach = Math.max(3, Math.round(BAR_REACH * faceHeight));
  const length = profiles[0]!.length;
  const contrast = (profile: readonly number[], k: number, sign: number): number => {
    const [before, after] = [profile[k - reach], profile[k + reach]];
    if (before === undefined || after === undefined) {
      return 0;
    }
    const beside = sign < 0 ? Math.min(before, after) : Math.max(before, after);
    return (sign * (profile[k]! - beside)) / Math.max(20, beside);
  };
  let clearest = 0;
  for (let k = Math.round(BAR_PLACE[0] * length); k < BAR_PLACE[1] * length; k++) {
    for (const sign of [-1, 1]) {
      const least = Math.min(
        ...profiles.map((profile) =>
          Math.max(
            ...Array.from({ length: 2 * BEND + 1 }, (_, d) =>
              contrast(profile, k + d - BEND, sign),
            ),
          ),
        ),
      );
      clearest = Math.max(clearest, least);
    }
  }
  return clearest;
}

/**
 * Mean luma across a strip from between the brows down the nose, one value per pixel of its length.
 * @param aside distance of the strip from the middle line, pixels
 * @param halfWidth half the width of the strip, pixels
 */
function alongNose(image: RgbImage, points: Landmarks, aside: number, halfWidth: number): number[] {
  const [x0, y0, x1, y1] = [
    px(points, BROW_MIDDLE),
    py(points, BROW_MIDDLE),
    px(points, NOSE_BACK),
    py(points, NOSE_BACK),
  ];
  const length = Math.max(1, Math.round(Math.hypot(x1 - x0, y1 - y0)));
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  return Array.from({ length: length + 1 }, (_, k) => {
    let sum = 0;
    for (let w = aside - halfWidth; w <= aside + halfWidth; w++) {
      const x = clamp(Math.round(x0 + ux * k - uy * w), 0, image.width - 1);
      const y = clamp(Math.round(y0 + uy * k + ux * w), 0, image.height - 1);
      sum += lumaAt(image, y * image.width + x);
    }
    return sum / (2 * halfWidth + 1);
  });
}
