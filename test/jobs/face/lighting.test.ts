// White in the light of a portrait, which teeth are painted with.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { NOSE_BASE, px, py, UPPER_OUTER } from '../../../src/jobs/face/detect/landmarks.ts';
import { lumaOf } from '../../../src/jobs/face/imaging/colour.ts';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { measureLighting } from '../../../src/jobs/face/regions/lighting.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
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

test('white of a mouth in shadow is hardly lighter than the brightest round it', () => {
  const image = face(230);
  const { halfWidth } = new MouthFrame(landmarks);
  const from = Math.round(py(landmarks, UPPER_OUTER[5]) - 0.7 * halfWidth);
  for (let i = from * SIZE * 3; i < image.data.length; i++) {
    image.data[i]! *= 0.4;
  }
  const shaded = lumaOf(...measureLighting(image, landmarks).white);
  const below = 0.4 * lumaOf(...SKIN);
  assert.ok(shaded < 1.3 * below, `${shaded} round a mouth of ${below}`);
});
