// Properties of the mouth in the renderer's pictures, measured from their pixels.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { AXIS, Canvas, SIZE, syntheticAsset, syntheticParts } from './synthetic-face.ts';

const parts = syntheticParts();
const asset = new native.FaceAsset(syntheticAsset());
const PIXELS = SIZE * SIZE;
/** V of the inside of a mouth without other colours. */
const INSIDE = 230;

/** Index of the V sample at a pixel. */
const chroma = (x: number, y: number): number => PIXELS * 1.25 + ((y >> 1) * SIZE) / 2 + (x >> 1);

/** Outlines of both lips in the FaceMesh topology. */
const LIPS = [
  ...[78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 95, 88, 178, 87, 14, 317, 402, 318, 324],
  ...[61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 146, 91, 181, 84, 17, 314, 405, 321, 375],
];

describe('mouth', () => {
  test('opens with `open` and with `jaw`, monotonically, from nothing', () => {
    for (const name of ['open', 'jaw'] as const) {
      const canvas = new Canvas(asset);
      const areas = Array.from({ length: 11 }, (_, i) =>
        canvas.show({ [name]: 1 }, i / 10).opening(),
      );
      assert.equal(areas[0], 0);
      // A pixel's worth of tolerance: the opening moves across the pixel grid as it grows.
      for (let i = 1; i < areas.length; i++) {
        assert.ok(areas[i]! >= areas[i - 1]! - 1, `${name}: ${areas.join(' ')}`);
      }
      assert.ok(areas[10]! > 60, `${name} opens visibly: ${areas.join(' ')}`);
    }
  });

  test('`press` closes the lips whatever the other channels are', () => {
    const canvas = new Canvas(asset);
    assert.ok(canvas.show(VISEMES.aa).opening() > 100);
    for (const shape of [
      { press: 1 },
      { ...VISEMES.aa, press: 1 },
      { ...VISEMES.oh, press: 1 },
      { press: 1, tuck: 1, upraise: 1 },
    ]) {
      assert.equal(canvas.show(shape).opening(), 0, JSON.stringify(shape));
    }
  });

  test('a crooked mouth is itself at rest, opens on both sides, and is less crooked then', () => {
    const { landmarks } = syntheticParts();
    // The line between the lips falls to the right by a tenth.
    for (const index of LIPS) {
      landmarks[index * 3 + 1]! += (landmarks[index * 3]! - AXIS) / 10;
    }
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ landmarks })));
    assert.deepEqual(canvas.show(VISEMES.rest).picture, syntheticParts().neutral);
    for (const [shape, least, most] of [
      [VISEMES.aa, 0.005, 0.08],
      [VISEMES.oh, -0.02, 0.02],
    ] as const) {
      canvas.show(shape);
      let [left, right, leftX, rightX, leftY, rightY] = [0, 0, 0, 0, 0, 0];
      canvas.picture.subarray(PIXELS * 1.25).forEach((v, i) => {
        const [x, y] = [2 * (i % (SIZE / 2)) + 0.5, 2 * Math.floor(i / (SIZE / 2))];
        if (v > 160 && x < AXIS) {
          [left, leftX, leftY] = [left + 1, leftX + x, leftY + y];
        } else if (v > 160) {
          [right, rightX, rightY] = [right + 1, rightX + x, rightY + y];
        }
      });
      assert.ok(left > 20 && right > 20, `${left} pixels left, ${right} right`);
      assert.ok(right / left > 0.6 && right / left < 1.7, `${left} pixels left, ${right} right`);
      const slope = (rightY / right - leftY / left) / (rightX / right - leftX / left);
      assert.ok(slope > least && slope < most, `the opening falls by ${slope}`);
    }
  });

  test('`tuck` shows a strip of teeth, far less than an open vowel', () => {
    const canvas = new Canvas(asset);
    const vowel = canvas.show(VISEMES.eh).opening();
    const bite = canvas.show(VISEMES.f).opening();
    assert.ok(bite > 0 && bite < 0.5 * vowel, `${bite} of ${vowel}`);
  });

  test('rounding narrows the opening, spreading widens it', () => {
    const width = (shape: object): number => {
      const canvas = new Canvas(asset).show({ open: 0.5, ...shape });
      const columns = new Set<number>();
      canvas.picture.subarray(PIXELS * 1.25).forEach((v, i) => {
        if (v > 180) {
          columns.add(i % (SIZE / 2));
        }
      });
      return columns.size;
    };
    assert.ok(width({ round: 1 }) < 0.75 * width({}));
    assert.ok(width({ wide: 1 }) > width({}));
  });

  test('a mouth that is wide at rest, as in a smile, is narrowed more when it rounds', () => {
    const narrowed = (scale: number): number => {
      const { landmarks, neutral } = syntheticParts();
      for (const index of LIPS) {
        landmarks[index * 3]! += (scale - 1) * (landmarks[index * 3]! - AXIS);
      }
      // A bar through the corner of the lips shows where it goes.
      const corner = Math.round(AXIS + 42 * scale);
      for (let y = 0; y < SIZE; y++) {
        neutral
          .fill(170, y * SIZE, (y + 1) * SIZE)
          .fill(20, y * SIZE + corner, y * SIZE + corner + 3);
      }
      const { picture } = new Canvas(
        new native.FaceAsset(syntheticAsset({ landmarks, neutral })),
      ).show({ round: 1 });
      const row = picture.subarray(310 * SIZE + 256 + 12, 311 * SIZE);
      return (row.findIndex((luma) => luma < 100) + 13.5) / (corner + 1 - AXIS);
    };
    const [usual, wide] = [narrowed(0.85), narrowed(1.25)];
    assert.ok(usual > 0.71 && usual < 0.8, `a usual mouth keeps ${usual} of its width`);
    assert.ok(wide > 0.5 && wide < 0.69, `a wide mouth keeps ${wide} of its width`);
  });

  test('the jaw takes the chin along by half of the opening at least', () => {
    const { neutral } = syntheticParts();
    neutral.fill(170, 0, PIXELS).fill(40, 384 * SIZE, 386 * SIZE);
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral })));
    const { picture } = canvas.show(VISEMES.aa);
    const rows = Array.from({ length: 130 }, (_, i) => 290 + i);
    const chin = rows.filter((y) => y > 375 && picture[y * SIZE + 256]! < 100)[0]! - 384;
    const opening = rows.filter((y) => picture[chroma(256, y)]! > 180).length;
    assert.ok(opening > 20 && chin > 0.5 * opening, `chin ${chin}, opening ${opening}`);
  });

  test('opened shows nothing of the dark line between closed lips', () => {
    const bright = [235, 128, 128] as const;
    const { neutral } = syntheticParts();
    neutral.fill(160, 0, PIXELS);
    for (let y = 319; y <= 321; y++) {
      neutral.fill(20, y * SIZE + AXIS - 39.5, y * SIZE + AXIS + 40.5);
    }
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          neutral,
          tints: { cavity: bright, gums: bright, tongue: bright, teeth: bright },
        }),
      ),
    );
    const dark = (shape: object): number =>
      canvas
        .show(shape)
        .picture.subarray(0, PIXELS)
        .reduce((count, luma) => count + (luma < 60 ? 1 : 0), 0);
    assert.ok(dark({}) > 200);
    for (const shape of [VISEMES.aa, VISEMES.eh, { jaw: 1, open: 1 }]) {
      assert.ok(dark(shape) < 60, `${JSON.stringify(shape)} ${dark(shape)}`);
    }
  });

  test('of a picture without colours has none', () => {
    const grey = [60, 128, 128] as const;
    const plain = syntheticParts().neutral.fill(128, PIXELS);
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          neutral: plain,
          tints: { cavity: grey, gums: grey, tongue: grey, teeth: grey },
        }),
      ),
    );
    for (const shape of [VISEMES.aa, VISEMES.th, VISEMES.sh, { jaw: 1, open: 1 }]) {
      assert.ok(
        canvas
          .show(shape)
          .picture.subarray(PIXELS)
          .every((value) => Math.abs(value - 128) <= 1),
        JSON.stringify(shape),
      );
    }
  });

  test('rounding draws in the cheeks beside the mouth, not the outline of the jaw', () => {
    const { picture } = new Canvas(asset).show({ round: 1 });
    const moved = (from: number, to: number): number => {
      let most = 0;
      for (let y = 312; y < 328; y++) {
        for (let x = Math.ceil(AXIS + from); x < AXIS + to; x++) {
          most = Math.max(most, Math.abs(picture[y * SIZE + x]! - parts.neutral[y * SIZE + x]!));
        }
      }
      return most;
    };
    assert.ok(
      moved(48, 60) > 10 && moved(80, 110) === 0,
      `${moved(48, 60)} beside, ${moved(80, 110)} beyond`,
    );
  });

  test('cheeks hollow for oo, folds deepen for ee, and the chin bunches for m', () => {
    const { neutral } = syntheticParts();
    neutral.fill(160, 0, PIXELS).fill(128, PIXELS);
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral })));
    /** Range of changes of luma in a box of the skin, beside the axis by `x`. */
    const changes = (shape: object, x: number, y: number): [number, number] => {
      const { picture } = canvas.show(shape);
      const seen = Array.from({ length: 24 * 24 }, (_, i) => {
        const at = (y + Math.floor(i / 24)) * SIZE + Math.floor(AXIS) + x + (i % 24);
        return picture[at]! - 160;
      });
      return [Math.min(...seen), Math.max(...seen)];
    };
    assert.deepEqual(changes({}, 60, 308), [0, 0]);
    assert.ok(changes(VISEMES.oo, 60, 308)[0] < -4, changes(VISEMES.oo, 60, 308).join());
    assert.ok(changes(VISEMES.ee, 44, 282)[0] < -2, changes(VISEMES.ee, 44, 282).join());
    const [low, high] = changes(VISEMES.m, -12, 336);
    assert.ok(high - low > 3, `${low} ${high}`);
  });

  test("upper teeth are lit in front, half at the canines, and lie in the lip's shadow", () => {
    const bright = 220;
    const inside = [40, 128, INSIDE] as const;
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          tints: { cavity: inside, gums: inside, tongue: inside, teeth: [bright, 128, INSIDE] },
        }),
      ),
    );
    const raised = { jaw: 0.5, open: 0.8, wide: 0.6, upraise: 1 };
    for (const shape of [VISEMES.aa, VISEMES.eh, { jaw: 0.54, open: 0.56, wide: 0.43 }, raised]) {
      const { picture } = canvas.show(shape);
      /** Rows of the opening in a column. */
      const open = (x: number): number[] =>
        Array.from({ length: 80 }, (_, i) => 290 + i).filter(
          (row) => picture[chroma(x, row)]! > 180,
        );
      /** Light of the teeth in a column, share of their own: the upper row, and the lower one. */
      const teeth = (x: number): { upper: number; lower: number } => {
        const rows = open(x);
        const light = (some: number[]): number =>
          (Math.max(...some.map((row) => picture[row * SIZE + x]!)) - 16) / (bright - 16);
        const half = Math.floor(rows.length / 2);
        return { upper: light(rows.slice(0, half)), lower: light(rows.slice(half)) };
      };
      const at = [258, 246, 266, 237, 275].map(teeth);
      const [front, ...sides] = at;
      const seen = `${JSON.stringify(shape)} ${JSON.stringify(at)}`;
      assert.ok(front!.upper > 0.68, seen);
      assert.ok(front!.lower < 0.92 * front!.upper && front!.lower > 0.45 * front!.upper, seen);
      const [incisors, canines] = [sides.slice(0, 2), sides.slice(2)];
      assert.ok(
        incisors.every(({ upper }) => upper > 0.7 * front!.upper),
        seen,
      );
      // A raised lip shades them less.
      const most = shape === raised ? 0.8 : 0.65;
      assert.ok(
        canines.every(({ upper }) => upper > 0.15 && upper < most * front!.upper),
        seen,
      );
      // Below a raised lip the light comes over several rows, not at once.
      const rows = open(258).map((row) => (picture[row * SIZE + 258]! - 16) / (bright - 16));
      assert.ok(shape !== raised || rows[1]! < 0.95 * front!.upper, rows.slice(0, 9).join(' '));
    }
  });

  test('upper and lower teeth do not meet: s and ee show a dark slit between them', () => {
    const bright = 220;
    const dark = [40, 128, INSIDE] as const;
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          tints: { cavity: dark, gums: dark, tongue: dark, teeth: [bright, 128, INSIDE] },
        }),
      ),
    );
    for (const shape of [VISEMES.ee, { ...VISEMES.ee, teeth: 1 }, { open: 0.5, teeth: 1 }]) {
      const { picture } = canvas.show(shape);
      const rows = Array.from({ length: 80 }, (_, i) => 290 + i)
        .filter((row) => picture[chroma(258, row)]! > 160)
        .map((row) => picture[row * SIZE + 258]!);
      const upper = rows.indexOf(Math.max(...rows));
      const slit = Math.min(...rows.slice(upper));
      const below = rows.slice(upper + rows.slice(upper).indexOf(slit));
      const seen = `${JSON.stringify(shape)} ${rows.join(' ')}`;
      assert.ok(slit < 0.5 * rows[upper]!, seen);
      assert.ok(Math.max(...below) < 0.95 * rows[upper]!, seen);
    }
  });

  test('puckered lips turn dark inside over several rows', () => {
    const lip = 150;
    const { neutral } = syntheticParts();
    neutral.fill(lip, 0, PIXELS).fill(128, PIXELS);
    const black = [20, 128, 128] as const;
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          neutral,
          tints: { cavity: black, gums: black, tongue: black, teeth: black },
        }),
      ),
    );
    const { picture } = canvas.show({ ...VISEMES.oh, round: 1 });
    const rows = Array.from({ length: 60 }, (_, i) => picture[(290 + i) * SIZE + 256]!);
    const steps = rows.slice(1).map((luma, i) => Math.abs(luma - rows[i]!));
    const darkest = Math.min(...rows);
    assert.ok(darkest < 0.3 * lip, `${darkest}`);
    assert.ok(Math.max(...steps) < 0.5 * (lip - darkest), rows.join(' '));
    const between = rows.filter((luma) => luma > darkest + 12 && luma < 0.6 * lip);
    assert.ok(between.length >= 4, rows.join(' '));
  });

  test('a wide vowel shows a tongue, lighter than the dark behind it and round at its sides', () => {
    const dark = [24, 128, INSIDE] as const;
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          tints: { cavity: dark, gums: dark, tongue: [120, 128, INSIDE], teeth: dark },
        }),
      ),
    );
    const { picture } = canvas.show(VISEMES.aa);
    /** Luma down a column of the opening: its darkest in the upper half, its lightest below. */
    const column = (x: number): { gap: number; tongue: number } => {
      const rows = Array.from({ length: 80 }, (_, i) => 290 + i)
        .filter((row) => picture[chroma(x, row)]! > 180)
        .map((row) => picture[row * SIZE + x]!);
      const half = Math.floor(rows.length / 2);
      return { gap: Math.min(...rows.slice(0, half)), tongue: Math.max(...rows.slice(half)) };
    };
    const [front, left, right] = [column(256), column(230), column(282)];
    const seen = JSON.stringify([front, left, right]);
    assert.ok(front.tongue > 2.6 * front.gap, seen);
    assert.ok(left.tongue < 0.85 * front.tongue && right.tongue < 0.85 * front.tongue, seen);
  });

  test('a baby has no teeth', () => {
    const bright = [230, 128, INSIDE] as const;
    const dark = [30, 128, 128] as const;
    const brightest = (chin: number): number => {
      const { landmarks } = syntheticParts();
      for (let i = 0; i < landmarks.length; i += 3) {
        // The lower part of the face is short in a baby: rows below the eyes come nearer to them.
        landmarks[i + 1] = 220 + (landmarks[i + 1]! - 220) * chin;
      }
      const { picture } = new Canvas(
        new native.FaceAsset(
          syntheticAsset({
            landmarks,
            tints: { cavity: dark, gums: bright, tongue: dark, teeth: bright },
          }),
        ),
      ).show(VISEMES.ee);
      let count = 0;
      for (const v of picture.subarray(PIXELS * 1.25)) {
        count += v > 170 ? 1 : 0;
      }
      return count;
    };
    assert.ok(brightest(1) > 20, `${brightest(1)} of an adult`);
    assert.equal(brightest(0.6), 0);
  });

  test('the inside has the grain and the black of the portrait', () => {
    const grey = [90, 128, 128] as const;
    const tints = { cavity: grey, gums: grey, tongue: grey, teeth: grey };
    /** Luma of the middle of an opened mouth in a picture that is all of one luma, but for noise. */
    const inside = (luma: number, noise: number): number[] => {
      const { neutral } = syntheticParts();
      let state = 1;
      for (let i = 0; i < PIXELS; i++) {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        neutral[i] = luma + noise * (state / 2 ** 31 - 1);
      }
      const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, tints })));
      const { picture } = canvas.show(VISEMES.aa);
      return Array.from({ length: 20 * 12 }, (_, i) => {
        const [x, y] = [246 + (i % 20), 322 + Math.floor(i / 20)];
        return picture[y * SIZE + x]!;
      });
    };
    const rough = (values: number[]): number =>
      values.reduce((sum, v, i) => sum + (i % 20 ? Math.abs(v - values[i - 1]!) : 0), 0) /
      values.length;
    const mean = (values: number[]): number => values.reduce((sum, v) => sum + v) / values.length;
    const [clean, grainy, dark] = [inside(120, 0), inside(120, 7), inside(30, 0)];
    assert.ok(
      rough(grainy) > rough(clean) + 1.5,
      `grain: ${rough(clean).toFixed(2)}, ${rough(grainy).toFixed(2)}`,
    );
    assert.ok(mean(clean) > mean(dark) + 8, `${mean(clean)} in haze, ${mean(dark)}`);
  });

  test('wrinkled skin has darker teeth, and opens less', () => {
    /** A face of plain skin with wrinkles of some depth on forehead and cheeks. */
    const mouth = (depth: number): { teeth: number; opening: number } => {
      const { neutral } = syntheticParts();
      neutral.fill(150, 0, PIXELS).fill(128, PIXELS);
      for (let y = 100; y < 300; y++) {
        neutral.fill(150 - (y % 11 < 3 ? depth : 0), y * SIZE, (y + 1) * SIZE);
      }
      const { landmarks } = syntheticParts();
      for (const [index, x] of [
        [50, -70],
        [280, 70],
      ] as const) {
        landmarks[index * 3] = AXIS + x;
      }
      const inside = [60, 128, INSIDE] as const;
      const canvas = new Canvas(
        new native.FaceAsset(
          syntheticAsset({
            neutral,
            landmarks,
            tints: { cavity: inside, gums: inside, tongue: inside, teeth: [220, 128, 128] },
          }),
        ),
      );
      const { picture } = canvas.show(VISEMES.s);
      const teeth = Math.max(...picture.subarray(321 * SIZE + 240, 321 * SIZE + 272));
      return { teeth, opening: canvas.show(VISEMES.aa).opening() };
    };
    const [young, old] = [mouth(0), mouth(24)];
    assert.ok(
      old.teeth < 0.92 * young.teeth && old.opening < 0.97 * young.opening,
      JSON.stringify([young, old]),
    );
  });

  test('a face that allows less rounding gets less', () => {
    const limited = new native.FaceAsset(
      syntheticAsset({ limits: { ...parts.limits, round: 0.5 } }),
    );
    assert.deepEqual(
      new Canvas(limited).show({ round: 1 }).picture,
      new Canvas(asset).show({ round: 0.5 }).picture,
    );
  });
});
