// Bars of one colour at the edges of a picture: frames of films and screenshots have them. A face
// made with one would have a line beside the head that bends when the head moves.
import type { RgbImage } from './image.ts';

/** Pixels of a bar differ by this much at most, 0..255 in each channel: noise of JPEG. */
const ALIKE = 16;
/** The row next to a bar differs from it by this much, 0..255, in this share of its pixels. */
const DIFFERENT = 30;
const SHARE = 0.7;
/** Rows in which a bar ends: the codec and scaling mix its edge with the picture. */
const EDGE = 3;
/** Bars take this share of the picture's height or width at most, each. */
const LARGEST = 0.3;

/** A row or a column of pixels. */
interface Line {
  readonly start: number;
  readonly step: number;
  readonly count: number;
}

/**
 * Cuts bars away. A plain background is none: a bar ends at once, and nearly all along its edge.
 * @returns the picture itself when it has no bars
 */
export function withoutBars(image: RgbImage): RgbImage {
  const { width, height } = image;
  const row = (y: number): Line => ({ start: y * width, step: 1, count: width });
  const column = (x: number): Line => ({ start: x, step: width, count: height });
  const top = barAt(image, row, height);
  const bottom = barAt(image, (n) => row(height - 1 - n), height);
  const left = barAt(image, column, width);
  const right = barAt(image, (n) => column(width - 1 - n), width);
  return top + bottom + left + right === 0
    ? image
    : cut(image, left, top, width - left - right, height - top - bottom);
}

/**
 * @param line counted from an edge of the picture, which has so many `lines`
 * @returns how many lines a bar at this edge has, with its edge; 0 when there is none
 */
function barAt(image: RgbImage, line: (n: number) => Line, lines: number): number {
  const { start } = line(0);
  const colour = image.data.subarray(start * 3, start * 3 + 3);
  let bar = 0;
  while (bar < lines * LARGEST && differing(image, line(bar), colour, ALIKE) === 0) {
    bar++;
  }
  if (bar === 0 || bar >= lines * LARGEST) {
    return 0;
  }
  for (let edge = 0; edge < EDGE; edge++) {
    if (differing(image, line(bar + edge), colour, DIFFERENT) > SHARE) {
      return bar + edge + 1;
    }
  }
  return 0;
}

/** Share of the pixels of a line that differ from a colour by more than `most` in a channel. */
function differing(
  { data }: RgbImage,
  { start, step, count }: Line,
  colour: Uint8Array,
  most: number,
): number {
  const [r, g, b] = [colour[0]!, colour[1]!, colour[2]!];
  let different = 0;
  for (let k = 0; k < count; k++) {
    const at = (start + k * step) * 3;
    const far = Math.max(
      Math.abs(data[at]! - r),
      Math.abs(data[at + 1]! - g),
      Math.abs(data[at + 2]! - b),
    );
    different += far > most ? 1 : 0;
  }
  return different / count;
}

function cut(image: RgbImage, left: number, top: number, width: number, height: number): RgbImage {
  const data = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    const from = ((top + y) * image.width + left) * 3;
    data.set(image.data.subarray(from, from + width * 3), y * width * 3);
  }
  return { width, height, data };
}
