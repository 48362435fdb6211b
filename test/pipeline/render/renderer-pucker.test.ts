// The shape of rounded and of pressed lips in the renderer's pictures, for mouths of several shapes at rest.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  LOWER_INNER,
  LOWER_OUTER,
  UPPER_INNER,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import {
  AXIS,
  Canvas,
  drawPupils,
  SIZE,
  syntheticAsset,
  syntheticParts,
} from './synthetic-face.ts';

const PIXELS = SIZE * SIZE;
const [SKIN, LIP, HALF, EYES] = [170, 110, 44, 136];

interface Mouth {
  /** How far the right corner is below the left one, the corners above the middle; pixels. */
  slope?: number;
  smile?: number;
  upper?: number;
  lower?: number;
  /** Luma of the skin above the lips, and of the line between them, which goes on beside them. */
  above?: number;
  line?: number;
}

/** A face whose lips are painted where its landmarks are. */
function canvasOf({
  slope = 0,
  smile = 0,
  upper = 11,
  lower = 14,
  above = SKIN,
  line,
}: Mouth): Canvas {
  const { neutral, landmarks } = syntheticParts();
  const bend = (t: number): number => (slope / 2) * t - smile * t * t;
  const put = (indices: readonly number[], height: number): void => {
    for (const index of indices) {
      const t = (landmarks[index * 3]! - AXIS) / HALF;
      landmarks[index * 3 + 1] = 320 + bend(t) + height * (1 - t * t);
    }
  };
  put(UPPER_OUTER, -upper);
  put(LOWER_OUTER, lower);
  put([...UPPER_INNER, ...LOWER_INNER], 0);
  neutral.fill(SKIN, 0, PIXELS).fill(128, PIXELS);
  neutral.fill(above, 270 * SIZE, 320 * SIZE);
  drawPupils(neutral);
  for (let y = 270; y < 370; y++) {
    for (let x = 190; x < 322; x++) {
      const t = (x - AXIS) / HALF;
      const v = y - 320 - bend(t);
      if (Math.abs(t) < 1 && v > -upper * (1 - t * t) && v < lower * (1 - t * t)) {
        neutral[y * SIZE + x] = LIP;
      }
      if (line !== undefined && Math.abs(t) < 1.1 && Math.abs(v) < 2) {
        neutral[y * SIZE + x] = line;
      } else if (y < 320 && v > 0) {
        neutral[y * SIZE + x] = SKIN;
      }
    }
  }
  return new Canvas(new native.FaceAsset(syntheticAsset({ neutral, landmarks })));
}

interface Opening {
  x: number;
  y: number;
  width: number;
  height: number;
  slope: number;
}

/** The ellipse that has the moments of the opening. */
function openingOf(picture: Uint8Array): Opening {
  let [mass, mx, my, xx, yy, xy] = [0, 0, 0, 0, 0, 0];
  for (let j = 0; j < SIZE / 2; j++) {
    for (let i = 0; i < SIZE / 2; i++) {
      const seen = (picture[PIXELS * 1.25 + (j * SIZE) / 2 + i]! - 150) / 30;
      const w = Math.max(0, Math.min(1, seen));
      const [x, y] = [2 * i + 0.5 - AXIS, 2 * j + 0.5];
      mass += w;
      mx += w * x;
      my += w * y;
      xx += w * x * x;
      yy += w * y * y;
      xy += w * x * y;
    }
  }
  const [x, y] = [mx / mass, my / mass];
  const across = xx / mass - x * x;
  return {
    x,
    y,
    width: 4 * Math.sqrt(across),
    height: 4 * Math.sqrt(yy / mass - y * y),
    slope: (xy / mass - x * y) / across,
  };
}

/** Rows of lip above and below a height, in the middle of the mouth. */
function lipsOf(picture: Uint8Array, height: number): { upper: number; lower: number } {
  const dark = Array.from({ length: 100 }, (_, i) => 270 + i).filter(
    (y) => picture[y * SIZE + 256]! < (SKIN + LIP) / 2,
  );
  return { upper: height - dark[0]!, lower: dark.at(-1)! - height };
}

