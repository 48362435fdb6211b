// Eyes and cheeks at rest, made from those of a smile.
import assert from 'node:assert/strict';
import sharp from 'sharp';
import { describe, test } from 'vitest';
import {
  FACE_OVAL,
  type Landmarks,
  LEFT_EYE,
  MOUTH_CORNERS,
  NOSE_TIP,
  RIGHT_EYE,
  px,
  py,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { noiseSource } from '../../../src/jobs/face/imaging/noise.ts';
import { eyeHeight, lidMargins } from '../../../src/jobs/face/regions/eye-contours.ts';
import { lowerCheeks } from '../../../src/jobs/face/regions/smile-eyes.ts';
import { EYE_Y, syntheticParts } from '../../pipeline/render/synthetic-face.ts';
import { at, partsOf } from './face-checks.ts';
import { laughing, portraitOf } from './portraits.ts';

const SIZE = 512;
const EYES = [LEFT_EYE, RIGHT_EYE];
/** Where the middle of the left eye lies. */
const EYE_X = 208;

/** The drawn face with its lids at `share` of their distance. */
function squinting(share: number): Landmarks {
  const points = syntheticParts().landmarks.slice();
  for (const index of EYES.flatMap(({ upper, lower }) => [...upper, ...lower])) {
    points[index * 3 + 1] = EYE_Y + share * (points[index * 3 + 1]! - EYE_Y);
  }
  return points;
}

/** Skin with white eyes, and with what `more` adds to its luma. */
function drawn(points: Landmarks, more: (x: number, y: number) => number = () => 0): RgbImage {
  const image = rgbImage(SIZE, SIZE);
  const lids = EYES.map((eye) => lidMargins(points, eye));
  for (let i = 0; i < SIZE * SIZE; i++) {
    const [x, y] = [(i % SIZE) + 0.5, Math.floor(i / SIZE) + 0.5];
    const isEye = lids.some(([upper, lower]) => y > upper(x) && y < lower(x));
    const light = more(x, y);
    image.data.set(isEye ? [244, 244, 244] : [190 + light, 145 + light, 120 + light], i * 3);
  }
  return image;
}

/** Height of the white in a column, pixels. */
function whiteIn({ data }: RgbImage, x: number): number {
  let height = 0;
  for (let y = EYE_Y - 30; y < EYE_Y + 30; y++) {
    height += Math.max(0, data[(y * SIZE + x) * 3 + 2]! - 120) / 124;
  }
  return height;
}

describe('eyes of a smile', () => {
  test('open a little: lower lids and cheeks sink, all else stays', () => {
    const points = squinting(0.6);
    const image = drawn(points);
    const rest = lowerCheeks(image, points, 1);
    for (const eye of EYES) {
      const opened = eyeHeight(rest.points, eye) / eyeHeight(points, eye);
      assert.ok(opened > 1.15 && opened < 1.3, `opens to ${opened}`);
      for (const index of [...eye.upper, eye.outer, eye.inner]) {
        assert.ok(Math.abs(py(rest.points, index) - py(points, index)) < 0.25, `upper ${index}`);
      }
    }
    const [before, after] = [whiteIn(image, EYE_X), whiteIn(rest.image, EYE_X)];
    const lid = LEFT_EYE.lower[3]!;
    const sunk = py(rest.points, lid) - py(points, lid);
    assert.ok(Math.abs(after - before - sunk) < 0.5, `${before} to ${after}, lid ${sunk}`);
    for (const index of [...FACE_OVAL, ...MOUTH_CORNERS, NOSE_TIP]) {
      const far = Math.hypot(
        px(rest.points, index) - px(points, index),
        py(rest.points, index) - py(points, index),
      );
      assert.ok(far < 0.6, `landmark ${index} moves by ${far}`);
    }
    const spot = (x: number, y: number): number =>
      Math.hypot(x - EYE_X, y - EYE_Y - 30) < 2 ? -90 : 0;
    const moved = lowerCheeks(drawn(points, spot), points, 1).image;
    const darkest = [...Array(40).keys()].reduce((best, y) =>
      moved.data[((EYE_Y + y) * SIZE + EYE_X) * 3]! <
      moved.data[((EYE_Y + best) * SIZE + EYE_X) * 3]!
        ? y
        : best,
    );
    assert.ok(darkest >= 31 && darkest <= 34, `a spot of the cheek, 30 below the eye, ${darkest}`);
  });

  test('that are narrow without a smile, wide ones, and closed ones stay', () => {
    const narrow = squinting(0.5);
    const image = drawn(narrow);
    const rest = lowerCheeks(image, narrow, 0);
    assert.equal(rest.image, image);
    assert.equal(rest.points, narrow);
    const wide = squinting(1.3);
    const opened = lowerCheeks(drawn(wide), wide, 1).points;
    const by = eyeHeight(opened, LEFT_EYE) / eyeHeight(wide, LEFT_EYE);
    assert.ok(by < 1.02, `wide eyes open to ${by}`);
    const closed = squinting(0.48);
    assert.equal(lowerCheeks(drawn(closed), closed, 1).points, closed);
  });

  test('lose bags and crow’s feet, and keep the grain of the skin', () => {
    const points = squinting(0.6);
    const noise = noiseSource(1);
    const grain = Float32Array.from({ length: SIZE * SIZE }, () => 3 * noise());
    const line = (x: number, y: number): number =>
      // A crease under the eye, and one beside its outer corner.
      -45 * Math.exp(-(((y - EYE_Y - 12) / 1.8) ** 2)) * (Math.abs(x - EYE_X) < 18 ? 1 : 0) -
      45 * Math.exp(-(((y - EYE_Y - 1) / 1.8) ** 2)) * (Math.abs(x - EYE_X + 34) < 8 ? 1 : 0);
    const image = drawn(
      points,
      (x, y) => line(x, y) + grain[Math.floor(y) * SIZE + Math.floor(x)]!,
    );
    const rest = lowerCheeks(image, points, 1).image;
    const column = ({ data }: RgbImage, x: number, from: number, to: number): number[] =>
      Array.from({ length: to - from }, (_, k) => {
        let sum = 0;
        for (let dx = -3; dx <= 3; dx++) {
          sum += data[((from + k) * SIZE + x + dx) * 3]! / 7;
        }
        return sum;
      });
    for (const [x, from, to, most] of [
      [EYE_X, EYE_Y + 8, EYE_Y + 26, 0.6],
      [EYE_X - 34, EYE_Y - 8, EYE_Y + 10, 0.75],
    ] as const) {
      const depth = (picture: RgbImage): number => {
        const lumas = column(picture, x, from, to);
        return Math.max(...lumas) - Math.min(...lumas);
      };
      assert.ok(depth(rest) < most * depth(image), `${depth(image)}, then ${depth(rest)} at ${x}`);
    }
    const roughness = ({ data }: RgbImage): number => {
      let sum = 0;
      for (let y = EYE_Y + 16; y < EYE_Y + 28; y++) {
        for (let x = EYE_X - 14; x < EYE_X + 14; x++) {
          sum += Math.abs(data[(y * SIZE + x) * 3]! - data[(y * SIZE + x + 1) * 3]!);
        }
      }
      return sum;
    };
    const kept = roughness(rest) / roughness(image);
    assert.ok(kept > 0.6, `${kept} of the grain is left`);
  });
});

test('a portrait that laughs gets calm eyes, and glasses keep their form', async () => {
  const glasses =
    '<g fill="none" stroke="#222" stroke-width="9"><rect x="372" y="420" width="125" ' +
    'height="100" rx="34"/><rect x="530" y="420" width="125" height="100" rx="34"/><path ' +
    'd="M497 455 q16 -12 33 0"/></g>';
  const mouth = { x: 516, y: 598, halfWidth: 88 };
  const over = async (bytes: Uint8Array): Promise<Buffer> =>
    sharp(bytes)
      .composite([{ input: Buffer.from(`<svg width="1024" height="1024">${glasses}</svg>`) }])
      .png()
      .toBuffer();
  const heightOf = async (bytes: Uint8Array): Promise<number> => {
    const parts = await partsOf(bytes);
    return at(parts, 145)[1] - at(parts, 159)[1] + at(parts, 374)[1] - at(parts, 386)[1];
  };
  const [plain, laugh] = [portraitOf('noah'), await laughing('noah', mouth)];
  const opened = (await heightOf(laugh)) / (await heightOf(plain));
  assert.ok(opened > 1.06 && opened < 1.2, `eyes open to ${opened}`);
  const behind = (await heightOf(await over(laugh))) / (await heightOf(await over(plain)));
  assert.ok(behind < 1.09, `eyes behind glasses open to ${behind}`);
});
