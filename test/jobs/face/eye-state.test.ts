// Whether dark glasses hide an eye, or shade alone lies on it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { CHEEKS, LEFT_EYE, px, py } from '../../../src/jobs/face/detect/landmarks.ts';
import { rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { eyePixels } from '../../../src/jobs/face/regions/eye-contours.ts';
import { isEyeHidden } from '../../../src/jobs/face/regions/eye-state.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const SIZE = 512;
const landmarks = syntheticParts().landmarks.slice();
// The synthetic face has eyes, and what is round them lies in one point.
const place = (indices: readonly number[], y: number): void => {
  for (const [k, index] of indices.entries()) {
    landmarks.set([px(landmarks, LEFT_EYE.outer) + 6 * k, y], index * 3);
  }
};
const eyeY = py(landmarks, LEFT_EYE.outer);
place(LEFT_EYE.crease, eyeY - 20);
place(LEFT_EYE.under, eyeY + 20);
place(CHEEKS, eyeY + 70);
const SKIN = 180;
const DARK = 40;

/**
 * @param whites share of the pixels between the lids that are `white`; the others are `iris`
 * @param options.under luma at one of the places under the eye
 */
function isHidden(
  whites: number,
  white: number,
  { iris = 8, under = DARK }: { iris?: number; under?: number } = {},
): boolean {
  const image = rgbImage(SIZE, SIZE);
  image.data.fill(SKIN);
  const dot = (index: number, luma: number): void => {
    const [x, y] = [px(landmarks, index), py(landmarks, index)].map(Math.round) as [number, number];
    image.data.fill(luma, (y * SIZE + x) * 3, (y * SIZE + x) * 3 + 3);
  };
  for (const index of [...LEFT_EYE.under, ...LEFT_EYE.crease]) {
    dot(index, DARK);
  }
  dot(LEFT_EYE.under[0]!, under);
  for (const [k, i] of eyePixels(image, landmarks, LEFT_EYE).entries()) {
    image.data.fill(k % 100 < 100 * whites ? white : iris, i * 3, i * 3 + 3);
  }
  return isEyeHidden(image, landmarks, LEFT_EYE);
}

test('dark glasses hide an eye; one in the shade of shiny skin is seen by its white', () => {
  assert.ok(isHidden(0, 0), 'behind glasses');
  assert.ok(isHidden(0.5, 92, { iris: 86, under: 150 }), 'behind a mirror');
  assert.ok(!isHidden(0.5, 92, { iris: 50, under: 150 }), 'an eye of little contrast');
  assert.ok(isHidden(0.3, 55), 'behind glasses with a reflection');
  assert.ok(!isHidden(0.3, 75), 'its white is seen');
  assert.ok(!isHidden(0.3, 40, { under: 100 }), 'light skin lies under it');
});
