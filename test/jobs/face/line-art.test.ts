// Drawings in lines: which count as such, and how their mouths close.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  type Landmarks,
  LEFT_EYE,
  LOWER_INNER,
  LOWER_OUTER,
  px,
  py,
  RIGHT_EYE,
  UPPER_INNER,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { isLineArt } from '../../../src/jobs/face/detect/line-art.ts';
import { lumaAt } from '../../../src/jobs/face/imaging/colour.ts';
import type { RgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { restMouth } from '../../../src/jobs/face/regions/resting-mouth.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';
import { flatFace, openedBy, SIZE, spot } from './flat-face.ts';

const { landmarks } = syntheticParts();
const BLACK: Rgb = [10, 10, 10];

/** Lines through some landmarks, three pixels thick. */
function draw(image: RgbImage, points: Landmarks, indices: readonly number[], ink: Rgb): void {
  indices.slice(1).forEach((index, i) => {
    const from = indices[i]!;
    for (let t = 0; t <= 1; t += 0.02) {
      const along = (at: typeof px): number => at(points, from) * (1 - t) + at(points, index) * t;
      spot(image, along(px), along(py), 1, ink);
    }
  });
}

/** A face in lines of an ink on paper. */
function drawing(points: Landmarks, paper: Rgb = [255, 255, 255], ink = BLACK): RgbImage {
  const image = flatFace(points, paper, paper);
  for (const eye of [LEFT_EYE, RIGHT_EYE]) {
    for (const lid of [eye.upper, eye.lower]) {
      draw(image, points, [eye.outer, ...lid, eye.inner], ink);
    }
    spot(image, px(points, eye.upper[3]!), py(points, eye.upper[3]!) + 7, 6, ink);
  }
  for (const line of [UPPER_OUTER, UPPER_INNER, LOWER_INNER, LOWER_OUTER]) {
    draw(image, points, line, ink);
  }
  return image;
}

test('black lines on white paper are line art; other tones are not', () => {
  assert.ok(isLineArt(drawing(landmarks), landmarks));
  assert.ok(!isLineArt(drawing(landmarks, [225, 225, 225]), landmarks), 'grey paper');
  assert.ok(!isLineArt(drawing(landmarks, [255, 240, 214]), landmarks), 'skin');
  assert.ok(!isLineArt(drawing(landmarks, [255, 255, 255], [150, 40, 30]), landmarks), 'red lines');
  const blank = flatFace(landmarks, [255, 255, 255], [255, 255, 255]);
  assert.ok(!isLineArt(blank, landmarks), 'overexposed');
});

test('an open mouth of line art closes to one line, without shades', () => {
  const points = openedBy(landmarks, 26);
  const image = drawing(points);
  const rest = restMouth(image, points);
  assert.ok(rest.opening);
  const seam = Math.round(py(rest.points, UPPER_INNER[5]));
  assert.equal(seam, Math.round(py(rest.points, LOWER_INNER[5])));
  /** Runs of dark pixels down the middle of the mouth, and the share of the mouth between tones. */
  const seen = (picture: RgbImage): { lines: number; grey: number } => {
    const luma = (x: number, y: number): number => lumaAt(picture, y * SIZE + x);
    const rows = Array.from({ length: 90 }, (_, i) => 290 + i);
    const dark = rows.map((y) => luma(256, y) < 128);
    const lines = dark.filter((is, i) => is && dark[i - 1] !== true).length;
    const shades = rows.flatMap((y) => [230, 240, 250, 262, 272, 282].map((x) => luma(x, y)));
    return { lines, grey: shades.filter((v) => v > 150 && v < 246).length / shades.length };
  };
  // Outer and inner edges of both lips; then the seam, between the outer edges.
  assert.equal(seen(image).lines, 4);
  const { lines, grey } = seen(rest.image);
  assert.equal(lines, 3);
  assert.ok(grey < 0.08, `${grey}`);
});

test('closed lips of line art stay as they are drawn', () => {
  const points = openedBy(landmarks, 6);
  const image = drawing(points);
  const rest = restMouth(image, points);
  assert.equal(rest.opening, undefined);
  assert.equal(rest.image, image);
});
