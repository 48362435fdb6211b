// The teeth in the renderer's pictures: their light, their edges, and how much lips show of them.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { native } from '../../../src/native/addon.ts';
import { type Shape, VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { Canvas, chroma, INSIDE, SIZE, stripes, syntheticAsset } from './synthetic-face.ts';

describe('teeth', () => {
  test("upper teeth are lit in front, less at the canines, and lie in the lip's shadow", () => {
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
      /** Of the columns round `x` the one where a tooth is lightest: gaps differ from face to face. */
      const tooth = (x: number): { upper: number; lower: number } =>
        [-4, -2, 0, 2, 4].map((dx) => teeth(x + dx)).reduce((a, b) => (a.upper > b.upper ? a : b));
      const at = [...[256, 246, 266].map(tooth), ...[237, 275].map(teeth)];
      const [front, ...sides] = at;
      const seen = `${JSON.stringify(shape)} ${JSON.stringify(at)}`;
      assert.ok(front!.upper > 0.64, seen);
      // Lips that are not spread cover the lower row.
      const least = shape === raised ? 0.4 : 0;
      assert.ok(front!.lower < 0.92 * front!.upper && front!.lower > least * front!.upper, seen);
      const [incisors, canines] = [sides.slice(0, 2), sides.slice(2)];
      assert.ok(
        incisors.every(({ upper }) => upper > 0.66 * front!.upper),
        seen,
      );
      // A raised lip shades them less.
      const most = shape === raised ? 0.92 : 0.87;
      assert.ok(
        canines.every(({ upper }) => upper > 0.13 && upper < most * front!.upper),
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
          neutral: stripes(1),
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

  test('the edges of the upper teeth rise towards the corners', () => {
    const dark = [24, 128, INSIDE] as const;
    const tints = { cavity: dark, gums: dark, tongue: dark, teeth: [220, 60, INSIDE] } as const;
    const { picture } = new Canvas(new native.FaceAsset(syntheticAsset({ tints }))).show({
      open: 1,
      wide: 1,
      upraise: 1,
    });
    /** The row where the teeth of a column end: they alone are yellow. */
    const edge = (x: number): number => {
      const blue = (row: number): number => picture[chroma(x, row) - (SIZE * SIZE) / 4]!;
      const last = Array.from({ length: 20 }, (_, i) => 340 - 2 * i).find((row) => blue(row) < 95)!;
      return last + (2 * (95 - blue(last))) / (blue(last + 2) - blue(last));
    };
    const [left, middle, right] = [edge(236), edge(256), edge(276)];
    const rises = [middle - left, middle - right];
    assert.ok(Math.min(...rises) > 1.8, rises.join(', '));
  });

  test('lips that round and part show the edges of the upper teeth in the light', () => {
    const dark = [24, 128, INSIDE] as const;
    const tints = { cavity: dark, gums: dark, tongue: dark, teeth: [220, 128, INSIDE] } as const;
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ tints })));
    /** Luma of the lightest row in the middle of the opening. */
    const teeth = (shape: Shape): number => {
      const { picture } = canvas.show(shape);
      const rows = Array.from({ length: 80 }, (_, i) => 290 + i);
      return Math.max(
        ...rows
          .filter((row) => picture[chroma(256, row)]! > 180)
          .map((row) => picture[row * SIZE + 256]!),
      );
    };
    const [open, round] = [teeth(VISEMES.aa), teeth({ jaw: 0.4, open: 0.5, round: 0.5 })];
    assert.ok(round > 0.75 * open, `${round} of ${open}`);
  });
});
