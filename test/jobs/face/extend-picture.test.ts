// What a picture shows beside its portrait.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { extendPicture } from '../../../src/jobs/face/extend-picture.ts';
import { rgbImage } from '../../../src/jobs/face/imaging/image.ts';

const [WIDTH, HEIGHT, EDGE] = [320, 480, 320];
const HEAD = { left: 120, top: 60, right: 200, bottom: 180 };

/** Stripes above EDGE, of which nothing is known below. */
function striped() {
  const image = rgbImage(WIDTH, HEIGHT);
  image.data.forEach((_value, i) => {
    const row = Math.floor(i / 3 / WIDTH);
    image.data[i] = row < EDGE ? (Math.floor(i / 3) % 2 === 0 ? 80 : 160) : 0;
  });
  const known = Uint8Array.from({ length: WIDTH * HEIGHT }, (_, i) => (i < EDGE * WIDTH ? 1 : 0));
  return { image, known };
}

/** Mean difference of neighbours in a row. */
function detailOf(data: Uint8Array | Uint8ClampedArray, row: number): number {
  let sum = 0;
  for (let x = 1; x < WIDTH; x++) {
    const at = (row * WIDTH + x) * 3;
    sum += Math.abs(data[at]! - data[at - 3]!);
  }
  return sum / (WIDTH - 1);
}

test('a portrait goes out of focus towards its edge, and its colour goes on beyond it', () => {
  const { image, known } = striped();
  const before = image.data.slice();
  const sharp = extendPicture(image, known, HEAD)!;
  const details = [200, 290, 305, 316, 324].map((row) => detailOf(image.data, row));
  assert.equal(details[0], 80, 'far from the edge');
  assert.ok(details[1]! > details[2]! && details[2]! > details[3]!, details.join(' '));
  assert.ok(details[3]! < 25 && details[4]! < 2, details.join(' '));
  for (const at of [150 * WIDTH + 160, 70 * WIDTH + 130]) {
    assert.equal(image.data[at * 3], before[at * 3], 'the head');
    assert.equal(sharp.data[at], 1);
  }
  const beyond = image.data[(400 * WIDTH + 100) * 3]!;
  assert.ok(Math.abs(beyond - 120) < 6, `${beyond}`);
  assert.equal(sharp.data[400 * WIDTH + 100], 0);
});

test('a picture of which all is known stays as it is', () => {
  const { image, known } = striped();
  const before = image.data.slice();
  assert.equal(extendPicture(image, known.fill(1), HEAD), undefined);
  // A difference of whole pictures takes gigabytes to print.
  assert.ok(Buffer.compare(image.data, before) === 0);
});
