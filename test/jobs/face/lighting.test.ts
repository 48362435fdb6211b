// White in the light of a portrait, which teeth are painted with.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  LEFT_EYE,
  NOSE_BASE,
  px,
  py,
  RIGHT_EYE,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { lumaOf } from '../../../src/jobs/face/imaging/colour.ts';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { eyePixels } from '../../../src/jobs/face/regions/eye-contours.ts';
import { castOf, measureLighting } from '../../../src/jobs/face/regions/lighting.ts';
import { mouthTints } from '../../../src/jobs/face/regions/mouth-interior.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const SIZE = 512;
const { landmarks } = syntheticParts();
const SKIN: Rgb = [172, 140, 132];

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

test('brown skin is told from warm light by the whites of the eyes, and its teeth are pale', () => {
  const lightOn = (skin: Rgb, sclera: Rgb): ReturnType<typeof measureLighting> => {
    const image = rgbImage(SIZE, SIZE);
    for (let i = 0; i < SIZE * SIZE; i++) {
      image.data.set(skin, i * 3);
    }
    for (const eye of [LEFT_EYE, RIGHT_EYE]) {
      for (const i of eyePixels(image, landmarks, eye)) {
        image.data.set(sclera, i * 3);
      }
    }
    return measureLighting(image, landmarks);
  };
  const chroma = (colour: Rgb): number => Math.hypot(...castOf(colour));
  const brown: Rgb = [78, 46, 26];
  const daylight = lightOn(brown, [140, 124, 108]);
  const candle = lightOn(brown, [180, 106, 60]);
  assert.ok(chroma(daylight.white) < 0.08, `${chroma(daylight.white)} in daylight`);
  assert.ok(chroma(candle.white) > 0.12, `${chroma(candle.white)} by candle-light`);
  // U and V in units of luma, and luma.
  const [y, u, v] = mouthTints(daylight, undefined, [120, 80, 80]).teeth;
  assert.ok(Math.hypot(u - 128, v - 128) < 0.18 * (y - 16), `${y}, ${u}, ${v}`);
  assert.ok(y > 120, `luma ${y}`);
});
