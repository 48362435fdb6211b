// The shadows that a mouth gets when its smile is closed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  LOWER_INNER,
  LOWER_OUTER,
  MOUTH_CORNERS,
  px,
  py,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { lumaAt } from '../../../src/jobs/face/imaging/colour.ts';
import type { RgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { drawLipShadows } from '../../../src/jobs/face/regions/lip-shadows.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { flatFace, SIZE } from './flat-face.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const { landmarks } = syntheticParts();
const { eyeDistance, halfWidth } = new MouthFrame(landmarks);

const face = (): RgbImage => flatFace(landmarks, [180, 100, 95], [205, 160, 135]);
const lightAt = (image: RgbImage, x: number, y: number): number =>
  lumaAt(image, Math.round(y) * SIZE + Math.round(x));
const middle = px(landmarks, LOWER_OUTER[5]);
const below = py(landmarks, LOWER_OUTER[5]) + 0.035 * eyeDistance;
const [left, right] = MOUTH_CORNERS.map((i) => px(landmarks, i)) as [number, number];
const corner = py(landmarks, MOUTH_CORNERS[0]);

test('the corners of a flat mouth become dark, and so does the skin below the lower lip', () => {
  const before = face();
  const image = face();
  drawLipShadows(image, landmarks, 1, 1);
  for (const x of [left + 0.06 * halfWidth, right - 0.06 * halfWidth]) {
    assert.ok(lightAt(image, x, corner) < 0.8 * lightAt(before, x, corner));
  }
  assert.ok(lightAt(image, middle, below) < 0.9 * lightAt(before, middle, below));
  const seam = py(landmarks, LOWER_INNER[5]);
  assert.equal(lightAt(image, middle, seam), lightAt(before, middle, seam), 'the lips stay');
  assert.equal(lightAt(image, middle, 0.1 * SIZE), lightAt(before, middle, 0.1 * SIZE));
});

test('what is dark already stays as it is', () => {
  const image = face();
  for (let i = 0; i < 4; i++) {
    drawLipShadows(image, landmarks, 1, 1);
  }
  const again: RgbImage = { ...image, data: image.data.slice() };
  drawLipShadows(again, landmarks, 1, 1);
  for (const [x, y] of [
    [middle, below],
    [left + 0.06 * halfWidth, corner],
  ] as const) {
    const [once, twice] = [lightAt(image, x, y), lightAt(again, x, y)];
    assert.ok(twice > 0.97 * once, `at ${x}, ${y} ${once} became ${twice}`);
    assert.ok(twice > 0.35 * lightAt(face(), x, y), `${twice} is too dark`);
  }
});

test('without a smile nothing changes', () => {
  const image = face();
  drawLipShadows(image, landmarks, 0, 1);
  assert.deepEqual(image, face());
});
