// A person before a background, as fine as single hairs: how much of each pixel is the person, and in
// what colour.
import { guidedFilter } from '../imaging/guided-filter.ts';
import {
  channel,
  clamp,
  halve,
  halvePlane,
  type Plane,
  product,
  type RgbImage,
  sampleAt,
  smoothstep,
} from '../imaging/image.ts';
import { blur, boxMean } from '../imaging/mask.ts';

/** A person without the background. */
export interface PersonMatte {
  /** Share of each pixel that is the person, 0..1. */
  readonly alpha: Plane;
  /** The person's colours alone, where alpha is above 0; size of the picture. */
  readonly colour: RgbImage;
}

/** How far from the outline of a mask single hairs are looked for, share of the shorter side. */
const REACH = 1 / 64;
/** Variance of colours (0..1) below which an edge in the picture is none. */
const LEAST_EDGE = 1e-3;
/** What of the filtered mask is background, and what is person: between them is a mixture. */
const MIXED = [0.1, 0.9] as const;
/**
 * Where colours explain less of the outline than this, or all but this, the mask decides, or colours
 * do: a jacket before a wall like it would dissolve.
 */
const EXPLAINED = [0.3, 0.6] as const;
/** Softness of the mask's own outline, pixels. Half of it is taken away: it shows the background. */
const EDGE_SIGMA = 1.6;

/**
 * Below the head, the least and the full share of the mask nearby where colours may add to it: what is
 * like a jacket in a wall beside it would be specks.
 */
const BESIDE = [0.1, 0.4] as const;

/**
 * @param mask 1 on the person, 0 on the background; its outline may be some pixels off
 * @param chin where the head ends, pixels from the top
 */
export function personMatte(image: RgbImage, mask: Plane, chin: number): PersonMatte {
  const reach = Math.round(REACH * Math.min(image.width, image.height));
  const { value, explained } = guidedFilter(image, mask, reach, LEAST_EDGE);
  const soft = blur(mask, EDGE_SIGMA);
  const near = boxMean(mask, reach);
  const alpha: Plane = { ...mask, data: mask.data.slice() };
  const belowHead = Math.round(chin) * mask.width;
  for (let i = 0; i < alpha.data.length; i++) {
    const ofMask = clamp(2 * soft.data[i]! - 1, 0, 1);
    const most = i < belowHead ? 1 : smoothstep(...BESIDE, near.data[i]!);
    const ofColours = Math.min(most, smoothstep(...MIXED, value.data[i]!));
    const share = smoothstep(...EXPLAINED, explained.data[i]!);
    alpha.data[i] = ofMask + (ofColours - ofMask) * share;
  }
  return { alpha, colour: withoutBackground(image, alpha, reach) };
}

/**
 * The colours of the person, and not what is seen of the background between hairs: those nearby,
 * found at half the size, and corrected so that the mixture gives the picture (M. Forte, Approximate
 * Fast Foreground Colour Estimation, ICIP 2021).
 */
function withoutBackground(image: RgbImage, alpha: Plane, reach: number): RgbImage {
  const small = halve(image);
  const person = halvePlane(alpha);
  const behind: Plane = { ...person, data: person.data.map((share) => 1 - share) };
  const nearby = (weight: Plane): Plane[] => {
    const total = boxMean(weight, reach >> 1).data;
    return [0, 1, 2].map((c) => {
      const sum = boxMean(product(channel(small, c), weight), reach >> 1);
      return {
        ...sum,
        data: sum.data.map((value, i) => value / Math.max(1e-4, total[i]!)),
      };
    });
  };
  const [persons, behinds] = [nearby(person), nearby(behind)];
  const data = image.data.slice();
  for (let i = 0; i < alpha.data.length; i++) {
    const share = alpha.data[i]!;
    if (share === 0 || share === 1) {
      continue;
    }
    const x = (i % alpha.width) / 2 - 0.25;
    const y = Math.floor(i / alpha.width) / 2 - 0.25;
    for (let c = 0; c < 3; c++) {
      const colour = sampleAt(persons[c]!, x, y);
      const mixed = share * colour + (1 - share) * sampleAt(behinds[c]!, x, y);
      data[i * 3 + c] = clamp(colour + share * (data[i * 3 + c]! - mixed) + 0.5, 0, 255);
    }
  }
  return { ...image, data };
}
