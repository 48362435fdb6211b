// The shape and the colours of the lips in the renderer's pictures, measured from their pixels.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  FACE_OVAL,
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
  chroma,
  INSIDE,
  poseOf,
  SIZE,
  syntheticAsset,
  syntheticParts,
} from './synthetic-face.ts';

const PIXELS = SIZE * SIZE;

describe('lips', () => {
  test('puckered lips are narrow, full and almost shut, and skin is bare beside moved corners', () => {
    const [skin, lip, line, red] = [170, 110, 40, 150];
    const { neutral } = syntheticParts();
    neutral.fill(skin, 0, PIXELS).fill(128, PIXELS);
    for (let y = 300; y < 340; y++) {
      for (let x = 180; x < 332; x++) {
        const [u, v] = [x - AXIS, y - 320];
        const onLip = v > (u * u) / 176 - 11 && v < 14 - (u * u) / 138 && Math.abs(u) < 44;
        const onLine = Math.abs(v) < 1.5 && Math.abs(u) < 62;
        neutral[y * SIZE + x] = onLine ? line : onLip ? lip : skin;
        // The lips' colour is smeared beyond their corners.
        const onSmear = Math.abs(v) < 5 && Math.abs(u) < 58;
        neutral[chroma(x, y)] = onLip || onSmear ? red : 128;
      }
    }
    const inside = [60, 128, INSIDE] as const;
    const canvas = new Canvas(
      new native.FaceAsset(
        syntheticAsset({
          neutral,
          // The wet insides of the lips have the colour of gums.
          tints: { cavity: inside, gums: [lip, 128, red], tongue: inside, teeth: inside },
        }),
      ),
    );
    const measure = (
      shape: object,
    ): { width: number; lips: number; gap: number; line: number; red: number } => {
      const { picture } = canvas.show(shape);
      const gapAt = (x: number, y: number): boolean =>
        picture[chroma(x, y)]! > 128 + 0.3 * (INSIDE - 128);
      const dark = (x: number, y: number): boolean => picture[y * SIZE + x]! < (skin + lip) / 2;
      const middle = Array.from({ length: 90 }, (_, i) => 280 + i);
      const gap = middle.filter((y) => gapAt(256, y)).length;
      const columns = Array.from({ length: 100 }, (_, i) => 206 + i).filter(
        (x) => middle.filter((y) => dark(x, y)).length > 4,
      );
      const width = columns.at(-1)! - columns[0]!;
      const beyond = Array.from({ length: 14 }, (_, i) => columns.at(-1)! + 8 + i);
      return {
        width,
        gap,
        lips: middle.filter((y) => dark(256, y)).length - gap,
        line: skin - Math.min(...beyond.flatMap((x) => middle.map((y) => picture[y * SIZE + x]!))),
        red: Math.max(...beyond.flatMap((x) => middle.map((y) => picture[chroma(x, y)]!))) - 128,
      };
    };
    const rest = measure({});
    const pucker = measure(VISEMES.oo);
    const eyes = 136;
    assert.ok(rest.line > 100 && rest.red > 18, `at rest: ${JSON.stringify(rest)}`);
    assert.ok(pucker.width < 0.75 * rest.width, `width ${pucker.width} of ${rest.width}`);
    assert.ok(pucker.lips > 1.15 * rest.lips, `lips ${pucker.lips} of ${rest.lips}`);
    assert.ok(pucker.gap > 0 && pucker.gap <= 0.08 * eyes, `opening ${pucker.gap}`);
    for (const shape of [
      VISEMES.oo,
      VISEMES.oh,
      VISEMES.aa,
      { jaw: 0.34, open: 0.38, round: 0.43 },
    ]) {
      const beside = measure(shape);
      const seen = `${JSON.stringify(shape)} ${JSON.stringify(beside)}`;
      assert.ok(beside.line < 40 && beside.red < 12, `beside the corners: ${seen}`);
    }

    // Lips go round the ends of an opening: there, too, there is lip beside it.
    const { picture } = canvas.show(VISEMES.aa);
    const opening = Array.from({ length: 100 }, (_, i) => 206 + i).filter((x) =>
      Array.from({ length: 90 }, (_, i) => 280 + i).some(
        (y) => picture[chroma(x, y)]! > 128 + 0.3 * (INSIDE - 128),
      ),
    );
    for (const x of [opening[0]! - 6, opening.at(-1)! + 6]) {
      const lips = Array.from({ length: 90 }, (_, i) => 280 + i).filter(
        (y) => picture[y * SIZE + x]! < (skin + lip) / 2,
      );
      assert.ok(lips.length >= 19, `${lips.length} rows of lip beside the opening, at ${x}`);
    }

    const pressed = measure(VISEMES.m);
    assert.ok(pressed.lips < 0.85 * rest.lips && pressed.gap === 0, `m: ${pressed.lips} pixels`);
    const bite = measure(VISEMES.f);
    assert.ok(
      bite.lips < 0.75 * rest.lips && bite.gap > 0 && bite.gap <= 0.08 * eyes,
      `f: lips ${bite.lips} of ${rest.lips}, teeth ${bite.gap}`,
    );
    const [ee, s] = [measure(VISEMES.ee).width, measure(VISEMES.s).width];
    assert.ok(ee > rest.width + 0.12 * eyes, `ee: ${ee} of ${rest.width}`);
    assert.ok(s > rest.width + 0.06 * eyes, `s: ${s} of ${rest.width}`);
  });

  test.each([
    ['dark', 'at', 60, 0],
    ['bright', 'outside', 230, 16],
  ])(
    '%s background stays out of the far corner, landmarks %s its edge',
    (...[, , background, off]) => {
      const [skin, line, red] = [170, 90, 150];
      const { neutral, landmarks } = syntheticParts();
      // The outline is closer to the corner than skin is replaced beside that of a face seen from ahead.
      const outline = 57;
      for (const index of FACE_OVAL) {
        const x = landmarks[index * 3]! - AXIS;
        landmarks[index * 3] = AXIS + Math.min(x, outline + off);
      }
      neutral.fill(128, PIXELS);
      for (let y = 0; y < SIZE; y++) {
        for (let x = 0; x < SIZE; x++) {
          const [u, v] = [x - AXIS, y - 320];
          const onLine = Math.abs(v) < 1.5 && Math.abs(u) < 50;
          neutral[y * SIZE + x] = u > outline ? background : onLine ? line : skin;
          neutral[chroma(x, y)] = u > outline ? 110 : onLine && Math.abs(u) < 44 ? red : 128;
        }
      }
      const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, landmarks })));
      const rows = Array.from({ length: 40 }, (_, i) => 300 + i);
      const luma = (from: number, to: number): number[] =>
        rows.flatMap((y) => [
          ...canvas.picture.subarray(y * SIZE + AXIS + 0.5 + from, y * SIZE + AXIS + 0.5 + to),
        ]);
      for (const shape of [VISEMES.oo, VISEMES.oh, VISEMES.aa]) {
        canvas.show(shape);
        const seen = JSON.stringify(shape);
        const behind = luma(outline + off + 3, outline + 26);
        const different = behind.map((value) => Math.abs(value - background));
        assert.ok(Math.max(...different) <= 3, `${Math.max(...different)} behind: ${seen}`);
        // The corner of the mouth itself is dark.
        const cheek = luma(48 - off / 2, outline - 5 - off / 2).map(
          (value) => (value - skin) * Math.sign(background - skin),
        );
        assert.ok(
          Math.max(...cheek) <= (shape === VISEMES.aa ? 36 : 18),
          `${Math.max(...cheek)} on the cheek: ${seen}`,
        );
      }
    },
  );

  test.each([
    ['whose far half of the lips is shorter', 14, 200],
    ['whose outline is beside the far corner', 0, 50],
  ])('the far corner of the mouth moves less on a head %s', (_, middle, outline) => {
    const [skin, lip, mark] = [170, 110, 230];
    const { neutral, landmarks } = syntheticParts();
    const half = 44;
    for (const index of FACE_OVAL) {
      landmarks[index * 3] = Math.min(landmarks[index * 3]!, AXIS + outline);
    }
    for (const index of [...UPPER_OUTER, ...UPPER_INNER, ...LOWER_INNER, ...LOWER_OUTER]) {
      const x = landmarks[index * 3]! - AXIS;
      landmarks[index * 3]! += middle * (1 - (x / half) ** 2);
    }
    neutral.fill(skin, 0, PIXELS).fill(128, PIXELS);
    for (let y = 280; y < 340; y++) {
      for (let x = 180; x < 332; x++) {
        const [u, v] = [x - AXIS, y - 320];
        if (Math.abs(u) < half && v > (u * u) / 176 - 11 && v < 14 - (u * u) / 138) {
          neutral[y * SIZE + x] = lip;
        } else if (Math.abs(u - middle) < 2 && v < -10) {
          neutral[y * SIZE + x] = mark;
        }
      }
    }
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, landmarks })));
    const measure = (shape: object): { left: number; right: number; mark: number } => {
      const { picture } = canvas.show(shape);
      const xs = Array.from({ length: 140 }, (_, i) => 186 + i);
      const dark = xs.filter((x) =>
        Array.from({ length: 60 }, (_, i) => picture[(300 + i) * SIZE + x]!).some(
          (luma) => luma < (skin + lip) / 2,
        ),
      );
      const bright = xs.filter((x) => picture[303 * SIZE + x]! > (skin + mark) / 2);
      const mean = bright.reduce((sum, x) => sum + x, 0) / bright.length;
      return { left: dark[0]!, right: dark.at(-1)!, mark: mean };
    };
    const rest = measure({});
    for (const shape of [VISEMES.oo, VISEMES.oh]) {
      const round = measure(shape);
      const [near, far] = [round.left - rest.left, rest.right - round.right];
      const seen = `${JSON.stringify(shape)}: near ${near}, far ${far}, ${JSON.stringify(round)}`;
      assert.ok(near > 1.2 * far && far > 2, seen);
      assert.ok(Math.abs(round.mark - rest.mark) < 1, `${rest.mark} ${seen}`);
    }
  });

  test.each([
    ['as pale as the skin', 170],
    ['behind a black outline', 70],
  ])('a thin upper lip %s becomes full and red when it protrudes', (_, upper) => {
    const [skin, red, y] = [140, 160, 320];
    const { neutral, landmarks } = syntheticParts();
    neutral
      .fill(170, 0, PIXELS)
      .fill(128, PIXELS)
      .fill(skin, PIXELS * 1.25);
    for (let row = y - 9; row < y; row++) {
      neutral.fill(upper, row * SIZE + AXIS - 39.5, row * SIZE + AXIS + 40.5);
    }
    // The outline of the upper lip is 8 pixels above the seam; only the lower lip has a colour.
    for (const index of [61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291]) {
      landmarks[index * 3 + 1] = y - (8 / 11) * (y - landmarks[index * 3 + 1]!);
    }
    for (let v = y; v < y + 14; v += 2) {
      const half = 44 * Math.sqrt(1 - (v - y) / 14);
      const [from, to] = [AXIS - half, AXIS + half].map((x) => Math.round(x / 2));
      const row = PIXELS * 1.25 + (v / 2) * (SIZE / 2);
      neutral.fill(red, row + from!, row + to!);
    }
    const limits = { ...syntheticParts().limits, shift: 12 };
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, landmarks, limits })));
    /** V at x down to the mouth's opening, or all of it where there is none. */
    const aboveOpening = (picture: Uint8Array, x: number): number[] => {
      const column = Array.from({ length: 40 }, (_, i) => picture[chroma(x, 290 + 2 * i)]!);
      const opening = column.findIndex((v) => v > red + 15);
      return opening < 0 ? column : column.slice(0, opening);
    };
    /** Rows of luma in the middle that are as red as a lip, above the opening or the seam. */
    const redRows = (shape: object): number => {
      const column = aboveOpening(canvas.show(shape).picture, 256);
      const above = column.length < 40 ? column : column.slice(0, (y - 290) / 2);
      return 2 * above.filter((v) => v > (skin + red) / 2).length;
    };
    assert.equal(redRows({}), 0);
    const rows = redRows(VISEMES.oo);
    assert.ok(rows >= 8 && rows <= 20, `${rows} rows of red above the opening`);
    // However the head lies on the grid of blocks, the red has no hole.
    for (let shiftY = -10; shiftY <= 10; shiftY++) {
      const { picture } = canvas.show(VISEMES.oo, 1, poseOf({ shiftY }));
      for (let x = 236; x <= 276; x += 4) {
        const lip = aboveOpening(picture, x)
          .map((v) => (v > (skin + red) / 2 ? 'r' : '-'))
          .join('');
        assert.match(lip, /^-*r*-*$/, `${lip} at ${x}, the head ${shiftY} lower`);
      }
    }
  });

  test('lips as pale as the skin are redder when they protrude, and dark skin keeps its own', () => {
    const mostRed = (luma: number, shape: object): number => {
      const { neutral } = syntheticParts();
      neutral
        .fill(luma, 0, PIXELS)
        .fill(128, PIXELS)
        .fill(142, PIXELS * 1.25);
      const inside = [60, 128, 128] as const;
      const gums = [90, 120, 150] as const;
      const { picture } = new Canvas(
        new native.FaceAsset(
          syntheticAsset({
            neutral,
            tints: { cavity: inside, gums, tongue: inside, teeth: inside },
          }),
        ),
      ).show(shape);
      const lip = [304, 306, 308, 310].map((y) => picture[chroma(256, y)]!);
      return Math.max(...lip);
    };
    assert.equal(mostRed(180, {}), 142);
    assert.ok(mostRed(180, VISEMES.oo) >= 146, `${mostRed(180, VISEMES.oo)}`);
    assert.ok(mostRed(90, VISEMES.oo) <= 143, `${mostRed(90, VISEMES.oo)}`);
  });

  test('are in shadow beside an opening, the upper one more, and nowhere else', () => {
    const { neutral } = syntheticParts();
    neutral.fill(150, 0, PIXELS).fill(128, PIXELS);
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral })));
    const { picture } = canvas.show(VISEMES.aa);
    const column = Array.from({ length: 90 }, (_, i) => picture[(270 + i) * SIZE + 256]!);
    const open = column.flatMap((_, i) => (picture[chroma(256, 270 + i)]! > 180 ? [i] : []));
    const [first, last] = [open[0]!, open.at(-1)!];
    // Rows of chroma are two rows high, and edges a pixel wide.
    const [above, below] = [column[first - 2]!, column[last + 3]!];
    const seen = `${column.join(' ')} from ${first} to ${last}`;
    assert.ok(above < 146 && above < column[first - 5]! - 2, seen);
    assert.ok(below < 149 && below > above && below < column[last + 6]!, seen);
    assert.ok(
      column[first - 14]! >= 148 && canvas.show({}).picture[310 * SIZE + 256] === 150,
      seen,
    );
  });
});
