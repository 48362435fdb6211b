// Colours of the inside of the mouth in the portrait's light, for what the renderer paints.
import type { FaceTints } from '../../../media/face-asset.ts';
import { labAt, lumaOf, quantile } from '../imaging/colour.ts';
import { clamp, type Plane, type RgbImage, smoothstep } from '../imaging/image.ts';
import { bounded, castOf, type Lighting, SKIN_CHROMA, withCast } from './lighting.ts';
import { type Rgb, rgbToYuv } from '../imaging/patch.ts';

/** Least size of the opening, pixels. */
const MIN_OPENING_PIXELS = 150;
/** Least share of teeth in the opening. */
const MIN_TEETH_SHARE = 0.3;
/**
 * Fewer teeth are sure when they are so many pixels, when such a share of them lies within the
 * contour, and when they are as bright as teeth and pale: luma in units of the skin's, and most
 * redness as a share of the skin's, which must have some. So are those of five mouths in speech and
 * laughs with gaps, of 90 that are open.
 */
const FEW = { pixels: 100, within: 0.8, luma: [0.95, 1.55], red: 0.6, leastRed: 0.05 } as const;
/** Least share of the teeth within the contour that the landmarks give. */
const LEAST_WITHIN = 0.4;
/**
 * Least luma of teeth in units of that of the skin. Those of 50 smiles and mouths in speech had 0.76
 * to 1.53; what was bright and not red in four mouths that show none, 0.24 to 0.46.
 */
const LEAST_LUMA = 0.7;

/**
 * The colour of the upper teeth that a smile shows: bright and not red.
 * @param opening where the mouth is open, 0..1 per pixel
 * @param skin the median colour of the cheeks
 * @param contour the same as the landmarks show it; teeth lie in it, the gloss of grey lips does not
 * @returns the 0.6 quantile of each channel; undefined when too few teeth are visible
 */
export function teethColour(
  image: RgbImage,
  opening: Plane,
  skin: Rgb,
  contour?: Plane,
): Rgb | undefined {
  const inside: { index: number; l: number; a: number }[] = [];
  for (let i = 0; i < opening.data.length; i++) {
    if (opening.data[i]! > 0.5) {
      inside.push({ index: i, ...labAt(image, i) });
    }
  }
  if (inside.length < MIN_OPENING_PIXELS) {
    return undefined;
  }
  const bright =
    0.62 *
    quantile(
      inside.map(({ l }) => l),
      0.92,
    );
  const pale = Math.min(
    16,
    quantile(
      inside.map(({ a }) => a),
      0.85,
    ) + 3,
  );
  const teeth = inside.filter(({ l, a }) => l >= bright && a <= pale);
  const channel = (c: number): number =>
    quantile(
      teeth.map(({ index }) => image.data[index * 3 + c]!),
      0.6,
    );
  const colour: Rgb = [channel(0), channel(1), channel(2)];
  const light = lumaOf(...colour) / Math.max(1, lumaOf(...skin));
  const within = contour
    ? teeth.filter(({ index }) => contour.data[index]! > 0.5).length / Math.max(1, teeth.length)
    : 1;
  if (teeth.length >= MIN_TEETH_SHARE * inside.length) {
    return within >= LEAST_WITHIN && light >= LEAST_LUMA ? colour : undefined;
  }
  const [red, skinRed] = [castOf(colour)[1], castOf(skin)[1]];
  const isSure =
    teeth.length >= FEW.pixels &&
    within >= FEW.within &&
    light >= FEW.luma[0] &&
    light <= FEW.luma[1] &&
    skinRed > FEW.leastRed &&
    red < FEW.red * skinRed;
  return isSure ? colour : undefined;
}

/** Share of the lips' hue in that of gums and tongue. */
const LIKE_LIPS = 0.4;
/**
 * Teeth in units of white in the light of the face. White is measured at the eyes, which lie in the
 * shadow of the lids: the teeth of 23 smiles were brighter, by 13 % in the median.
 */
const ENAMEL: Rgb = [1.107, 1.079, 1];
/** Share of the skin's hue in that of the teeth, which lie in light that lips and cheeks reflect. */
const LIKE_SKIN = 0.15;
/**
 * Most chroma of painted teeth, in units of the skin's, for blue and for red, and what is allowed on
 * pale skin: teeth are paler than skin in any light.
 */
const PALER = { blue: 0.5, red: 0.36, least: 0.02 } as const;
/** Luma of teeth in units of that of the lips and of the skin: the lesser is the least they have. */
const ABOVE_LIPS = 1.8;
const ABOVE_SKIN = 2.6;
/**
 * Luma that is enough for any teeth: a share of that of the brightest parts of the face, between
 * these bounds. On dark skin it is seen where the light is (docs/faces-judged.md, round 36).
 */
const LIKE_BRIGHTEST = 0.9;
const LIT = [150, 170] as const;
/**
 * Teeth of a mouth that is hardly open lie in the shadow of the lip, which is redder, too: medians of
 * 512 mouths are .76 of the painted luma where the opening is .06 high (in distances between the
 * eyes' outer corners), .92 at .08, .95 at .1, 1 from .15. So such teeth become like painted ones: the
 * greatest share of those, and the heights up to which that counts, and from which nothing does.
 */
