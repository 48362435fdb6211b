// Whether an eye can be seen, and whether it is open: an eye that is hidden or closed gets no
// blink.
import { type Lab, labAt, lumaAt, median, medianLab, quantile } from '../imaging/colour.ts';
import { clamp, type RgbImage } from '../imaging/image.ts';
import {
  CHEEKS,
  type EyeIndices,
  LEFT_EYE,
  type Landmarks,
  px,
  py,
  RIGHT_EYE,
} from '../detect/landmarks.ts';
import { eyePixels, lidMargins } from './eye-contours.ts';

/**
 * Dark glasses: luma limits as a share of the luma of the cheek below, for the skin round the eye, for
 * that under it, and for the eye: its median, its brightest parts (the 0.9 quantile), and the lightest
 * place under it. Measured on 106 advertisements for glasses (some thirty people) and on 859 faces. Of
 * these 14 had been taken for hidden, whose eyes lie in shade, most of them below highlights on dark
 * skin; eleven have whites of 0.4 and more, or light skin of 0.5 under the eye. Behind dark glasses
 * whites have 0.33 at most, what is under them 0.48.
 */
const HIDDEN_SURROUND_LUMA = 0.42;
const HIDDEN_UNDER_LUMA = 0.3;
const HIDDEN_EYE_LUMA = 0.28;
const HIDDEN_WHITE_LUMA = 0.36;
const HIDDEN_LIGHTEST_LUMA = 0.5;
/**
 * A lens that is lighter, or a mirror, shows no eye: luma between the lids is as even as this (from the
 * 0.1 to the 0.97 quantile), and darker than the cheek. So are three people of the advertisements and
 * two of the 859: one wears such glasses, the other is out of focus.
 */
const EVEN_LUMA = 0.1;
const LENS_LUMA = 0.6;

/**
 * Whether dark glasses hide the eye: nothing is seen in it, or the skin round it is far darker than the
 * cheek of its side, that under it too, and the eye is no lighter, nor its white. Make-up darkens the
 * lids alone, and shade the cheek as well.
 */
export function isEyeHidden(image: RgbImage, points: Landmarks, eye: EyeIndices): boolean {
  const luma = (index: number): number =>
    lumaAt(
      image,
      clamp(Math.round(py(points, index)), 0, image.height - 1) * image.width +
        clamp(Math.round(px(points, index)), 0, image.width - 1),
    );
  const isBelow = (index: number): boolean =>
    Math.abs(px(points, index) - px(points, eye.outer)) <
    Math.abs(px(points, index) - px(points, other(eye).outer));
  const cheek = median(CHEEKS.filter(isBelow).map(luma));
  const under = eye.under.map(luma);
  const inside = eyePixels(image, points, eye).map((i) => lumaAt(image, i));
  const isEven = quantile(inside, 0.97) - quantile(inside, 0.1) < EVEN_LUMA * cheek;
  if (isEven && median(inside) < LENS_LUMA * cheek) {
    return true;
  }
  return (
    median(under) < HIDDEN_UNDER_LUMA * cheek &&
    Math.max(...under) < HIDDEN_LIGHTEST_LUMA * cheek &&
    median([...under, ...eye.crease.map(luma)]) < HIDDEN_SURROUND_LUMA * cheek &&
    median(inside) < HIDDEN_EYE_LUMA * cheek &&
    quantile(inside, 0.9) < HIDDEN_WHITE_LUMA * cheek
  );
}

const other = (eye: EyeIndices): EyeIndices => (eye === LEFT_EYE ? RIGHT_EYE : LEFT_EYE);

/**
 * Closed eyes: limits of the colour distance (CIE 1976) between the area of the opening and the
 * lid's crease, for the median and for the 0.9 quantile. Measured on 7 rendered heads and 28
 * photographs: open eyes have 12 or more and 20 or more, closed ones 8 and 15.4 at most.
 */
const CLOSED_MEDIAN = 10;
const CLOSED_Q90 = 15.5;

/** Whether the eye is closed: the skin of the lid is where sclera and iris would be. */
export function isEyeClosed(image: RgbImage, points: Landmarks, eye: EyeIndices): boolean {
  const { outer, inner, crease } = eye;
  const at = (x: number, y: number): Lab =>
    labAt(
      image,
      clamp(Math.round(y), 0, image.height - 1) * image.width +
        clamp(Math.round(x), 0, image.width - 1),
    );
  const [top, bottom] = lidMargins(points, eye);
  const lid = crease.map((i) => at(px(points, i), py(points, i)));
  const skin = medianLab(lid);
  const distances: number[] = [];
  // Sample the upper half of the opening only: below it lie the lashes of a closed eye.
  for (let t = 0.2; t <= 0.8; t += 0.05) {
    const x = px(points, outer) + t * (px(points, inner) - px(points, outer));
    for (let s = 0.15; s <= 0.46; s += 0.05) {
      const { l, a, b } = at(x, top(x) + s * (bottom(x) - top(x)));
      distances.push(Math.hypot(l - skin.l, a - skin.a, b - skin.b));
    }
  }
  return median(distances) < CLOSED_MEDIAN && quantile(distances, 0.9) < CLOSED_Q90;
}
