// The mouth of a created face: lips that are closed, the colour of its teeth, limits after a smile.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import sharp from 'sharp';
import { decodeFaceAsset, type FaceLimits } from '../../../src/media/face-asset.ts';
import { LOWER_OUTER, UPPER_OUTER } from '../../../src/jobs/face/detect/landmarks.ts';
import { curveThrough } from '../../../src/jobs/face/imaging/curve.ts';
import { plane, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { castOf } from '../../../src/jobs/face/regions/lighting.ts';
import { mouthTints, teethColour } from '../../../src/jobs/face/regions/mouth-interior.ts';
import { completeUpperLip } from '../../../src/jobs/face/regions/upper-lip.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';
import { assertSound, at, create, describeFace } from './face-checks.ts';
import { drawnOver, laughing, portrait, smilingClosed } from './portraits.ts';

test('an open mouth is closed and gives teeth their colour, in colour and in black and white', async () => {
  const laugh = await laughing('mei', { x: 516, y: 598, halfWidth: 88 });
  for (const bytes of [laugh, await sharp(laugh).greyscale().png().toBuffer()]) {
    const { asset, warnings } = await create(bytes);
    assert.ok(warnings.includes('MOUTH_OPEN'));
    const parts = decodeFaceAsset(asset);
    assertSound(parts);
    assert.ok(parts.limits.round < 1, 'a smile that was closed must not be rounded fully');
    const [left, right] = [at(parts, 78), at(parts, 308)];
    const lip =
      parts.neutral[Math.round(at(parts, 17)[1] - 3) * 512 + Math.round(at(parts, 17)[0])]!;
    const outline = curveThrough(
      LOWER_OUTER.map((i) => ({ x: at(parts, i)[0], y: at(parts, i)[1] })),
    );
    for (let x = Math.ceil(left[0] + 6); x < right[0] - 6; x++) {
      const edge = outline(x) - 2;
      const y = Math.round(left[1] + ((right[1] - left[1]) * (x - left[0])) / (right[0] - left[0]));
      for (let dy = -4; y + dy < edge; dy++) {
        const luma = parts.neutral[(y + dy) * 512 + x]!;
        assert.ok(luma < lip + 60, `a tooth shows at ${x}, ${y + dy}`);
        assert.ok(luma > lip - 60, `the dark of the mouth shows at ${x}, ${y + dy}`);
      }
    }
    // They were painted as #eee6d8.
    assert.ok(parts.tints.teeth[0] > 190, `${parts.tints.teeth[0]}`);
  }
});

test('in black and white the mouth has no colour, and a narrow row of teeth is found', async () => {
  // The gaps between the teeth are dark: neither the median nor the mean of the opening is lighter
  // than the lips.
  const lines = Array.from(
    { length: 15 },
    (_, k) => `<rect x="${436 + 11 * k}" y="590" width="4" height="30" fill="#3a2a28"/>`,
  ).join('');
  const smile = await sharp(
    await laughing(
      'ava',
      { x: 514, y: 598, halfWidth: 88 },
      { lips: '#a89a96', inside: '#3a2a28', teeth: '#d8d0c8', height: 0.3, lip: 26 },
    ),
  )
    .composite([{ input: Buffer.from(`<svg width="1024" height="1024">${lines}</svg>`) }])
    .greyscale()
    .png()
    .toBuffer();
  const { parts, warnings } = await describeFace(smile);
  assert.ok(warnings.includes('MOUTH_OPEN'));
  for (const [name, [, u, v]] of Object.entries(parts.tints)) {
    assert.ok(Math.abs(u - 128) <= 1 && Math.abs(v - 128) <= 1, `${name} ${u} ${v}`);
  }
});

test('teeth get the light of the skin, in coloured light and in paint', async () => {
  const teethOf = async (r: number, g: number, b: number) =>
    (
      await describeFace(
        await portrait('ava')
          .recomb([
            [r, 0, 0],
            [0, g, 0],
            [0, 0, b],
          ])
          .png()
          .toBuffer(),
      )
    ).parts.tints.teeth;
  const [[, u, v], [, goldU], [, , rosyV]] = [
    await teethOf(1, 1, 1),
    await teethOf(1, 0.92, 0.5),
    await teethOf(1.15, 0.66, 0.8),
  ];
  assert.ok(
    goldU < u - 14 && rosyV > v + 11,
    `blue ${u}, ${goldU} in gold; red ${v}, ${rosyV} in pink`,
  );
});

/** Of a face in daylight. */
const LIGHT = { colour: 1, brightest: 200, grain: 2 };

test('the tongue of a dark face is darker than that of a light one, and never grey', () => {
  const tongue = (skin: Rgb, lip: Rgb): readonly number[] =>
    mouthTints({ ...LIGHT, skin, white: [225, 222, 215] }, undefined, lip).tongue;
  const light = tongue([222, 172, 150], [196, 112, 108]);
  const dark = tongue([104, 70, 56], [92, 66, 66]);
  assert.ok(dark[0]! < 0.85 * light[0]!, `luma ${dark[0]} and ${light[0]}`);
  // V above 128 in units of luma: how red it is.
  const red = (tint: readonly number[]): number => (tint[2]! - 128) / (tint[0]! - 16);
  assert.ok(red(dark) > 0.36, `${red(dark)} of the dark face`);
  assert.ok(red(light) > 0.36, `${red(light)} of the light one`);
});

test('a mouth is red in a pale, cool picture, and grey in black and white', async () => {
  // V above 128 in units of luma.
  const redOf = async (saturation: number): Promise<number> => {
    const cool = await portrait('ava')
      .modulate({ saturation })
      .linear([0.96, 1, 1.04], [0, 0, 0])
      .png()
      .toBuffer();
    const [luma, , v] = (await describeFace(cool)).parts.tints.tongue;
    return (v - 128) / (luma - 16);
  };
  const [pale, grey] = [await redOf(0.5), await redOf(0)];
  assert.ok(pale > 0.19, `${pale} of the pale picture`);
  assert.ok(Math.abs(grey) < 0.05, `${grey} of the grey one`);
});

test('painted teeth are paler than the skin in any light, and no brighter than dim eyes', async () => {
  const skin: Rgb = [200, 122, 84];
  const light = { ...LIGHT, skin, white: [196, 158, 112] as Rgb };
  const [luma, u, v] = mouthTints(light, undefined, [170, 90, 80]).teeth;
  const [skinU, skinV] = castOf(skin);
  assert.ok(128 - u < -0.65 * skinU * (luma - 16), `blue ${u}`);
  assert.ok(v - 128 < 0.45 * skinV * (luma - 16), `red ${v}`);
  // Dark skin in dim light: its eyes are rendered brighter than anything else. The skin bounds white.
  const amara = new URL('../../../models/faces/amara.webp', import.meta.url);
  const dim = await sharp(readFileSync(amara)).linear(0.82, 0).png().toBuffer();
  const { tints } = (await describeFace(dim)).parts;
  assert.ok(tints.teeth[0] < 145, `luma ${tints.teeth[0]}`);
  // Dark skin in shade, whose lips catch the light: teeth are brighter than those.
  const shaded = { ...LIGHT, skin: [85, 55, 43] as Rgb, white: [108, 103, 98] as Rgb };
  const shown = mouthTints(shaded, undefined, [108, 78, 74]).teeth;
  assert.ok(shown[0] > 1.3 * 85, `luma ${shown[0]}`);
});

test('teeth of a mouth that is hardly open are freed from the shadow of the lip', () => {
  const light = { ...LIGHT, skin: [210, 170, 150] as Rgb, white: [225, 222, 215] as Rgb };
  const lip: Rgb = [120, 80, 80];
  const lumaOf = (teeth: Rgb | undefined, height: number): number =>
    mouthTints(light, teeth, lip, height).teeth[0];
  const [shaded, pale]: Rgb[] = [
    [165, 155, 145],
    [250, 248, 240],
  ];
  assert.ok(lumaOf(shaded, 0.05) > 1.15 * lumaOf(shaded, 0.2), `${lumaOf(shaded, 0.05)}`);
  assert.equal(lumaOf(pale, 0.05), lumaOf(pale, 0.2), 'teeth that are in the light stay');
  assert.ok(lumaOf([200, 195, 185], 0.04) <= lumaOf(undefined, 1) + 1);
});

test('lips that are closed have two peaks, and end finely at the corners', async () => {
  // Drawn with one arch from corner to corner.
  const { parts } = await describeFace(
    await laughing('mei', { x: 516, y: 598, halfWidth: 88 }, { lip: 30 }),
  );
  const y = (index: number): number => at(parts, index)[1];
  for (const peak of [37, 267]) {
    assert.ok(y(0) > y(peak) + 0.3, `peak ${peak} ${y(peak)}, middle ${y(0)}`);
  }
  const thickness = (upper: number, lower: number): number => y(lower) - y(upper);
  for (const [upper, lower] of [
    [40, 91],
    [270, 321],
  ] as const) {
    assert.ok(
      thickness(upper, lower) < 0.72 * thickness(0, 17),
      `${thickness(upper, lower)} of ${thickness(0, 17)}`,
    );
  }
});

test('a closed smile has a red upper lip, however thin it was', async () => {
  const { parts } = await describeFace(
    await laughing('ava', { x: 514, y: 598, halfWidth: 88 }, { lips: '#b8403c', lip: 4 }),
  );
  const [x, y] = at(parts, 13);
  const red = (dx: number, dy: number): number =>
    parts.neutral[512 * 512 * 1.25 + Math.floor((y + dy) / 2) * 256 + Math.floor((x + dx) / 2)]!;
  const [upper, lower, skin] = [
    Math.max(...[-4, -3, -2].map((dy) => red(0, dy))),
    red(0, 8),
    red(0, -22),
  ];
  assert.ok(
    upper - skin > 0.5 * (lower - skin),
    `upper lip ${upper}, lower ${lower}, skin ${skin}`,
  );
});

test('an upper lip that a grin has drawn to nothing is given back, but not to a moustache', () => {
  const { landmarks } = syntheticParts();
  const [skin, red]: [Rgb, Rgb] = [
    [205, 160, 135],
    [190, 110, 105],
  ];
  /** Of the row 8 pixels above the seam, after an upper lip was completed in a face of skin. */
  const completed = (above: Rgb): { red: number; edge: number } => {
    const image = rgbImage(512, 512);
    for (let i = 0; i < 512 * 512; i++) {
      image.data.set(i < 320 * 512 ? above : skin, i * 3);
    }
    const points = landmarks.slice();
    for (const index of UPPER_OUTER) {
      points[index * 3 + 1] = 317;
    }
    completeUpperLip(image, points, red, 1);
    const at = (315 * 512 + 256) * 3;
    return { red: image.data[at]! - image.data[at + 1]!, edge: points[0 * 3 + 1]! };
  };
  const bare = completed(skin);
  assert.ok(bare.red > 60 && bare.edge < 316, JSON.stringify(bare));
  const hairy = completed([70, 50, 42]);
  assert.ok(hairy.red < 25 && hairy.edge === 317, JSON.stringify(hairy));
});

test('teeth that coloured light makes as red as the lips are still found', async () => {
  // Lips and teeth are equally red, as under a red lamp; the teeth are bluer.
  const { parts, warnings } = await describeFace(
    await laughing(
      'ava',
      { x: 514, y: 598, halfWidth: 88 },
      { lips: '#b5605a', inside: '#b476ae', teeth: '#b476ae', height: 0.2, lip: 60 },
    ),
  );
  assert.ok(warnings.includes('MOUTH_OPEN'));
  assertSound(parts);
  const [x, y] = at(parts, 14);
  const [u, lipU] = [0, 9].map(
    (dy) => parts.neutral[512 * 512 + Math.floor((y + dy) / 2) * 256 + Math.floor(x / 2)]!,
  );
  assert.ok(
    Math.abs(u! - lipU!) < 8,
    `something blue is left between the lips: ${u} against ${lipU}`,
  );
});

test('between dark lips nothing of the dark inside is left', async () => {
  // Thick lips: the landmarks do not reach the upper edge of the opening.
  const svg =
    '<path d="M424 596 Q516 520 608 596 Q516 760 424 596Z" fill="#7a4a42"/>' +
    '<path d="M440 598 Q516 562 592 598 Q516 690 440 598Z" fill="#472a24"/>';
  const { parts } = await describeFace(await drawnOver('mei', svg));
  const [x, y] = at(parts, 13);
  const luma = (dy: number): number =>
    Math.min(
      ...[-8, -4, 0, 4, 8].map(
        (dx) => parts.neutral[Math.round(y + dy) * 512 + Math.round(x) + dx]!,
      ),
    );
  const lip = luma(9);
  // The upper lip faces down: it is a sixth darker. The inside was half as light as the lips.
  for (const dy of [-7, -6, -5, -4, 4, 5, 6, 7]) {
    assert.ok(luma(dy) > lip - 18, `luma ${luma(dy)} at ${dy}, lip ${lip}`);
  }
});

test('lips that part over two teeth alone are closed', async () => {
  const parted =
    '<ellipse cx="514" cy="603" rx="84" ry="37" fill="#c0605c"/>' +
    '<path d="M440 602 Q514 581.6 588 602 Q514 622.4 440 602Z" fill="#b25656"/>' +
    '<rect x="496" y="591.8" width="34" height="17" rx="5" fill="#f0e8da"/>';
  const { parts, warnings } = await describeFace(await drawnOver('ava', parted));
  const [x, y] = at(parts, 13);
  let brightest = 0;
  for (let row = Math.round(y) - 5; row <= y + 5; row++) {
    for (let column = Math.round(x) - 10; column <= x + 10; column++) {
      brightest = Math.max(brightest, parts.neutral[row * 512 + column]!);
    }
  }
  assert.ok(warnings.includes('MOUTH_OPEN') && brightest < 190, `${brightest}, ${warnings.join()}`);
});

test('a closed smile is relaxed: corners sink, lips round and open less', async () => {
  const smiling = async (lift: number): Promise<{ limits: FaceLimits; lift: number }> => {
    const { parts } = await describeFace(await smilingClosed('ava', lift));
    const middle = (at(parts, 13)[1] + at(parts, 14)[1]) / 2;
    return { limits: parts.limits, lift: middle - (at(parts, 78)[1] + at(parts, 308)[1]) / 2 };
  };
  const [none, broad] = [await smiling(0), await smiling(60)];
  assert.equal(none.limits.round, 1);
  assert.equal(none.limits.open, 1);
  assert.ok(broad.limits.round < 0.95 && broad.limits.open < 0.9, JSON.stringify(broad.limits));
  // The corners were drawn up by 60 of 1024 pixels in the portrait, which is cropped to 512.
  assert.ok(broad.lift - none.lift < 17, `lifted by ${broad.lift - none.lift} more pixels`);
});

test('gloss on the lips is no tooth, nor is what a dark opening shows', () => {
  const [image, opening] = [rgbImage(128, 64), plane(128, 64)];
  const skin: Rgb = [206, 160, 136];
  opening.data.fill(1);
  image.data.fill(220);
  assert.deepEqual(teethColour(image, opening, skin), [220, 220, 220]);
  assert.equal(teethColour(image, opening, skin, plane(128, 64)), undefined);
  // The lit wall of a mouth that is slightly open: painted as bright as teeth it would be orange.
  for (let i = 0; i < image.data.length; i++) {
    image.data[i] = [81, 49, 40][i % 3]!;
  }
  assert.equal(teethColour(image, opening, skin), undefined);
});

test('a few teeth are enough where they are bright, pale and between the lips', () => {
  const [image, opening, contour] = [rgbImage(128, 64), plane(128, 64), plane(128, 64)];
  const skin: Rgb = [206, 160, 136];
  opening.data.fill(1);
  /** An eighth of the opening has this colour; the rest is dark and red. */
  const shown = (tooth: Rgb, between: number): Rgb | undefined => {
    contour.data.fill(between);
    for (let i = 0; i < image.data.length; i++) {
      image.data[i] = (i < image.data.length / 8 ? tooth : [70, 32, 30])[i % 3]!;
    }
    return teethColour(image, opening, skin, contour);
  };
  assert.deepEqual(shown([200, 188, 176], 1), [200, 188, 176]);
  assert.equal(shown([200, 188, 176], 0), undefined, 'beside the lips');
  assert.equal(shown([150, 138, 128], 1), undefined, 'dim');
  assert.equal(shown([214, 160, 140], 1), undefined, 'red');
});
