// The fast guided filter with a guide in colour: the outline of a mask takes the edges of a picture
// (K. He, J. Sun, X. Tang, Guided Image Filtering, IEEE TPAMI 2013, section 3.4; K. He, J. Sun, Fast
// Guided Filter, arXiv 1505.00996).
import {
  channel,
  halve,
  halvePlane,
  type Plane,
  plane,
  product,
  type RgbImage,
  sampleAt,
} from './image.ts';
import { boxMean } from './mask.ts';

/** The filtered mask. */
export interface GuidedMask {
  /** 0..1, or a little beyond. */
  readonly value: Plane;
  /** Share of the mask's variance nearby that the colours explain, 0..1; 1 far from its outline. */
  readonly explained: Plane;
}

/** Variance of a mask, 0..0.25, below which there is no outline in a window. */
const NO_OUTLINE = 1e-6;

/**
 * In each window the output is the linear function of the guide's colour that comes closest to the
 * mask; where windows overlap, their mean. The functions are found at half the size. Beyond two
 * radii from its outline the mask stays.
 * @param guide of the size of `mask`, which is even
 * @param mask 0..1
 * @param radius of the square windows, pixels
 * @param epsilon variance (of colours 0..1) below which an edge of the guide does not count
 */
export function guidedFilter(
  guide: RgbImage,
  mask: Plane,
  radius: number,
  epsilon: number,
): GuidedMask {
  const window = Math.max(1, radius >> 1);
  const { slopes, offset, explained } = linearFit(halve(guide), halvePlane(mask), window, epsilon);
  const near = boxMean(mask, 4 * window + 2);
  const value: Plane = { ...mask, data: mask.data.slice() };
  const sure = plane(mask.width, mask.height);
  for (let y = 0, i = 0; y < mask.height; y++) {
    for (let x = 0; x < mask.width; x++, i++) {
      if (near.data[i] === 0 || near.data[i] === 1) {
        sure.data[i] = 1;
        continue;
      }
      const [u, v] = [x / 2 - 0.25, y / 2 - 0.25];
      const [r, g, b] = [guide.data[i * 3]!, guide.data[i * 3 + 1]!, guide.data[i * 3 + 2]!];
      const byColour =
        sampleAt(slopes[0], u, v) * r +
        sampleAt(slopes[1], u, v) * g +
        sampleAt(slopes[2], u, v) * b;
      value.data[i] = sampleAt(offset, u, v) + byColour / 255;
      sure.data[i] = sampleAt(explained, u, v);
    }
  }
  return { value, explained: sure };
}

/** For each pixel the linear function, and what it explains: means of the windows that hold it. */
interface LinearFit {
  /** By how much red, green and blue, 0..1, count. */
  readonly slopes: readonly [Plane, Plane, Plane];
  readonly offset: Plane;
  readonly explained: Plane;
}

function linearFit(guide: RgbImage, mask: Plane, radius: number, epsilon: number): LinearFit {
  const colours = [0, 1, 2].map((c) => channel(guide, c, 255));
  const [red, green, blue] = colours as [Plane, Plane, Plane];
  const mean = (a: Plane, b?: Plane): Float32Array => boxMean(b ? product(a, b) : a, radius).data;
  const [meanR, meanG, meanB, meanP] = [mean(red), mean(green), mean(blue), mean(mask)];
  const [redP, greenP, blueP, squareP] = [
    mean(red, mask),
    mean(green, mask),
    mean(blue, mask),
    mean(mask, mask),
  ];
  const [redRed, redGreen, redBlue] = [mean(red, red), mean(red, green), mean(red, blue)];
  const [greenGreen, greenBlue, blueBlue] = [
    mean(green, green),
    mean(green, blue),
    mean(blue, blue),
  ];
  const slopes = colours.map(() => plane(mask.width, mask.height)) as [Plane, Plane, Plane];
  const offset: Plane = { ...mask, data: meanP.slice() };
  const explained: Plane = { ...mask, data: new Float32Array(mask.data.length).fill(1) };
  for (let i = 0; i < meanP.length; i++) {
    const [r, g, b, p] = [meanR[i]!, meanG[i]!, meanB[i]!, meanP[i]!];
    const variance = squareP[i]! - p * p;
    if (variance < NO_OUTLINE) {
      continue;
    }
    const rr = redRed[i]! - r * r + epsilon;
    const rg = redGreen[i]! - r * g;
    const rb = redBlue[i]! - r * b;
    const gg = greenGreen[i]! - g * g + epsilon;
    const gb = greenBlue[i]! - g * b;
    const bb = blueBlue[i]! - b * b + epsilon;
    const [x, y, z] = [redP[i]! - r * p, greenP[i]! - g * p, blueP[i]! - b * p];
    // The inverse of the covariance of the colours, by cofactors.
    const ofR = gg * bb - gb * gb;
    const ofG = rb * gb - rg * bb;
    const ofB = rg * gb - rb * gg;
    const determinant = rr * ofR + rg * ofG + rb * ofB;
    const s = (ofR * x + ofG * y + ofB * z) / determinant;
    const t = (ofG * x + (rr * bb - rb * rb) * y + (rb * rg - rr * gb) * z) / determinant;
    const u = (ofB * x + (rb * rg - rr * gb) * y + (rr * gg - rg * rg) * z) / determinant;
    slopes[0].data[i] = s;
    slopes[1].data[i] = t;
    slopes[2].data[i] = u;
    offset.data[i] = p - s * r - t * g - u * b;
    explained.data[i] = (s * x + t * y + u * z) / variance;
  }
  return {
    slopes: slopes.map((slope) => boxMean(slope, radius)) as [Plane, Plane, Plane],
    offset: boxMean(offset, radius),
    explained: boxMean(explained, radius),
  };
}
