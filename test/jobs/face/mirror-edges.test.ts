// How a crop goes on beyond the edges of its portrait.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { mirrorEdges } from '../../../src/jobs/face/detect/mirror-edges.ts';
import { Pyramid, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { at as landmarkAt, partsOf } from './face-checks.ts';
import { portrait } from './portraits.ts';

const SIZE = 128;
/** A portrait as large as the crop, which lies this far to the left of it. */
const OUTSIDE = 32;

/** A crop of a portrait of columns, black where it lies outside. */
function cropped(luma: (x: number) => number) {
  const [portrait, image] = [rgbImage(SIZE, SIZE), rgbImage(SIZE, SIZE)];
  const known = new Uint8Array(SIZE * SIZE);
  for (let i = 0; i < SIZE * SIZE; i++) {
    const x = i % SIZE;
    portrait.data.fill(luma(x), i * 3, i * 3 + 3);
    if (x >= OUTSIDE) {
      known[i] = 1;
      image.data.fill(luma(x - OUTSIDE), i * 3, i * 3 + 3);
    }
  }
  return { image, known, portrait: new Pyramid(portrait) };
}
const SQUARE = { cx: SIZE / 2 - OUTSIDE, cy: SIZE / 2, side: SIZE, angle: 0 };
const at = (image: { readonly data: Uint8Array }, x: number): number =>
  image.data[(64 * SIZE + x) * 3]!;

test('beyond an edge a portrait is mirrored, and blurred the more the farther out', () => {
  const { image, known, portrait } = cropped((x) => (x & 4 ? 160 : 80));
  const before = image.data.slice();
  mirrorEdges(image, known, portrait, SQUARE, { left: 60, top: 20, right: 100, bottom: 100 });
  for (const x of [28, 29, 30, 31]) {
    assert.ok(Math.abs(at(image, x) - 80) < 20, `${x}: ${at(image, x)}`);
  }
  const contrast = (from: number): number => {
    const row = Array.from({ length: 8 }, (_, k) => at(image, from + k));
    return Math.max(...row) - Math.min(...row);
  };
  assert.ok(contrast(24) > contrast(0) + 20, `${contrast(24)}, ${contrast(0)}`);
  for (let i = 0; i < known.length; i++) {
    assert.ok(!known[i] || image.data[i * 3] === before[i * 3], 'what is known stays');
  }
});

test('a head near the edge is not mirrored', () => {
  const { image, known, portrait } = cropped((x) => (x >= 16 ? 200 : 40));
  mirrorEdges(image, known, portrait, SQUARE, { left: 16, top: 20, right: 100, bottom: 100 });
  for (let x = 4; x < OUTSIDE; x++) {
    assert.ok(at(image, x) < 60, `${x}: ${at(image, x)}`);
  }
});

test('beside a narrow portrait neither ears nor hair are seen again', async () => {
  // 58 of 1024 pixels of the wall and of an ear beside the landmarks of the face on both sides.
  const narrow = portrait('walter').extract({ left: 288, top: 0, width: 459, height: 1024 });
  const parts = await partsOf(await narrow.png().toBuffer());
  // The face is 343 pixels wide in the portrait.
  const [[left, y], [right]] = [landmarkAt(parts, 234), landmarkAt(parts, 454)];
  const edge = Math.round(left - (58 / 343) * (right - left));
  assert.ok(edge > 60, `continued by ${edge} pixels`);
  const wall = (x: number, row: number): number => parts.neutral[row * 512 + x]!;
  for (let row = Math.round(y) - 60; row < y + 60; row++) {
    for (let x = 0; x < edge; x++) {
      const apart = Math.abs(wall(x, row) - wall(edge + 2, row));
      assert.ok(apart < 25, `${x}, ${row}: ${apart} apart from the wall`);
    }
  }
});
