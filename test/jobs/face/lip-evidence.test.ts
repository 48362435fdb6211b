// What lies on the lips, in faces of a few flat colours.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { lipEvidence } from '../../../src/jobs/face/detect/lip-evidence.ts';
import { LOWER_INNER, px, py, UPPER_INNER } from '../../../src/jobs/face/detect/landmarks.ts';
import { isMouthCovered } from '../../../src/jobs/face/detect/mouth-evidence.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { fill, flatFace, openedBy, spot } from './flat-face.ts';

const grey = (value: number): Rgb => [value, value, value];

/** Whether a tongue is seen in a mouth that is open by 40 pixels and has one colour inside. */
function tongueIn(lip: Rgb, skin: Rgb, inside: Rgb): boolean {
  const points = openedBy(syntheticParts().landmarks, 40);
  const image = flatFace(points, lip, skin);
  fill(image, points, [...UPPER_INNER, ...LOWER_INNER.toReversed()], inside);
  return lipEvidence({ image, points }, 0.35).tongue;
}

test('in black and white, a tongue is darker than the lips, teeth are lighter', () => {
  const [lip, skin] = [grey(200), grey(210)];
  assert.ok(tongueIn(lip, skin, grey(172)), 'a tongue');
  assert.ok(!tongueIn(lip, skin, grey(225)), 'teeth');
  assert.ok(!tongueIn(lip, skin, grey(60)), 'a dark cavity');
  assert.ok(!tongueIn([200, 120, 110], [210, 170, 150], grey(140)), 'teeth in shadow, in colour');
});

test('a faint seam is that of a hand, or of light lips in a dark beard', () => {
  const covered = (lip: number, round: number, seam: number): boolean => {
    const points = openedBy(syntheticParts().landmarks, 4);
    const image = flatFace(points, grey(lip), grey(round));
    fill(image, points, [...UPPER_INNER, ...LOWER_INNER.toReversed()], grey(seam));
    return isMouthCovered({ image, points }).covered;
  };
  assert.ok(!covered(120, 60, 95), 'light lips in a dark beard');
  assert.ok(covered(120, 115, 95), 'a hand');
  assert.ok(covered(120, 60, 112), 'light cloth before a dark beard');
});

test('lips of one colour with hardly a seam, not red, are a mask or a microphone', () => {
  const covered = (lip: Rgb, seam: Rgb): boolean => {
    const points = openedBy(syntheticParts().landmarks, 4);
    const image = flatFace(points, lip, [190, 140, 160]);
    fill(image, points, [...UPPER_INNER, ...LOWER_INNER.toReversed()], seam);
    return isMouthCovered({ image, points }).covered;
  };
  assert.ok(covered([40, 38, 46], [34, 32, 39]), 'a microphone');
  assert.ok(!covered([40, 38, 46], [20, 18, 25]), 'dark lips with a seam');
  assert.ok(!covered([180, 80, 90], [150, 65, 74]), 'red lips with hardly a seam');
});

test('in small pictures, and between bare lips of the colour of skin, a seam is faint', () => {
  const covered = (lip: Rgb, seam: Rgb, skin: Rgb, scale: number): boolean => {
    const points = openedBy(syntheticParts().landmarks, 4);
    const image = flatFace(points, lip, skin);
    fill(image, points, [...UPPER_INNER, ...LOWER_INNER.toReversed()], seam);
    return isMouthCovered({ image, points, scale }).covered;
  };
  const dark: Rgb = [104, 78, 66];
  const brown: Rgb = [122, 88, 74];
  assert.ok(covered(dark, [84, 63, 53], brown, 1), 'one thing in a large picture');
  assert.ok(!covered(dark, [84, 63, 53], brown, 0.4), 'lips in a small one');
  assert.ok(covered(dark, [94, 70, 59], brown, 0.4), 'one thing in a small one');
  const skin: Rgb = [228, 184, 164];
  assert.ok(!covered([234, 189, 168], [182, 147, 131], skin, 0.5), 'bare lips');
  assert.ok(covered([234, 189, 168], [200, 161, 144], skin, 0.5), 'a hand');
});

test('a seam that is clear in the middle is seen, however clear it is beside a beard', () => {
  const covered = (middle: Rgb): boolean => {
    const points = openedBy(syntheticParts().landmarks, 10);
    const image = flatFace(points, [190, 85, 90], [215, 165, 145]);
    const inside = [...UPPER_INNER, ...LOWER_INNER.toReversed()];
    fill(image, points, inside, [10, 5, 5]);
    const { halfWidth } = new MouthFrame(points);
    const centre = px(points, 13);
    fill(image, points, inside, middle, (x) => Math.abs(x - centre) < 0.34 * halfWidth);
    // A goatee. The synthetic face has no landmarks of its own there.
    for (const index of [200, 201, 421]) {
      points[index * 3] = centre;
      points[index * 3 + 1] = py(points, 17) + 30;
    }
    spot(image, centre, py(points, 200), 9, [60, 35, 25]);
    return isMouthCovered({ image, points }).covered;
  };
  assert.ok(!covered([95, 42, 45]), 'half as light as the lips');
  assert.ok(covered([160, 72, 76]), 'nearly as light');
});
