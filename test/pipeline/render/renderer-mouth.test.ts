// Properties of the mouth in the renderer's pictures, measured from their pixels.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { FACE_OVAL } from '../../../src/jobs/face/detect/landmarks.ts';
import { mean } from '../../../src/jobs/face/imaging/colour.ts';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import {
  AXIS,
  Canvas,
  chroma,
  SIZE,
  syntheticAsset,
  syntheticParts,
  assertSamePicture,
} from './synthetic-face.ts';

const parts = syntheticParts();
const asset = new native.FaceAsset(syntheticAsset());
const PIXELS = SIZE * SIZE;

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
    assertSamePicture(canvas.show(VISEMES.rest).picture, syntheticParts().neutral);
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

  test('below smiling eyes a face that smiled broadly speaks with a smile', () => {
    /** Columns of the opening, and how far its ends lie above its middle, chroma pixels. */
    const seen = (squint: number): { width: number; lift: number } => {
      const { landmarks, limits } = syntheticParts();
      for (const [top, bottom] of [
        [159, 145],
        [386, 374],
      ] as const) {
        const middle = (landmarks[top * 3 + 1]! + landmarks[bottom * 3 + 1]!) / 2;
        for (const index of [top, bottom]) {
          landmarks[index * 3 + 1] = middle + squint * (landmarks[index * 3 + 1]! - middle);
        }
      }
      const { picture } = new Canvas(
        new native.FaceAsset(syntheticAsset({ landmarks, limits: { ...limits, open: 0.8 } })),
      ).show(VISEMES.aa);
      const rows = new Map<number, number[]>();
      picture.subarray(PIXELS * 1.25).forEach((v, i) => {
        if (v > 180) {
          const column = i % (SIZE / 2);
          rows.set(column, [...(rows.get(column) ?? []), Math.floor(i / (SIZE / 2))]);
        }
      });
      const columns = [...rows.keys()].toSorted((a, b) => a - b);
      const middle = (column: number): number => mean(rows.get(column)!);
      return {
        width: columns.length,
        lift:
          middle(columns[columns.length >> 1]!) - mean([columns[1]!, columns.at(-2)!].map(middle)),
      };
    };
    const [calm, smiling] = [seen(2), seen(0.5)];
    const figures = JSON.stringify([calm, smiling]);
    assert.ok(smiling.width > 1.05 * calm.width, figures);
    assert.ok(smiling.lift > calm.lift + 1, figures);
  });

  test('a mouth that is wide at rest, as in a smile, is narrowed more when it rounds', () => {
    const narrowed = (scale: number): number => {
      const { landmarks, neutral } = syntheticParts();
      for (const index of LIPS) {
        landmarks[index * 3]! += (scale - 1) * (landmarks[index * 3]! - AXIS);
      }
      // A bar through the corner of the lips shows where it goes. A dark one would be taken for a
      // shadow of the mouth at rest.
      const corner = Math.round(AXIS + 42 * scale);
      for (let y = 0; y < SIZE; y++) {
        neutral
          .fill(170, y * SIZE, (y + 1) * SIZE)
          .fill(250, y * SIZE + corner, y * SIZE + corner + 3);
      }
      const { picture } = new Canvas(
        new native.FaceAsset(syntheticAsset({ landmarks, neutral })),
      ).show({ round: 1 });
      const row = picture.subarray(310 * SIZE + 256 + 12, 311 * SIZE);
      return (row.findIndex((luma) => luma > 210) + 13.5) / (corner + 1 - AXIS);
    };
    const [usual, wide] = [narrowed(0.85), narrowed(1.25)];
    assert.ok(usual > 0.71 && usual < 0.8, `a usual mouth keeps ${usual} of its width`);
    assert.ok(wide > 0.5 && wide < 0.71, `a wide mouth keeps ${wide} of its width`);
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
    // The back of the tongue is dark whatever its colour.
    for (const shape of [VISEMES.aa, VISEMES.eh, { jaw: 1, open: 1 }]) {
      assert.ok(dark(shape) < 90, `${JSON.stringify(shape)} ${dark(shape)}`);
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

  test('the jaw of a turned head goes down along all of its near side, ever less to the ear', () => {
    const fallen = (wider: number): number[] => {
      const { neutral, landmarks } = syntheticParts();
      for (const index of FACE_OVAL) {
        const x = landmarks[index * 3]! - AXIS;
        landmarks[index * 3] = AXIS + (x < 0 ? wider * x : x);
      }
      neutral.fill(170, 0, PIXELS).fill(40, 384 * SIZE, 386 * SIZE);
      const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, landmarks })));
      const { picture } = canvas.show(VISEMES.aa);
      return [0, 50, 80, 105, 125].map((away) => {
        const x = 256 - away;
        const rows = Array.from({ length: 50 }, (_, i) => 380 + i);
        return rows.find((y) => picture[y * SIZE + x]! < 110)! - 384;
      });
    };
    const [ahead, turned] = [fallen(1), fallen(1.6)];
    const seen = JSON.stringify([ahead, turned]);
    assert.ok(
      turned.every((down, i) => i === 0 || down <= turned[i - 1]!),
      seen,
    );
    assert.ok(turned[0]! - ahead[0]! <= 1 && turned[3]! > ahead[3]! + 1, seen);
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
      moved(48, 60) > 10 && moved(80, 110) <= 1,
      `${moved(48, 60)} beside, ${moved(80, 110)} beyond`,
    );
  });

  test('cheeks hollow for oo and aa, folds deepen for ee, and the chin bunches for m', () => {
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
    assert.ok(changes(VISEMES.aa, 56, 330)[0] < -4, changes(VISEMES.aa, 56, 330).join());
    assert.ok(changes(VISEMES.ee, 44, 282)[0] < -2, changes(VISEMES.ee, 44, 282).join());
    const [low, high] = changes(VISEMES.m, -12, 336);
    assert.ok(high - low > 3, `${low} ${high}`);
  });

  test('a face that allows less rounding gets less', () => {
    const limited = new native.FaceAsset(
      syntheticAsset({ limits: { ...parts.limits, round: 0.5 } }),
    );
    assertSamePicture(
      new Canvas(limited).show({ round: 1 }).picture,
      new Canvas(asset).show({ round: 0.5 }).picture,
    );
  });
});
