// Brows: they go with the head, move as a whole where the picture shows them, and fold nothing.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { EMOTIONS } from '../../../src/media/articulation.ts';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { AXIS, Canvas, poseOf, SIZE, syntheticAsset, syntheticParts } from './synthetic-face.ts';

/** What brows, lids and eyes take part in. */
const UPPER_FACE = { left: 170, right: 342, top: 170, bottom: 250 } as const;
/** Frames after which an emotion is reached. */
const REACHED = 60;

test('a head that moves takes its raised brows along', () => {
  const [shiftX, shiftY] = [4, -6];
  const { limits } = syntheticParts();
  const asset = new native.FaceAsset(syntheticAsset({ limits: { ...limits, shift: 12 } }));
  const still = new Canvas(asset).show(VISEMES.rest, 1, poseOf({ brow: 1 })).picture;
  const low = new Canvas(asset).show(VISEMES.rest).picture;
  const moved = new Canvas(asset).show(
    VISEMES.rest,
    1,
    poseOf({ brow: 1, shiftX, shiftY }),
  ).picture;
  let [differs, raised, count] = [0, 0, 0];
  for (let row = UPPER_FACE.top; row < UPPER_FACE.bottom; row++) {
    for (let column = UPPER_FACE.left; column < UPPER_FACE.right; column++) {
      const at = row * SIZE + column;
      differs += Math.abs(moved[at + shiftY * SIZE + shiftX]! - still[at]!);
      raised += Math.abs(low[at]! - still[at]!);
      count++;
    }
  }
  assert.ok(raised / count > 2, `brows that rise change the picture by ${raised / count}`);
  assert.ok(differs / count < 0.3, `by ${differs / count} where the head has moved`);
});

/** Columns of the middle of the left brow and of its inner third. */
const COLUMNS = [200, 214] as const;

/** A face with flat skin, and brows of these rows. */
function drawn(top: number, bottom: number): Canvas {
  const { neutral } = syntheticParts();
  for (let row = 0; row < 211; row++) {
    for (let column = 0; column < SIZE; column++) {
      const from = Math.abs(column - AXIS);
      const isBrow = row >= top && row < bottom && from > 20 && from < 80;
      neutral[row * SIZE + column] = isBrow ? 50 : 160;
    }
  }
  return new Canvas(new native.FaceAsset(syntheticAsset({ neutral })));
}

/** The first dark row of a column of the picture, and how many are dark. */
function browOf({ picture }: Canvas, column: number): { top: number; rows: number } {
  const dark: number[] = [];
  for (let row = 160; row < 212; row++) {
    if (picture[row * SIZE + column]! < 105) {
      dark.push(row);
    }
  }
  return { top: dark[0]!, rows: dark.length };
}

test('brows that are lower than landmarks have them keep their thickness', () => {
  const [top, bottom] = [188, 203];
  const raised = drawn(top, bottom).show(VISEMES.rest, 1, poseOf({ brow: 1 }));
  for (const column of COLUMNS) {
    const brow = browOf(raised, column);
    assert.ok(brow.top < top - 1, `raised to ${brow.top}`);
    assert.ok(Math.abs(brow.rows - (bottom - top)) <= 1, `${brow.rows} rows when raised`);
  }
  for (const emotion of ['sad', 'angry'] as const) {
    const canvas = drawn(top, bottom);
    canvas.renderer.setEmotion(EMOTIONS.indexOf(emotion), 1);
    for (let frame = 0; frame < REACHED; frame++) {
      canvas.show(VISEMES.rest);
    }
    for (const column of COLUMNS) {
      const { rows } = browOf(canvas, column);
      assert.ok(Math.abs(rows - (bottom - top)) <= 3, `${rows} rows when ${emotion}`);
    }
  }
});

test('brows near the eyes rise less, since their lids would be stretched into streaks', () => {
  const [far, near] = [198, 205].map((bottom) => {
    const [rest, raised] = [0, 1].map((brow) =>
      browOf(drawn(188, bottom).show(VISEMES.rest, 1, poseOf({ brow })), COLUMNS[0]),
    );
    return rest!.top - raised!.top;
  });
  assert.ok(near! > 0 && near! < 0.8 * far!, `${near} of ${far} rows`);
});

test('an angry face, whose brows come down to its eyes, is nowhere folded', () => {
  const { neutral } = syntheticParts();
  for (let i = 0; i < SIZE * SIZE; i++) {
    neutral[i] = 10 + Math.round(0.45 * Math.floor(i / SIZE));
  }
  const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral })));
  canvas.renderer.setEmotion(EMOTIONS.indexOf('angry'), 1);
  for (let frame = 0; frame < REACHED; frame++) {
    canvas.show(VISEMES.rest);
  }
  for (let row = UPPER_FACE.top; row < 205; row++) {
    for (let column = UPPER_FACE.left; column < UPPER_FACE.right; column++) {
      const [here, below] = [row, row + 6].map((at) => canvas.picture[at * SIZE + column]!);
      assert.ok(below! >= here! - 1, `folded at ${column},${row}: ${here}, then ${below}`);
    }
  }
});
