// Puts a person before another background: blurred, green or of one colour.
import type { Rgb, Box } from './imaging/patch.ts';
import { type Plane, plane, type RgbImage, sampleAt } from './imaging/image.ts';
import { blur } from './imaging/mask.ts';
import { personMatte } from './regions/person-matte.ts';

/** Rows of a person below the chin are at least this wide, share of the face. */
const LEAST_BODY = 0.4;
/** Chroma key green. */
const GREEN: Rgb = [0, 177, 64];
/** Sigma of a blurred background, share of the shorter side; blurred at a quarter of the size. */
const BLUR_SHARE = 0.03;
const BLUR_SHRINK = 4;

/**
 * Replaces the background, in place.
 * @param mask 1 on the person, 0 on the background
 * @param background as in `FaceLook`
 * @param sharp where a person goes on beyond the portrait it fades into the background
 * @returns false when person and background could not be told apart: the picture is as it was
 */
export function replaceBackground(
  image: RgbImage,
  mask: Plane,
  head: Box,
  background: string,
  sharp: Plane | undefined,
): boolean {
  if (!hasBody(mask, head, sharp)) {
    return false;
  }
  const { alpha, colour } = personMatte(image, mask, head.bottom);
  const behind = background === 'blurred' ? blurredBehind(image, alpha) : undefined;
  const plain =
    background === 'green'
      ? GREEN
      : ([1, 3, 5].map((at) => Number.parseInt(background.slice(at, at + 2), 16)) as never as Rgb);
  for (let i = 0; i < alpha.data.length; i++) {
    const share = alpha.data[i]! * (sharp?.data[i] ?? 1);
    const x = ((i % image.width) + 0.5) / BLUR_SHRINK - 0.5;
    const y = (Math.floor(i / image.width) + 0.5) / BLUR_SHRINK - 0.5;
    for (let c = 0; share < 1 && c < 3; c++) {
      const at = i * 3 + c;
      const under = behind ? sampleAt(behind[c]!, x, y) : plain[c]!;
      image.data[at] = colour.data[at]! * share + under * (1 - share) + 0.5;
    }
  }
  return true;
}

/**
 * Whether the mask goes on below the chin, to the lower edge of the picture or of the portrait. A
 * body whose colours are those of the wall is missing in the mask.
 */
function hasBody(
  { width, height, data }: Plane,
  { left, right, bottom }: Box,
  sharp?: Plane,
): boolean {
  for (let y = Math.ceil(bottom); y < height; y++) {
    let [inside, known] = [0, 0];
    for (let i = y * width; i < (y + 1) * width; i++) {
      inside += data[i]!;
      known += sharp?.data[i] ?? 1;
    }
    if (known > width / 2 && inside < LEAST_BODY * (right - left)) {
      return false;
    }
  }
  return true;
}

/** The background alone, blurred: the person does not bleed into it. BLUR_SHRINK times smaller. */
function blurredBehind(image: RgbImage, person: Plane): Plane[] {
  const [width, height] = [image.width / BLUR_SHRINK, image.height / BLUR_SHRINK];
  const sums = [0, 1, 2, 3].map(() => plane(width, height));
  for (let i = 0; i < person.data.length; i++) {
    const at =
      Math.floor(i / image.width / BLUR_SHRINK) * width +
      Math.floor((i % image.width) / BLUR_SHRINK);
    const weight = person.data[i]! > 0.02 ? 1e-4 : 1;
    for (let c = 0; c < 3; c++) {
      sums[c]!.data[at]! += image.data[i * 3 + c]! * weight;
    }
    sums[3]!.data[at]! += weight;
  }
  const sigma = (BLUR_SHARE * Math.min(image.width, image.height)) / BLUR_SHRINK;
  const soft = sums.map((sum) => blur(sum, sigma));
  const total = soft[3]!;
  return soft.slice(0, 3).map((sum) => {
    sum.data.forEach((value, i) => {
      sum.data[i] = value / total.data[i]!;
    });
    return sum;
  });
}