const UNDER_LIP = { share: 0.5, height: [0.03, 0.12] } as const;
/** Redness of skin below which a picture's colours are faded, unless the lips are redder. */
const FADED_SKIN = 0.3;
/** Least share of flesh's colour in a mouth of a picture with colours: it is red in cool light, too. */
const LEAST_RED = 0.6;
/** Redness of lips in a black and white picture that was tinted, and in one in colour. */
const TINTED_LIPS = 0.2;
const RED_LIPS = 0.45;

/** @returns 0 for a grey to 1 for a pure red */
const redness = ([r, g, b]: Rgb): number => Math.max(0, r - Math.min(g, b)) / Math.max(1, r);

/**
 * The colours (limited-range YUV) of cavity, gums, tongue and teeth in the light of the portrait.
 * The renderer paints with them. The colours in white light were chosen by eye.
 * @param teeth their colour where the portrait shows them
 * @param lip colour of the lower lip
 * @param height of the opening in the portrait, distances between the eyes' outer corners
 */
export function mouthTints(
  { white, skin, colour, brightest }: Lighting,
  teeth: Rgb | undefined,
  lip: Rgb | undefined,
  height = 1,
): FaceTints {
  // A black and white photograph shows no colour in the mouth either, a faded one little.
  const red = lip ? (redness(lip) - TINTED_LIPS) / (RED_LIPS - TINTED_LIPS) : 0;
  const seen = Math.max(redness(skin) / FADED_SKIN, red, LEAST_RED);
  const saturation = colour * Math.min(1, seen);
  const lit = (r: number, g: number, b: number): Rgb => {
    const grey = lumaOf(r, g, b);
    const toned = (value: number): number => grey + (value - grey) * saturation;
    return [white[0] * toned(r), white[1] * toned(g), white[2] * toned(b)];
  };
  // Gums and tongue follow the tone of the skin: they are darker with dark skin.
  const tone = Math.min(1, 0.58 + (0.42 * (skin[0] + skin[1] + skin[2])) / 3 / 165);
  // What a painter makes of red, and what light makes of it, is seen on the lips. Lipstick counts too,
  // but little.
  const towards = (base: Rgb, other: Rgb, share: number): Rgb => {
    const light = lumaOf(...base) / Math.max(1, lumaOf(...other));
    const mixed = (c: 0 | 1 | 2): number => base[c] + share * (other[c] * light - base[c]);
    return [mixed(0), mixed(1), mixed(2)];
  };
  // Lips that are greyer than flesh, as dark ones are, make a tongue look grey: they count less.
  const flesh = (base: Rgb): Rgb =>
    lip
      ? towards(base, lip, LIKE_LIPS * Math.min(1, redness(lip) / Math.max(0.1, redness(base))))
      : base;
  const paleSkin = withCast(lumaOf(...skin), bounded(castOf(skin), SKIN_CHROMA));
  const painted = paler(towards(lit(...ENAMEL), paleSkin, LIKE_SKIN), skin);
  return {
    cavity: rgbToYuv(lit(0.14 * tone, 0.05 * tone, 0.05 * tone)),
    gums: rgbToYuv(flesh(lit(0.74 * tone, 0.42 * tone, 0.42 * tone))),
    tongue: rgbToYuv(flesh(lit(0.86 * tone, 0.36 * tone, 0.38 * tone))),
    teeth: rgbToYuv(
      brighter(teeth ? outOfShadow(teeth, painted, height) : painted, lip ?? skin, skin, brightest),
    ),
  };
}

/** Teeth as a mouth that is open wider would show them. */
function outOfShadow(teeth: Rgb, painted: Rgb, height: number): Rgb {
  const share = UNDER_LIP.share * (1 - smoothstep(...UNDER_LIP.height, height));
  const mixed = (c: 0 | 1 | 2): number => teeth[c] + share * (painted[c] - teeth[c]);
  return lumaOf(...teeth) < lumaOf(...painted) ? [mixed(0), mixed(1), mixed(2)] : teeth;
}

/**
 * Teeth are brighter than the lips round them, however dark the skin is that was measured.
 * @param brightest luma of the brightest parts of the face
 */
function brighter(teeth: Rgb, lip: Rgb, skin: Rgb, brightest: number): Rgb {
  const least = Math.min(
    ABOVE_LIPS * lumaOf(...lip),
    ABOVE_SKIN * lumaOf(...skin),
    clamp(LIKE_BRIGHTEST * brightest, ...LIT),
  );
  const more = Math.max(1, least / Math.max(1, lumaOf(...teeth)));
  return [more * teeth[0], more * teeth[1], more * teeth[2]];
}

/** Bounds the chroma of teeth by that of the skin. */
function paler(teeth: Rgb, skin: Rgb): Rgb {
  const [u, v] = castOf(teeth);
  const [skinU, skinV] = castOf(skin);
  const bound = (value: number, share: number, like: number): number => {
    const most = share * Math.abs(like) + PALER.least;
    return clamp(value, -most, most);
  };
  return withCast(lumaOf(...teeth), [bound(u, PALER.blue, skinU), bound(v, PALER.red, skinV)]);
}
