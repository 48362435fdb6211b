// People before another background: single hairs and what lies between them, and clothes like the wall.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { plane, type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { personMatte } from '../../../src/jobs/face/regions/person-matte.ts';

const SIZE = 512;
const HAIR: Rgb = [40, 25, 15];
const WALL: Rgb = [90, 160, 220];
const RADIUS = 160;
/** Hairs reach as far out of the disc as so many pixels. */
const LENGTH = 6;

const at = (x: number, y: number): number => y * SIZE + x;
const distance = (x: number, y: number): number => Math.hypot(x - SIZE / 2, y - SIZE / 2);
const paint = (image: RgbImage, i: number, colour: Rgb): void => image.data.set(colour, i * 3);

/**
 * A disc of hair before a wall, with a hair two pixels wide every eight, straight up, and its mask
 * without the hairs.
 */
function disc(hair: Rgb, wall: Rgb): { image: RgbImage; mask: ReturnType<typeof plane> } {
  const image = rgbImage(SIZE, SIZE);
  const mask = plane(SIZE, SIZE);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      const inside = distance(x, y) < RADIUS;
      mask.data[at(x, y)] = inside ? 1 : 0;
      const isStrand = x % 8 < 2 && y < SIZE / 2 && distance(x, y) < RADIUS + LENGTH;
      paint(image, at(x, y), inside || isStrand ? hair : wall);
    }
  }
  return { image, mask };
}

/** Pixels at the top of the disc, where hairs go straight out, `out` pixels from its outline. */
function above(out: number, isStrand: boolean): number[] {
  const found: number[] = [];
  for (let x = SIZE / 2 - 24; x < SIZE / 2 + 24; x++) {
    if (isStrand ? x % 8 < 2 : x % 8 === 4 || x % 8 === 5) {
      const rise = Math.sqrt(RADIUS ** 2 - (x - SIZE / 2) ** 2);
      found.push(at(x, Math.floor(SIZE / 2 - rise - out)));
    }
  }
  return found;
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

test('single hairs belong to the person, and the wall between them does not', () => {
  const { image, mask } = disc(HAIR, WALL);
  const { alpha } = personMatte(image, mask, SIZE);
  const hairs = mean(above(3, true).map((i) => alpha.data[i]!));
  const gaps = mean(above(3, false).map((i) => alpha.data[i]!));
  assert.ok(hairs > 0.5, `hairs ${hairs}`);
  assert.ok(gaps < 0.1, `gaps ${gaps}`);
  assert.equal(alpha.data[at(SIZE / 2, SIZE / 2)], 1);
  assert.equal(alpha.data[at(4, 4)], 0);
});

test('a pixel that is half hair and half wall has the colour of hair', () => {
  const { image, mask } = disc(HAIR, WALL);
  const mixed: number[] = [];
  for (let x = SIZE / 2 - 40; x < SIZE / 2 + 40; x++) {
    const y = Math.round(SIZE / 2 + Math.sqrt(RADIUS ** 2 - (x - SIZE / 2) ** 2));
    paint(image, at(x, y), [65, 93, 118]);
    mixed.push(at(x, y));
  }
  const { alpha, colour } = personMatte(image, mask, SIZE);
  const share = mean(mixed.map((i) => alpha.data[i]!));
  assert.ok(share > 0.2 && share < 0.8, `alpha ${share}`);
  const blue = mean(mixed.map((i) => colour.data[i * 3 + 2]!));
  assert.ok(Math.abs(blue - HAIR[2]) < 30, `blue ${blue}, not ${HAIR[2]} of hair nor 118 of both`);
});

test('before a wall of its colour a jacket ends where the mask does', () => {
  const { image, mask } = disc([92, 92, 96], [96, 96, 100]);
  const { alpha } = personMatte(image, mask, SIZE);
  for (let x = SIZE / 2 - 40; x < SIZE / 2 + 40; x++) {
    const rise = Math.sqrt(RADIUS ** 2 - (x - SIZE / 2) ** 2);
    for (const [out, least, most] of [
      [-4, 0.95, 1],
      [4, 0, 0.05],
    ] as const) {
      const share = alpha.data[at(x, Math.round(SIZE / 2 + rise + out))]!;
      assert.ok(share >= least && share <= most, `alpha ${share} at ${x}, ${out} pixels out`);
    }
  }
});

test('below the chin nothing is added far from the outline', () => {
  const { image, mask } = disc(HAIR, WALL);
  const added = (chin: number): number => {
    const { alpha } = personMatte(image, mask, chin);
    return mean(above(5, true).map((i) => alpha.data[i]!));
  };
  const [head, body] = [added(SIZE), added(0)];
  assert.ok(head > 0.2 && body < head / 3, `${head} and ${body}`);
});
