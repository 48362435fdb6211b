// Bars of one colour at the edges of a portrait are cut away; plain backgrounds stay.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { withoutBars } from '../../../src/jobs/face/imaging/letterbox.ts';

const [WIDTH, HEIGHT] = [120, 80];

/** A picture of these lumas. */
function drawn(luma: (x: number, y: number) => number): RgbImage {
  const image = rgbImage(WIDTH, HEIGHT);
  for (let i = 0; i < WIDTH * HEIGHT; i++) {
    image.data.fill(luma(i % WIDTH, Math.floor(i / WIDTH)), i * 3, i * 3 + 3);
  }
  return image;
}
const scene = (x: number, y: number): number => 120 + 40 * Math.sin(x / 9) + 20 * Math.cos(y / 7);

describe('bars of one colour', () => {
  test('above, below and beside a picture are cut away, with their soft edge', () => {
    const noise = (x: number, y: number): number => (x * 7 + y * 3) % 8;
    const image = drawn((x, y) => {
      if (y < 10 || y >= 72 || x < 6) {
        return noise(x, y);
      }
      return y === 10 ? scene(x, y) / 6 : scene(x, y);
    });
    const { width, height, data } = withoutBars(image);
    assert.deepEqual([width, height], [113, 59]);
    assert.equal(data.length, width * height * 3);
    assert.ok(Math.abs(data[0]! - scene(7, 12)) <= 1, `${data[0]}`);
  });

  test('white ones too', () => {
    const image = drawn((x, y) => (x >= 100 ? 255 : scene(x, y)));
    assert.deepEqual(withoutBars(image).width, 99);
  });

  test('are none where a head stands before a plain background, or the picture fades', () => {
    const head = drawn((x, y) => (Math.hypot(x - 60, y - 50) < 30 ? 150 : 8));
    const faded = drawn((_, y) => Math.min(150, 3 * y));
    const empty = drawn(() => 0);
    for (const image of [head, faded, empty, drawn(scene)]) {
      assert.equal(withoutBars(image), image);
    }
  });
});
