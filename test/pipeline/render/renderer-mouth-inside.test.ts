// The inside of the mouth in the renderer's pictures: teeth, tongue and the dark behind them.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { FaceTints } from '../../../src/media/face-asset.ts';
import { native } from '../../../src/native/addon.ts';
import { type Shape, VISEMES } from '../../../src/pipeline/render/visemes.ts';
import {
  AXIS,
  Canvas,
  chroma,
  drawPupils,
  INSIDE,
  SIZE,
  stripes,
  syntheticAsset,
  syntheticParts,
} from './synthetic-face.ts';

const PIXELS = SIZE * SIZE;

describe('the inside of the mouth', () => {
  test('teeth are as soft as a portrait that was enlarged', () => {
    const dark = [40, 128, INSIDE] as const;
    const steepest = (edge: number): number => {
      const canvas = new Canvas(
        new native.FaceAsset(
          syntheticAsset({
            neutral: stripes(edge),
            tints: { cavity: dark, gums: dark, tongue: dark, teeth: [220, 128, INSIDE] },
          }),
        ),
      );
      const { picture } = canvas.show(VISEMES.eh);
      const inside = Array.from({ length: 80 }, (_, i) => 290 + i).filter(
        (row) => picture[chroma(258, row)]! > 200,
      );
      // The upper row's gaps, in the rows that show it.
      const steps = inside
        .slice(4, inside.length / 2)
        .flatMap((row) =>
          Array.from({ length: 40 }, (_, i) => row * SIZE + 236 + i).map((at) =>
            Math.abs(picture[at + 1]! - picture[at]!),
          ),
        );
      return Math.max(...steps);
    };
    const [sharp, soft] = [steepest(1), steepest(8)];
    assert.ok(sharp > 8 && soft < 0.5 * sharp, `${sharp} ${soft}`);
  });

  test('in a blurred portrait the whole mouth is as blurred', () => {
    const steepest = (edge: number): number => {
      const neutral = stripes(edge, 96);
      const { picture } = new Canvas(new native.FaceAsset(syntheticAsset({ neutral }))).show(
        VISEMES.aa,
      );
      const column = Array.from({ length: 80 }, (_, i) => picture[(290 + i) * SIZE + 258]!);
      return Math.max(...column.slice(1).map((luma, i) => Math.abs(luma - column[i]!)));
    };
    const [sharp, soft, blurred] = [steepest(1), steepest(4), steepest(14)];
    const seen = `${sharp} ${soft} ${blurred}`;
    assert.ok(sharp > 10 && soft < 0.75 * sharp && blurred < 0.35 * sharp, seen);
  });

  test('puckered lips turn dark inside over several rows', () => {
    const lip = 150;
    const { neutral } = syntheticParts();
    drawPupils(neutral.fill(lip, 0, PIXELS).fill(128, PIXELS));
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
    /** Luma down a column of the opening: its darkest in the upper half, the tongue's lightest. */
    const column = (x: number): { gap: number; tongue: number } => {
      const rows = Array.from({ length: 80 }, (_, i) => 290 + i)
        .filter((row) => picture[chroma(x, row)]! > 180)
        .map((row) => picture[row * SIZE + x]!);
      const half = Math.floor(rows.length / 2);
      return { gap: Math.min(...rows.slice(0, half)), tongue: Math.max(...rows.slice(half, -4)) };
    };
    const [front, left, right] = [column(256), column(230), column(282)];
    const seen = JSON.stringify([front, left, right]);
    assert.ok(front.tongue > 2.2 * front.gap, seen);
    assert.ok(left.tongue < 0.88 * front.tongue && right.tongue < 0.88 * front.tongue, seen);
  });

  describe('of drawings, whose skin has one tone', () => {
    const dark = [24, 128, INSIDE] as const;
    /** A face with hardly any noise, or none: less than the mouth's inside would share. */
    const shown = (isDrawn: boolean, tints: Partial<FaceTints>, shape: Shape): Uint8Array => {
      const { neutral } = syntheticParts();
      let state = 1;
      for (let i = 0; i < PIXELS; i++) {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        neutral[i] = 150 + (isDrawn ? 0 : state >>> 31);
      }
      drawPupils(neutral);
      const own = { cavity: dark, gums: dark, tongue: dark, teeth: dark, ...tints };
      const asset = new native.FaceAsset(syntheticAsset({ neutral, tints: own }));
      return new Canvas(asset).show(shape).picture;
    };

    /** Mean step of luma beyond a slope's, along some rows of the mouth's middle. */
    const rough = (picture: Uint8Array, rows: readonly number[]): number => {
      let sum = 0;
      for (const y of rows) {
        for (let x = 240; x < 272; x++) {
          const at = y * SIZE + x;
          sum += Math.abs(2 * picture[at]! - picture[at - 1]! - picture[at + 1]!);
        }
      }
      return sum / (32 * rows.length);
    };

    test('the tongue is lit at its front, not up to the teeth', () => {
      const picture = shown(true, { tongue: [140, 128, INSIDE] }, VISEMES.aa);
      const bottom = Array.from({ length: 80 }, (_, i) => 370 - i).find(
        (row) => picture[chroma(256, row)]! > 180,
      )!;
      const above = (rows: number): number => picture[(bottom - rows) * SIZE + 256]!;
      const [back, front] = [above(13), above(7)];
      assert.ok(front > 100 && back < 0.65 * front, `${back}, ${front}`);
    });

    test('the tongue has no relief', () => {
      const rows = Array.from({ length: 10 }, (_, i) => 328 + i);
      const [photographed, drawn] = [false, true].map((isDrawn) =>
        rough(shown(isDrawn, { tongue: [140, 128, INSIDE] }, VISEMES.aa), rows),
      ) as [number, number];
      assert.ok(photographed > 1.5 * drawn, `${photographed}, ${drawn}`);
    });

    test('teeth are one row with hardly a gap', () => {
      const [photographed, drawn] = [false, true].map((isDrawn) => {
        const picture = shown(isDrawn, { teeth: [220, 128, INSIDE] }, VISEMES.eh);
        const rows = Array.from({ length: 60 }, (_, i) => 300 + i).filter((y) =>
          picture.subarray(y * SIZE + 240, y * SIZE + 272).every((luma) => luma > 120),
        );
        const teeth = rows.filter((y) => picture[chroma(256, y)]! > 180);
        assert.ok(teeth.length > 2);
        return rough(picture, teeth);
      }) as [number, number];
      assert.ok(photographed > 1.5 * drawn, `${photographed}, ${drawn}`);
    });
  });

  test('faces of other proportions have other teeth, as even and nearly as light', () => {
    const tints = { teeth: [200, 128, INSIDE] } as const;
    /** Luma of the upper teeth of a face of some width. */
    const row = (width: number): number[] => {
      const parts = syntheticParts();
      for (const index of [234, 454]) {
        parts.landmarks[index * 3] = AXIS + (parts.landmarks[index * 3]! - AXIS) * width;
      }
      const asset = syntheticAsset({
        landmarks: parts.landmarks,
        tints: { ...parts.tints, ...tints },
      });
      const { picture } = new Canvas(new native.FaceAsset(asset)).show(VISEMES.ee);
      return Array.from(
        { length: 32 * 8 },
        (_, i) => picture[(318 + (i >> 5)) * SIZE + 240 + (i & 31)]!,
      );
    };
    const [one, same, other] = [row(1), row(1), row(1.06)];
    const mean = (values: number[]): number => values.reduce((sum, v) => sum + v) / values.length;
    const apart = mean(one.map((luma, i) => Math.abs(luma - other[i]!)));
    assert.deepEqual(one, same);
    assert.ok(apart > 3, `teeth differ by ${apart}`);
    const lighter = mean(other) / mean(one);
    assert.ok(lighter > 0.8 && lighter < 1.25, `lighter by ${lighter}`);
  });

  test('a baby has no teeth', () => {
    const bright = [230, 128, INSIDE] as const;
    const dark = [30, 128, 128] as const;
    const brightest = (chin: number, cheeks = 0, brows = 1): number => {
      const { landmarks } = syntheticParts();
      for (const [brow, lid] of [
        [105, 159],
        [334, 386],
      ]) {
        const y = landmarks[lid! * 3 + 1]!;
        landmarks[brow! * 3 + 1] = y + (landmarks[brow! * 3 + 1]! - y) * brows;
      }
      for (let i = 0; i < landmarks.length; i += 3) {
        // The lower part of the face is short in a baby: rows below the eyes come nearer to them.
        landmarks[i + 1] = 220 + (landmarks[i + 1]! - 220) * chin;
      }
      landmarks[234 * 3]! -= cheeks;
      landmarks[454 * 3]! += cheeks;
      const { picture } = new Canvas(
        new native.FaceAsset(
          syntheticAsset({
            landmarks,
            tints: { cavity: dark, gums: dark, tongue: dark, teeth: bright },
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
    assert.equal(brightest(0.6, 0, 1.75), 0);
    // A picture that was squeezed, or a head that is lowered, has brows as low as an adult's.
    for (const brows of [1, 1.45]) {
      const squeezed = brightest(0.6, 0, brows);
      assert.ok(squeezed > 20, `${squeezed} of an adult in a squeezed picture`);
    }
    // By the distance from the bridge of the nose to the chin, in distances between the eyes.
    const { landmarks } = syntheticParts();
    const distance = (a: number, b: number): number =>
      Math.hypot(
        landmarks[a * 3]! - landmarks[b * 3]!,
        landmarks[a * 3 + 1]! - landmarks[b * 3 + 1]!,
      );
    const adult = distance(168, 152) / distance(33, 263);
    const child = brightest(1.056 / adult, 60);
    assert.ok(child > 0.6 * brightest(1), `${child} of a child, ${brightest(1)} of an adult`);
  });

  test('the inside has the grain and the black of the portrait', () => {
    const grey = [90, 128, 128] as const;
    const tints = { cavity: grey, gums: grey, tongue: grey, teeth: grey };
    /** Luma of the middle of an opened mouth in a picture that is all of one luma, but for noise. */
    const inside = (luma: number, noise: number, isEnlarged = false): number[] => {
      const { neutral } = syntheticParts();
      let state = 1;
      for (let i = 0; i < PIXELS; i++) {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        neutral[i] = luma + noise * (state / 2 ** 31 - 1);
      }
      for (let i = 0; isEnlarged && i < PIXELS - SIZE - 1; i++) {
        const even = i - (i % 2) - (Math.floor(i / SIZE) % 2) * SIZE;
        neutral[i] = (neutral[even]! + neutral[even + 2 * (i % 2)]!) / 2;
      }
      const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, tints })));
      const { picture } = canvas.show(VISEMES.aa);
      return Array.from({ length: 20 * 12 }, (_, i) => {
        const [x, y] = [246 + (i % 20), 326 + Math.floor(i / 20)];
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
    // Enlarged noise hardly differs from pixel to pixel.
    const enlarged = inside(120, 40, true);
    assert.ok(rough(enlarged) > rough(clean) + 2, `enlarged: ${rough(enlarged)}`);
    assert.ok(mean(clean) > mean(dark) + 22, `${mean(clean)} in haze, ${mean(dark)}`);
  });

  test('a dark wall of a colour behind the head does not colour the inside', () => {
    const grey = [90, 128, 128] as const;
    const tints = { cavity: grey, gums: grey, tongue: grey, teeth: grey };
    /** Blue chroma in the middle of an opened mouth. */
    const inside = (wall: number): number => {
      const { neutral, matte } = syntheticParts();
      for (let i = 0; i < PIXELS; i++) {
        if (matte[i] === 0) {
          const [x, y] = [i % SIZE, Math.floor(i / SIZE)];
          neutral[i] = 30;
          neutral[PIXELS + (y >> 1) * (SIZE / 2) + (x >> 1)] = wall;
        }
      }
      const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, tints })));
      const { picture } = canvas.show(VISEMES.aa);
      return picture[PIXELS + 166 * (SIZE / 2) + 128]!;
    };
    const [before, blue] = [inside(128), inside(240)];
    assert.ok(blue <= before + 2, `u ${blue} before a blue wall, ${before} before a grey one`);
  });

  test('of line art it is ink and paper, with a line along the lips', () => {
    const { neutral } = syntheticParts();
    const [ink, paper] = [20, 235];
    for (let i = 0; i < PIXELS; i++) {
      neutral[i] = i % 60 < 4 ? ink : paper;
    }
    neutral.fill(128, PIXELS);
    const grey = [40, 128, 128] as const;
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          neutral,
          tints: { cavity: grey, gums: grey, tongue: [90, 128, 128], teeth: [200, 128, 128] },
        }),
      ),
    );
    const { picture } = canvas.show(VISEMES.eh);
    // Down the middle: the lip, a line, the teeth, the dark behind them.
    const column = Array.from({ length: 60 }, (_, i) => picture[(300 + i) * SIZE + 256]!);
    const first = column.findIndex((luma) => luma < 60);
    const teeth = column.findIndex((luma, i) => i > first && luma > 200);
    const behind = column.findIndex((luma, i) => i > teeth && luma < 60);
    assert.ok(first >= 0 && teeth > first && behind > teeth, column.join(' '));
    const between = column.filter((luma) => luma > 70 && luma < 200).length;
    assert.ok(between <= 10, column.join(' '));
  });
});
