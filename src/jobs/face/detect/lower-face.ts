// Whether cloth covers the lower face: a mask, a scarf. A pattern on it can look like lips, so the
// skin that is missing is looked for.
import { type Lab, median, medianColour, patchAt } from '../imaging/colour.ts';
import { indicesAbove } from '../imaging/mask.ts';
import type { Crop } from './crop.ts';
import { outlineMask } from './exposure.ts';
import {
  FOREHEAD_SKIN,
  LEFT_EYE,
  LOWER_FACE,
  LOWER_OUTER,
  px,
  py,
  RIGHT_EYE,
  UNDER_EYES,
  UPPER_OUTER,
} from './landmarks.ts';

// Thresholds, measured on 710 people behind masks and 1900 whose mouths are seen (photographs,
// paintings, renderings): of the masks that pass the other checks 38 of 50 are found, and of the
// mouths none.
/** A colour is that of the upper face up to this distance (CIE 1976, half of the difference in L*). */
const SAME_COLOUR = 10;
/** Hues (degrees) and least chroma of skin in most lights. */
const SKIN = { from: 20, to: 80, chroma: 6 } as const;
/**
 * A lower face of which less than `same` has a colour of the upper one is covered, unless more than
 * `skin` has a hue of skin. Of mouths that are seen the least has .24, under hats and hair; a drawing
 * .06, all of it in hues of skin.
 */
const OTHER = { same: 0.2, skin: 0.9 } as const;
/** The same below skin of the usual hues, which more than half of the upper face has. */
const BELOW_SKIN = { same: 0.5, skin: 0.45, above: 0.5 } as const;
/** The same of a colour (median chroma) without any skin: faces in coloured light have .83 and more. */
const COLOURED = { same: 0.65, skin: 0.03, chroma: 8 } as const;
/** Every so many pixels of the lower face a spot of this radius is looked at: noise has any colour. */
const STEP = 5;
const SPOT = 2;

/** Whether so little of the lower face looks like skin, or like the upper face, that it is covered. */
export function isLowerFaceCovered({ image, points }: Pick<Crop, 'image' | 'points'>): boolean {
  const radius = Math.max(
    2,
    Math.floor(0.03 * (px(points, RIGHT_EYE.outer) - px(points, LEFT_EYE.outer))),
  );
  const above = [...FOREHEAD_SKIN, ...UNDER_EYES].map((index) =>
    medianColour(image, patchAt(image, px(points, index), py(points, index), radius)),
  );
  const lips = outlineMask(image, points, [...UPPER_OUTER, ...LOWER_OUTER.toReversed()]);
  const below = indicesAbove(
    outlineMask(image, points, LOWER_FACE),
    0.5,
    (i) => i % STEP === 0 && lips.data[i]! < 0.5,
  ).map((i) =>
    medianColour(image, patchAt(image, i % image.width, Math.floor(i / image.width), SPOT)),
  );
  if (below.length === 0) {
    return false;
  }
  const same = shareOf(below, (colour) =>
    above.some((other) => distance(colour, other) < SAME_COLOUR),
  );
  const skin = shareOf(below, isSkin);
  const chroma = median(below.map(chromaOf));
  return (
    (same < OTHER.same && skin < OTHER.skin) ||
    (same < BELOW_SKIN.same &&
      skin < BELOW_SKIN.skin &&
      shareOf(above, isSkin) >= BELOW_SKIN.above) ||
    (same < COLOURED.same && skin < COLOURED.skin && chroma > COLOURED.chroma)
  );
}

const shareOf = (colours: readonly Lab[], has: (colour: Lab) => boolean): number =>
  colours.filter(has).length / colours.length;

const chromaOf = ({ a, b }: Lab): number => Math.hypot(a, b);

const distance = (p: Lab, q: Lab): number => Math.hypot((p.l - q.l) / 2, p.a - q.a, p.b - q.b);

function isSkin(colour: Lab): boolean {
  const hue = (Math.atan2(colour.b, colour.a) * 180) / Math.PI;
  return hue > SKIN.from && hue < SKIN.to && chromaOf(colour) > SKIN.chroma;
}
