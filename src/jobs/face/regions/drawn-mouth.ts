// The mouth of a drawing in lines.
import type { Landmarks } from '../detect/landmarks.ts';
import { NEAR_LIPS, skinRoundLips } from '../detect/lip-evidence.ts';
import { lumaAt, median } from '../imaging/colour.ts';
import type { RgbImage } from '../imaging/image.ts';
import { dilate, indicesAbove, polygonMask } from '../imaging/mask.ts';
import type { MouthFrame } from './mouth-frame.ts';
import { innerPolygon } from './mouth-opening.ts';
import { type Relaxation, SmileCloser } from './smile-closer.ts';

/** Half the thickness of the lines round an opening, half widths of the mouth. */
const LINE = 0.07;
/** How dark the line between closed lips is: black. */
const BLACK = 1.4;

/**
 * Closes a drawn mouth: teeth and the lines round the opening go, one line is left.
 * @returns the picture, and where the landmarks are in it
 */
export function closeDrawnMouth(
  image: RgbImage,
  points: Landmarks,
  frame: MouthFrame,
  shape: Relaxation,
): { image: RgbImage; points: Landmarks } {
  const erased: RgbImage = { ...image, data: image.data.slice() };
  const opening = polygonMask(image.width, image.height, innerPolygon(points));
  const paper = median(skinRoundLips(image, points, NEAR_LIPS).map((i) => lumaAt(image, i)));
  for (const i of indicesAbove(dilate(opening, Math.ceil(LINE * frame.halfWidth)), 0.5)) {
    erased.data.fill(paper, i * 3, i * 3 + 3);
  }
  const closer = new SmileCloser(points, frame, shape);
  const closed = closer.warp(erased, erased, erased);
  closer.drawSeam(closed, 1, BLACK);
  return { image: closed, points: closer.move(points) };
}
