// Old faces have darker, yellower teeth and open less. What looks like age, and is not, changes
// nothing: one grey wall, a hat, lines on the forehead alone, noise.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { AXIS, Canvas, SIZE, syntheticAsset, syntheticParts } from './synthetic-face.ts';

const PIXELS = SIZE * SIZE;
/** Colour of an opening that no other part has. */
const INSIDE = 230;
/** Skin, and chroma of it as U and V. */
const SKIN = 150;
const SKIN_U = 112;
const SKIN_V = 150;

/** Paints over the skin: luma, and whether it is without colour. */
type Paint = (x: number, y: number) => { luma: number; isGrey?: boolean } | undefined;

const { landmarks: standard } = syntheticParts();
/** Narrower cheeks, so that their skin is skin. */
const landmarks = standard.slice();
for (const [index, x] of [
  [50, -70],
  [280, 70],
] as const) {
  landmarks[index * 3] = AXIS + x;
}
const heightOf = (index: number): number => landmarks[index * 3 + 1]!;
const FOREHEAD = heightOf(10);
const BROWS = (heightOf(105) + heightOf(334)) / 2;
/** Half the width of the nose's back. */
const NOSE = 24;
const TEMPLE = Math.abs(landmarks[162 * 3]! - AXIS);

/** The upper teeth's lightest luma on "s", and how far the mouth opens on "aa". */
function mouth(paint: Paint): { teeth: number; opening: number } {
  const { neutral } = syntheticParts();
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      const painted = paint(x, y);
      neutral[y * SIZE + x] = painted?.luma ?? SKIN;
      const at = (y >> 1) * (SIZE >> 1) + (x >> 1);
      neutral[PIXELS + at] = painted?.isGrey ? 128 : SKIN_U;
      neutral[PIXELS * 1.25 + at] = painted?.isGrey ? 128 : SKIN_V;
    }
  }
  const inside = [60, 128, INSIDE] as const;
  const canvas = new Canvas(
    new native.FaceAsset(
      syntheticAsset({
        neutral,
        landmarks,
        tints: { cavity: inside, gums: inside, tongue: inside, teeth: [220, 128, 128] },
      }),
    ),
  );
  const { picture } = canvas.show(VISEMES.s);
  const teeth = Math.max(...picture.subarray(321 * SIZE + 240, 321 * SIZE + 272));
  return { teeth, opening: canvas.show(VISEMES.aa).opening() };
}

const plain: Paint = () => undefined;
const lines =
  (from: number, to: number): Paint =>
  (_x, y) =>
    y >= from && y < to && y % 11 < 3 ? { luma: SKIN - 32 } : undefined;
/** Lines as of old people, who have none on the back of the nose. */
const wrinkles: Paint = (x, y) =>
  y > BROWS && Math.abs(x - AXIS) < NOSE ? undefined : lines(100, 300)(x, y);
/** Noise, and a nose that has not the colour of skin, as in a highlight. */
const noise: Paint = (x, y) => {
  const random = Math.sin(x * 12.9898 + y * 78.233) * 43_758.5453;
  return {
    luma: SKIN + 40 * (random - Math.floor(random) - 0.5),
    isGrey: y > BROWS && Math.abs(x - AXIS) < NOSE,
  };
};
/** Grey above a height, and beside the temples. */
const grey =
  (below: number, isBeside: boolean): Paint =>
  (x, y) =>
    y < below || (isBeside && y < BROWS + 20 && Math.abs(x - AXIS) > TEMPLE - 6)
      ? { luma: 130, isGrey: true }
      : undefined;
const HAIRLINE = FOREHEAD - 0.3 * (BROWS - FOREHEAD);

describe('the age of a face', () => {
  const young = mouth(plain);

  for (const [name, paint] of [
    ['wrinkled skin', wrinkles],
    ['grey hair', grey(HAIRLINE, true)],
  ] as const) {
    test(`${name} has darker teeth, and opens less`, () => {
      const old = mouth(paint);
      assert.ok(
        old.teeth < 0.94 * young.teeth && old.opening < 0.975 * young.opening,
        JSON.stringify([young, old]),
      );
    });
  }

  for (const [name, paint] of [
    ['lines on the forehead alone', lines(100, BROWS)],
    ['noise, which is on the nose as well', lines(100, 300)],
    ['a grey wall above dark hair', grey(HAIRLINE, false)],
    ['a grey hat down to the brows', grey(BROWS + 10, true)],
  ] as const) {
    test(`${name} changes nothing`, () => {
      const same = mouth(paint);
      assert.ok(
        Math.abs(same.teeth - young.teeth) <= 2 &&
          Math.abs(same.opening / young.opening - 1) < 0.005,
        JSON.stringify([young, same]),
      );
    });
  }

  test('noise does not darken the teeth where the nose cannot be seen', () => {
    const { teeth } = mouth(noise);
    assert.ok(teeth > 0.95 * young.teeth, `${teeth} of ${young.teeth}`);
  });
});
