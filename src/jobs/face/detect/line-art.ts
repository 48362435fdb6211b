// Drawings in ink: lines on white paper, without shades. What a photograph needs, lips and shadows
// of their own, would be smudges there.
import { labAt, lumaAt, median, quantile } from '../imaging/colour.ts';
import type { RgbImage } from '../imaging/image.ts';
import { indicesAbove } from '../imaging/mask.ts';
import { outlineMask } from './exposure.ts';
import { FACE_OVAL, type Landmarks } from './landmarks.ts';

// Measured on 750 pictures: 28 are drawn in lines, and those are found, no other. Overexposed faces
// have as much white, but coloured lips and no black.
/** Luma of the paper, and how much darker it may be in places. */
const PAPER = { least: 246, darker: 14 } as const;
/** Share of the face that is paper: .6 to .93 in drawings; faces of photographs have .57 at most. */
const PAPER_SHARE = 0.595;
/** Chroma of paper and of ink: cream and sepia have more, and may be photographs. */
const GREY = 5;
/** Luma of ink: the 0.02 quantile of the face, .1 to .35 of the paper's. */
const INK = 90;

/** Whether a face is drawn in black lines on white paper. */
export function isLineArt(image: RgbImage, points: Landmarks): boolean {
  const face = indicesAbove(outlineMask(image, points, FACE_OVAL), 0.5);
  const lumas = face.map((i) => lumaAt(image, i));
  const paper = quantile(lumas, 0.8);
  if (paper <= PAPER.least) {
    return false;
  }
  const ink = quantile(lumas, 0.02);
  const white = face.filter((_, k) => lumas[k]! > paper - PAPER.darker);
  if (ink >= INK || white.length <= PAPER_SHARE * face.length) {
    return false;
  }
  const black = face.filter((_, k) => lumas[k]! < (ink + paper) / 2);
  return [white, black].every((indices) => chromaOf(image, indices) < GREY);
}

const chromaOf = (image: RgbImage, indices: readonly number[]): number =>
  median(
    indices.map((i) => {
      const { a, b } = labAt(image, i);
      return Math.hypot(a, b);
    }),
  );
