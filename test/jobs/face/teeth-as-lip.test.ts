// Teeth between a moustache and the lower lip that FaceMesh took for the upper lip, in flat colours.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  LOWER_INNER,
  LOWER_OUTER,
  py,
  UPPER_INNER,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { restMouth } from '../../../src/jobs/face/regions/resting-mouth.ts';
import { withTeethFound } from '../../../src/jobs/face/regions/teeth-as-lip.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';
import { fill, flatFace } from './flat-face.ts';

const [LIP, HAIR, TEETH]: Rgb[] = [
  [176, 84, 80],
  [120, 108, 98],
  [214, 208, 196],
];

/** A closed mouth by its landmarks, whose upper lip has the colour `upper`. */
function faceWith(upper: Rgb, moustache: Rgb) {
  const points = syntheticParts().landmarks.slice();
  const image = flatFace(points, LIP!, moustache);
  fill(image, points, [...UPPER_OUTER, ...UPPER_INNER.toReversed()], upper);
  fill(image, points, [...LOWER_INNER, ...LOWER_OUTER.toReversed()], LIP!);
  return { image, points };
}

test('teeth below a moustache that were taken for the upper lip are found, and closed', () => {
  const { image, points } = faceWith(TEETH!, HAIR!);
  const found = withTeethFound(image, points);
  const rows = py(points, UPPER_INNER[5]) - py(points, UPPER_OUTER[5]);
  const moved = py(points, UPPER_INNER[5]) - py(found, UPPER_INNER[5]);
  assert.ok(moved > 0.8 * rows, `the contour rises by ${moved} of ${rows} px`);
  const rest = restMouth(image, points);
  assert.ok(rest.opening, 'the mouth was open');
  const { data } = rest.image;
  const seam = Math.round(py(rest.points, UPPER_INNER[5])) * 512 + 256;
  for (const row of [-4, -2, 0, 2, 4]) {
    const at = (seam + row * 512) * 3;
    assert.ok(data[at]! < 0.9 * TEETH![0], `a tooth is left ${row} px beside the seam`);
  }
});

test('red lips, and a white moustache over them, are no teeth', () => {
  for (const [upper, moustache] of [
    [LIP!, HAIR!],
    [TEETH!, TEETH!],
  ] as const) {
    const { image, points } = faceWith(upper, moustache);
    assert.equal(withTeethFound(image, points), points);
  }
});