describe('rounded lips', () => {
  test.each<[string, Mouth]>([
    ['level', {}],
    ['that slants', { slope: 14 }],
    ['that smiles', { smile: 12 }],
    ['that slants and smiles', { slope: -12, smile: 9 }],
    ['whose corners hang', { smile: -8 }],
    ['with a thick lower lip', { upper: 9, lower: 20 }],
  ])('have a level opening in their middle on a mouth %s', (_, mouth) => {
    const canvas = canvasOf(mouth);
    for (const shape of [VISEMES.oo, VISEMES.oh]) {
      const { picture } = canvas.show(shape);
      const opening = openingOf(picture);
      const { upper, lower } = lipsOf(picture, opening.y);
      const seen = JSON.stringify({ shape, opening, upper, lower });
      assert.ok(Math.abs(opening.x) < 0.04 * HALF, seen);
      assert.ok(Math.abs(opening.slope) < 0.04, seen);
      const ratio = opening.height / opening.width;
      assert.ok(ratio > 0.3 && ratio < 0.55, seen);
      assert.ok(upper / lower > 0.55 && upper / lower < 1.05, seen);
    }
    // Chroma has every other row only.
    const { height } = openingOf(canvas.show(VISEMES.oo).picture);
    assert.ok(height <= 0.09 * EYES, `${height}`);
  });

  test('show nothing of the line between the lips at rest beside their opening', () => {
    const [plain, lined] = [canvasOf({}), canvasOf({ line: 40 })];
    const { y } = openingOf(plain.show(VISEMES.oo).picture);
    lined.show(VISEMES.oo);
    for (const x of [16, 19, 22].flatMap((away) => [256 - away, 256 + away])) {
      const [without, beside] = [plain, lined].map(({ picture }) =>
        Array.from({ length: 17 }, (_, i) => picture[(Math.round(y) - 8 + i) * SIZE + x]!),
      );
      const darker = Math.max(...without!.map((luma, i) => luma - beside![i]!));
      assert.ok(darker <= 12, `${x}: ${without!.join(' ')}, ${beside!.join(' ')}`);
    }
  });

  test.each<[string, Mouth, number, number]>([
    ['thin', { upper: 4, lower: 6 }, 0.25, 0.42],
    ['of a common thickness', {}, 0.38, 0.54],
    ['full', { upper: 16, lower: 20 }, 0.5, 0.69],
  ])('that are %s at rest are about half as thick together as wide', (_, mouth, least, most) => {
    const { picture } = canvasOf(mouth).show(VISEMES.oo);
    const opening = openingOf(picture);
    const { upper, lower } = lipsOf(picture, opening.y);
    const columns = Array.from({ length: 100 }, (_, i) => 206 + i).filter(
      (x) => picture[Math.round(opening.y) * SIZE + x]! < (SKIN + LIP) / 2,
    );
    const thick = (upper + lower - opening.height) / (columns.at(-1)! - columns[0]!);
    assert.ok(thick > least && thick < most, `${thick}`);
  });

  test('have an opening that fades from dark into their insides', () => {
    const { picture } = canvasOf({}).show(VISEMES.oo);
    const y = Math.round(openingOf(picture).y);
    const column = Array.from({ length: 24 }, (_, i) => picture[(y - 12 + i) * SIZE + 256]!);
    const steps = column.slice(1).map((luma, i) => Math.abs(luma - column[i]!));
    const contrast = LIP - Math.min(...column);
    assert.ok(contrast > 40 && Math.max(...steps) < 0.3 * contrast, column.join(' '));
  });

  test('push a moustache up by less than bare skin', () => {
    const grown = (above: number): number => {
      const { picture } = canvasOf({ above, upper: 6 }).show(VISEMES.oo);
      const red = Array.from({ length: 60 }, (_, i) => picture[(270 + i) * SIZE + 256]!);
      return red.findIndex((luma) => Math.abs(luma - LIP) < Math.abs(luma - above));
    };
    assert.ok(grown(60) >= grown(SKIN) + 1, `${grown(60)} ${grown(SKIN)}`);
  });
});

describe('pressed lips', () => {
  test('roll in, full ones more than thin ones', () => {
    const left = (mouth: Mouth): { upper: number; lower: number } => {
      const canvas = canvasOf(mouth);
      const rest = lipsOf(canvas.show({}).picture, 320);
      const pressed = lipsOf(canvas.show(VISEMES.m).picture, 320);
      return { upper: pressed.upper / rest.upper, lower: pressed.lower / rest.lower };
    };
    const [full, thin] = [left({ upper: 16, lower: 20 }), left({ upper: 6, lower: 7 })];
    const seen = JSON.stringify({ full, thin });
    assert.ok(full.upper < 0.9 && full.lower < 0.82 && full.lower > 0.6, seen);
    assert.ok(thin.upper >= full.upper && thin.lower > full.lower + 0.02, seen);
  });
});
