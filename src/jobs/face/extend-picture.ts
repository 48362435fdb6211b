// What a picture shows beside its portrait: the portrait goes out of focus towards its edges, and
// what is beyond them is as blurred as a background behind a person.
import { clamp, type Plane, plane, type RgbImage, rgbImage, sampleAt } from './imaging/image.ts';
import { inpaint } from './imaging/inpaint.ts';
import { blur } from './imaging/mask.ts';

/** Sigma of the transition, share of the shorter side of the picture. It is two sigmas wide. */
const TRANSITION_SHARE = 0.06;
/** Sigma of the blur, share of the shorter side. */
const BLUR_SHARE = 0.05;
/** Everything is computed in a picture this many times smaller. */
const SHRINK = 4;

/** A rectangle that stays sharp: the head. Pixels of the picture. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/**
 * Fills the pixels whose `known` is 0.
 * @returns how much of each pixel is the sharp portrait, 0..1; undefined when all are known
 */
export function extendPicture(image: RgbImage, known: Uint8Array, head: Box): Plane | undefined {
  if (!known.includes(0)) {
    return undefined;
  }
  const { width, height, data } = image;
  const small = shrunk(image, known);
  const kept = boxPlane(head, small.known);
  const short = Math.min(width, height) / SHRINK;
  const inside = blur(small.known, TRANSITION_SHARE * short);
  const soft = continued(small.image, inside, kept, BLUR_SHARE * short);
  const ofHead = blur(kept, TRANSITION_SHARE * short);
  const sharp = plane(width, height);
  for (let i = 0; i < sharp.data.length; i++) {
    const x = ((i % width) + 0.5) / SHRINK - 0.5;
    const y = (Math.floor(i / width) + 0.5) / SHRINK - 0.5;
    const weight = Math.max(2 * sampleAt(inside, x, y) - 1, 2 * sampleAt(ofHead, x, y));
    const alpha = (sharp.data[i] = known[i] ? clamp(weight, 0, 1) : 0);
    for (let c = 0; alpha < 1 && c < 3; c++) {
      const at = i * 3 + c;
      data[at] = data[at]! * alpha + sampleAt(soft[c]!, x, y) * (1 - alpha) + 0.5;
    }
  }
  return sharp;
}

/** A smaller picture, and where all that its pixels are made of is known. */
function shrunk(
  { width, height, data }: RgbImage,
  known: Uint8Array,
): { readonly image: RgbImage; readonly known: Plane } {
  const image = rgbImage(width / SHRINK, height / SHRINK);
  const isKnown = plane(image.width, image.height);
  for (let y = 0; y < image.height; y++) {
    for (let x = 0; x < image.width; x++) {
      let count = 0;
      const sums: [number, number, number] = [0, 0, 0];
      for (let n = 0; n < SHRINK ** 2; n++) {
        const from = (y * SHRINK + Math.floor(n / SHRINK)) * width + x * SHRINK + (n % SHRINK);
        count += known[from]!;
        sums[0] += data[from * 3]!;
        sums[1] += data[from * 3 + 1]!;
        sums[2] += data[from * 3 + 2]!;
      }
      const at = y * image.width + x;
      isKnown.data[at] = count === SHRINK ** 2 ? 1 : 0;
      image.data.set(
        sums.map((sum) => sum / SHRINK ** 2),
        at * 3,
      );
    }
  }
  return { image, known: isKnown };
}

function boxPlane({ left, top, right, bottom }: Box, { width, height }: Plane): Plane {
  const box = plane(width, height);
  for (let i = 0; i < box.data.length; i++) {
    const x = ((i % width) + 0.5) * SHRINK;
    const y = (Math.floor(i / width) + 0.5) * SHRINK;
    box.data[i] = x > left && x < right && y > top && y < bottom ? 1 : 0;
  }
  return box;
}

/**
 * The colours of the edges of the portrait, continued inwards and outwards, and blurred: the head
 * leaves no trace in them.
 */
function continued(image: RgbImage, inside: Plane, head: Plane, sigma: number): Plane[] {
  const sources = Uint8Array.from(inside.data, (share, i) =>
    share >= 0.5 && share < 1 && head.data[i] === 0 ? 1 : 0,
  );
  if (!sources.includes(1)) {
    sources.set(Uint8Array.from(inside.data, (share) => (share >= 0.5 ? 1 : 0)));
  }
  inpaint(image, sources);
  return [0, 1, 2].map((channel) => {
    const out = plane(image.width, image.height);
    for (let i = 0; i < out.data.length; i++) {
      out.data[i] = image.data[i * 3 + channel]!;
    }
    return blur(out, sigma);
  });
}
