// White in the light of a portrait, which teeth are painted with.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { NOSE_BASE, px, py } from '../../../src/jobs/face/detect/landmarks.ts';
import { lumaOf } from '../../../src/jobs/face/imaging/colour.ts';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { measureLighting } from '../../../src/jobs/face/regions/lighting.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const SIZE = 512;
const { landmarks } = syntheticParts();
const SKIN = [172, 140, 132] as const;

/** A face of one colour, with a bright patch on it. */
function face(highlight: number): RgbImage {
  const image = rgbImage(SIZE, SIZE);
  const [x, y] = [px(landmarks, NOSE_BASE), py(landmarks, NOSE_BASE) - 30];
  for (let i = 0; i < SIZE * SIZE; i++) {
    const isLit = Math.hypot((i % SIZE) - x, Math.floor(i / SIZE) - y) < 24;
    image.data.set(isLit ? [highlight, highlight, highlight] : SKIN, i * 3);
  }
  return image;
}

test('white in a dim or faded picture is hardly lighter than the brightest of the face', () => {
  const [dim, lit] = [face(150), face(230)].map((image) =>
    lumaOf(...measureLighting(image, landmarks).white),
  ) as [number, number];
  const skin = lumaOf(...SKIN);
  assert.ok(dim < 1.06 * skin, `${dim} on skin of ${skin}`);
  assert.ok(lit > 1.1 * skin, `${lit} on skin of ${skin} with a highlight`);
});
