import assert from 'node:assert/strict';
import { beforeAll, test } from 'vitest';
import sharp, { type Matrix3x3 } from 'sharp';
import { patience } from '../../harness/machine.ts';
import { createFace } from '../../../src/jobs/face/create-face.ts';
import { FaceLandmarker } from '../../../src/jobs/face/detect/face-landmarker.ts';
import { listDefaultFaces } from '../../../src/jobs/face/default-faces.ts';
import { FaceError, type FaceErrorCode } from '../../../src/jobs/face/face-error.ts';
import { ARTICULATION_SIZE, POSE_INDEX, POSE_SIZE } from '../../../src/media/articulation.ts';
import {
  decodeFaceAsset,
  encodeFaceAsset,
  type FaceAssetParts,
  type FaceLimits,
} from '../../../src/media/face-asset.ts';
import { i420Bytes, macroblocks } from '../../../src/media/picture.ts';
import { native } from '../../../src/native/addon.ts';
import {
  drawnOver,
  fixture,
  landscape,
  laughing,
  portrait,
  portraitOf,
  smallIn,
  smilingClosed,
  tilted,
  twoFaces,
} from './portraits.ts';

let landmarker: FaceLandmarker;
beforeAll(async () => {
  landmarker = await FaceLandmarker.load();
});

const create = async (bytes: Uint8Array) => createFace(bytes, { name: 'test', landmarker });
const describeFace = async (bytes: Uint8Array) => {
  const { asset, warnings } = await create(bytes);
  return { parts: decodeFaceAsset(asset), warnings };
};
const partsOf = async (bytes: Uint8Array): Promise<FaceAssetParts> =>
  decodeFaceAsset((await create(bytes)).asset);
const at = ({ landmarks }: FaceAssetParts, index: number): [number, number] => [
  landmarks[index * 3]!,
  landmarks[index * 3 + 1]!,
];
const rejects = async (bytes: Uint8Array, code: FaceErrorCode): Promise<void> =>
  assert.rejects(create(bytes), (error: unknown) => {
    assert.ok(error instanceof FaceError, String(error));
    assert.equal(error.code, code);
    return true;
  });

/**
 * Checks what holds for every asset: features in their places, a matte that covers the face and
 * fades to the border, patches over the eyes.
 */
function assertSound(parts: FaceAssetParts): void {
  const [[lx, ly], [rx, ry]] = [at(parts, 33), at(parts, 263)];
  assert.ok(rx - lx > 80 && rx - lx < 230, `eyes ${rx - lx} apart`);
  assert.ok(Math.abs(Math.atan2(ry - ly, rx - lx)) < (10 * Math.PI) / 180, 'nearly upright');
  const [noseX, noseY] = at(parts, 1);
  assert.ok(Math.abs(noseX - 256) < 90 && noseY > 180 && noseY < 380, 'in the middle');
  const [, chinY] = at(parts, 152);
  assert.ok(chinY > noseY + 40 && chinY < 500);
  for (const [upper, lower] of [
    [13, 14],
    [81, 178],
    [311, 402],
  ] as const) {
    assert.deepEqual(at(parts, upper), at(parts, lower), 'lips together');
  }
  const weight = (x: number, y: number): number =>
    parts.matte[Math.round(y) * parts.width + Math.round(x)]!;
  assert.ok(weight(noseX, noseY) === 255 && weight(lx, ly) === 255 && weight(rx, ry) === 255);
  for (let x = 0; x < 512; x++) {
    assert.ok(weight(x, 0) === 0 || weight(x, 0) <= 8);
  }
  for (let i = 1; i < parts.matte.length; i++) {
    if (i % 512 !== 0) {
      assert.ok(Math.abs(parts.matte[i]! - parts.matte[i - 1]!) <= 8);
    }
  }
  for (let i = 512; i < parts.matte.length; i++) {
    assert.ok(Math.abs(parts.matte[i]! - parts.matte[i - 512]!) <= 8);
  }
  for (const [lid, x, y] of [
    [parts.lidLeft, (lx + at(parts, 133)[0]) / 2, ly],
    [parts.lidRight, (rx + at(parts, 362)[0]) / 2, ry],
  ] as const) {
    assert.ok(lid && x > lid.x && x < lid.x + lid.width && y > lid.y && y < lid.y + lid.height);
    assert.ok(lid.alpha[Math.round(y - lid.y) * lid.width + Math.round(x - lid.x)]! > 200);
    for (let column = 0; column < lid.width; column++) {
      assert.ok(lid.alpha[column]! < 40 && lid.alpha[(lid.height - 1) * lid.width + column]! < 40);
    }
  }
}

test('every default face gives an asset without warnings, quickly and within limits', async () => {
  for (const { id } of listDefaultFaces()) {
    const started = performance.now();
    const { asset, warnings, preview } = await create(portraitOf(id));
    assert.ok(
      performance.now() - started < 9000 * patience(),
      `${id} took ${performance.now() - started} ms`,
    );
    assert.deepEqual(warnings, [], id);
    assert.ok(asset.length < 1 << 20);
    assertSound(decodeFaceAsset(asset));
    const { width, height, format } = await sharp(preview).metadata();
    assert.deepEqual([width, height, format], [512, 512, 'jpeg']);
  }
});

test('the same portrait gives the same asset, in another thread of the same kind too', async () => {
  const [a, b] = [
    await create(portraitOf('noah')),
    await createFace(portraitOf('noah'), { name: 'test' }),
  ];
  assert.ok(Buffer.from(a.asset).equals(b.asset));
  assert.ok(Buffer.from(a.preview).equals(b.preview));
});

test('portraits from 256 to 6000 pixels wide are accepted', async () => {
  for (const side of [300, 512, 2048]) {
    assertSound(await partsOf(await portrait().resize(side).jpeg({ quality: 92 }).toBuffer()));
  }
  const huge = await portrait().resize(6000).jpeg().toBuffer();
  const memory = process.memoryUsage().rss;
  const started = performance.now();
  assertSound(await partsOf(huge));
  assert.ok(performance.now() - started < 12_000 * patience());
  assert.ok(process.memoryUsage().rss - memory < 400 << 20, 'memory is bounded');
  const small = await create(await portrait().resize(256).png().toBuffer());
  assert.ok(small.warnings.includes('LOW_RESOLUTION'));
  assertSound(decodeFaceAsset(small.asset));
});

test('accepts a face that is small in a large picture, and one that fills the picture', async () => {
  assertSound(await partsOf(await smallIn('mei', 420, 3000)));
  const tight = await create(
    await portrait('noah')
      .extract({ left: 310, top: 200, width: 410, height: 540 })
      .png()
      .toBuffer(),
  );
  assert.ok(tight.warnings.includes('CROPPED'));
  assertSound(decodeFaceAsset(tight.asset));
});

test('heads with a roll of up to 30 degrees are straightened', async () => {
  for (const degrees of [-30, -15, 12, 30]) {
    assertSound(await partsOf(await tilted('mei', degrees)));
  }
  await rejects(await tilted('mei', 55), 'FACE_TILTED');
});

test('dark, overexposed and blurred portraits give a warning only', async () => {
  const warningsOf = async (bytes: Uint8Array) => (await create(bytes)).warnings;
  assert.ok(
    (await warningsOf(await portrait('ava').linear(0.3, 0).png().toBuffer())).includes('DARK'),
  );
  assert.ok(
    (await warningsOf(await portrait('ava').linear(1.9, 0).png().toBuffer())).includes(
      'OVEREXPOSED',
    ),
  );
  assert.ok((await warningsOf(await portrait('ava').blur(9).png().toBuffer())).includes('BLURRED'));
  assert.deepEqual(await warningsOf(await portrait('samuel').png().toBuffer()), []);
});

test('accepts transparency, grey, paint, old prints and EXIF orientation', async () => {
  const round = Buffer.from(
    '<svg width="1024" height="1024"><circle cx="512" cy="480" r="470"/></svg>',
  );
  assertSound(
    await partsOf(
      await portrait()
        .ensureAlpha()
        .composite([{ input: round, blend: 'dest-in' }])
        .png()
        .toBuffer(),
    ),
  );
  // In black and white some lips are as light as the skin.
  for (const id of ['mei', 'priya', 'walter']) {
    assertSound(await partsOf(await portrait(id).greyscale().jpeg().toBuffer()));
  }
  assertSound(
    await partsOf(
      await portrait('ruth')
        .median(9)
        .modulate({ saturation: 1.6 })
        .png({ palette: true, colours: 24, dither: 0 })
        .toBuffer(),
    ),
  ); // like a painting
  assertSound(
    await partsOf(await portrait('samuel').tint('#c8a070').jpeg({ quality: 25 }).toBuffer()),
  );
  const lying = await portrait('ava')
    .rotate(90)
    .withMetadata({ orientation: 8 })
    .jpeg({ quality: 95 })
    .toBuffer();
  assertSound(await partsOf(lying));
});

test('in old prints and candlelight, the dark seam of closed lips is not an opening', async () => {
  const sepia: Matrix3x3 = [
    [0.393, 0.769, 0.189],
    [0.349, 0.686, 0.168],
    [0.272, 0.534, 0.131],
  ];
  for (const id of ['ava', 'mei', 'walter']) {
    assert.deepEqual(
      (await create(await portrait(id).recomb(sepia).jpeg().toBuffer())).warnings,
      [],
      id,
    );
  }
  assert.deepEqual(
    (
      await create(
        await portrait('mei')
          .recomb([
            [1.25, 0, 0],
            [0, 0.8, 0],
            [0, 0, 0.4],
          ])
          .jpeg()
          .toBuffer(),
      )
    ).warnings,
    [],
    'by candle-light',
  );
});

test('an open mouth is closed and its teeth are kept, in colour and in black and white', async () => {
  const laugh = await laughing('mei', { x: 516, y: 598, halfWidth: 88 });
  for (const bytes of [laugh, await sharp(laugh).greyscale().png().toBuffer()]) {
    const { asset, warnings } = await create(bytes);
    assert.ok(warnings.includes('MOUTH_OPEN'));
    const parts = decodeFaceAsset(asset);
    assertSound(parts);
    assert.ok(parts.limits.round < 1, 'a smile that was closed must not be rounded fully');
    assert.ok(parts.teethUpper, 'own teeth');
    const [left, right] = [at(parts, 78), at(parts, 308)];
    const lip =
      parts.neutral[Math.round(at(parts, 17)[1] - 3) * 512 + Math.round(at(parts, 17)[0])]!;
    for (let x = Math.ceil(left[0] + 6); x < right[0] - 6; x++) {
      const y = Math.round(left[1] + ((right[1] - left[1]) * (x - left[0])) / (right[0] - left[0]));
      for (let dy = -4; dy <= 14; dy++) {
        const luma = parts.neutral[(y + dy) * 512 + x]!;
        assert.ok(luma < lip + 60, `a tooth shows at ${x}, ${y + dy}`);
        assert.ok(luma > lip - 60, `the dark of the mouth shows at ${x}, ${y + dy}`);
      }
    }
    const { luma, alpha } = parts.teethUpper;
    const bright = luma.filter((_, i) => alpha[i]! > 250);
    assert.ok(
      bright.length > 200 && bright.reduce((sum, value) => sum + value, 0) / bright.length > 170,
    );
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

test('closed lids have the hue of the skin, whatever is close to the eye', async () => {
  const lines =
    '<g fill="none" stroke="#777" stroke-width="34"><path d="M380 432 q60 -52 120 ' +
    '0"/><path d="M530 432 q60 -52 120 0"/><path d="M385 474 q55 24 110 0"/><path d="M535 ' +
    '474 q55 24 110 0"/></g>';
  const redOf = ({ lidLeft, lidRight }: FaceAssetParts): number => {
    const reds = [lidLeft!, lidRight!].flatMap(({ v, alpha, width }) =>
      [...v].filter(
        (_, i) => alpha[Math.floor(i / (width / 2)) * 2 * width + (i % (width / 2)) * 2]! > 250,
      ),
    );
    return reds.reduce((sum, value) => sum + value, 0) / reds.length - 128;
  };
  const [plain, shaded] = [
    redOf(await partsOf(portraitOf('walter'))),
    redOf(await partsOf(await drawnOver('walter', lines))),
  ];
  assert.ok(shaded > 0.6 * plain, `${shaded} of ${plain}`);
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

test('a lower tooth that touches the upper row is cut off it', async () => {
  const mouth = { x: 516, y: 598, halfWidth: 88 };
  const tooth = '<rect x="480" y="606" width="12" height="56" fill="#eee6d8"/>';
  const { parts } = await describeFace(
    await sharp(await laughing('mei', mouth))
      .composite([{ input: Buffer.from(`<svg width="1024" height="1024">${tooth}</svg>`) }])
      .png()
      .toBuffer(),
  );
  const { alpha, width, height } = parts.teethUpper!;
  const ends = Array.from({ length: width }, (_, x) =>
    Array.from({ length: height }, (__, y) => y).findLast((y) => alpha[y * width + x]! > 127),
  ).filter((end) => end !== undefined);
  const middle = ends.slice(Math.round(0.25 * ends.length), Math.round(0.75 * ends.length));
  assert.ok(
    Math.max(...middle) - middle.toSorted((a, b) => a - b)[middle.length >> 1]! < 6,
    middle.join(' '),
  );
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

test('a row of teeth with a gap in it is not used', async () => {
  const mouth = { x: 516, y: 598, halfWidth: 88 };
  const gap = '<rect x="505" y="590" width="16" height="80" fill="#2a0f10"/>';
  const { parts } = await describeFace(
    await sharp(await laughing('mei', mouth))
      .composite([{ input: Buffer.from(`<svg width="1024" height="1024">${gap}</svg>`) }])
      .png()
      .toBuffer(),
  );
  assert.equal(parts.teethUpper, undefined);
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
  assert.ok(broad.limits.round < 0.9 && broad.limits.open < 0.9, JSON.stringify(broad.limits));
  // The corners were drawn up by 60 of 1024 pixels in the portrait, which is cropped to 512.
  assert.ok(broad.lift - none.lift < 17, `lifted by ${broad.lift - none.lift} more pixels`);
});

test('brows move little behind thick or thin glasses, and freely without', async () => {
  const browOf = async (bytes: Uint8Array): Promise<number> =>
    (await describeFace(bytes)).parts.limits.brow;
  const frame = (stroke: string): string =>
    `<g fill="none" ${stroke}><rect x="372" y="420" width="125" height="100" ` +
    'rx="34"/><rect x="530" y="420" width="125" height="100" rx="34"/><path d="M497 455 ' +
    'q16 -12 33 0"/></g>';
  for (const id of ['ava', 'mei', 'samuel', 'walter']) {
    assert.equal(await browOf(portraitOf(id)), 1, id);
  }
  assert.ok((await browOf(portraitOf('ruth'))) < 0.3, 'ruth wears glasses');
  assert.ok(
    (await browOf(await drawnOver('samuel', frame('stroke="#222" stroke-width="9"')))) < 0.3,
  );
  assert.ok((await browOf(await drawnOver('ava', frame('stroke="#777" stroke-width="4"')))) < 0.3);
  for (const stroke of [
    'stroke="#c8a45a" stroke-width="4"',
    'stroke="#ffffff70" stroke-width="9"',
    'stroke="#666" stroke-width="2.5"',
  ]) {
    assert.ok((await browOf(await drawnOver('mei', frame(stroke)))) < 0.3, stroke);
  }
});

test('eyes behind dark glasses do not blink', async () => {
  const shades =
    '<g fill="#101012"><rect x="375" y="395" width="125" height="95" rx="30"/><rect ' +
    'x="530" y="395" width="125" height="95" rx="30"/><rect x="340" y="405" width="350" ' +
    'height="14"/></g>';
  const { asset, warnings } = await create(await drawnOver('noah', shades));
  assert.ok(warnings.includes('EYES_HIDDEN'));
  const { lidLeft, lidRight } = decodeFaceAsset(asset);
  for (const lid of [lidLeft, lidRight]) {
    assert.ok(lid?.alpha.every((value) => value === 0));
  }
});

test('the rim of glasses over the lid stays in place during a blink', async () => {
  const parts = await partsOf(
    await drawnOver(
      'noah',
      '<g fill="none" stroke="#444" stroke-width="5"><rect x="372" y="412" width="125" ' +
        'height="80" rx="30"/><rect x="530" y="412" width="125" height="80" rx="30"/><path ' +
        'd="M497 437 q16 -12 33 0"/></g>',
    ),
  );
  const canvas = new Uint8Array(i420Bytes(512, 512));
  const pose = new Float32Array(POSE_SIZE);
  pose[POSE_INDEX.blinkLeft] = pose[POSE_INDEX.blinkRight] = 1;
  new native.FaceRenderer(new native.FaceAsset(encodeFaceAsset(parts))).render(
    new Float32Array(ARTICULATION_SIZE),
    pose,
    canvas,
    new Uint8Array(macroblocks(512, 512)),
  );
  for (const [outer, inner] of [
    [33, 133],
    [362, 263],
  ] as const) {
    const lid = at(parts, outer === 33 ? 159 : 386)[1];
    let [kept, all] = [0, 0];
    for (let x = Math.ceil(at(parts, outer)[0]) + 6; x < at(parts, inner)[0] - 6; x++) {
      // The first dark pixel below the brow is the rim; lashes are further down.
      const y = Array.from({ length: 18 }, (_, k) => Math.round(lid) - 18 + k).find(
        (row) => parts.neutral[row * 512 + x]! < 105,
      );
      if (y === undefined) {
        continue;
      }
      all++;
      if (Math.abs(canvas[y * 512 + x]! - parts.neutral[y * 512 + x]!) < 12) {
        kept++;
      }
    }
    assert.ok(all > 20, `${all} columns`);
    assert.ok(kept > 0.9 * all, `${kept} of ${all} columns of the frame`);
  }
});

test('eyes with dark make-up blink', async () => {
  const ring = (x: number): string =>
    `<path d="M${x - 68} 440 a68 46 0 1 1 136 0 a68 46 0 1 1 -136 0 M${x - 40} 440 a40 14 ` +
    '0 1 0 80 0 a40 14 0 1 0 -80 0Z"/>';
  const made = `<g fill="#241c20" fill-rule="evenodd">${ring(428)}${ring(586)}</g>`;
  const { warnings } = await create(await drawnOver('noah', made));
  assert.ok(!warnings.includes('EYES_HIDDEN'));
});

test('a portrait with closed eyes keeps them closed, with a warning', async () => {
  for (const id of ['noah', 'priya'] as const) {
    const open = await create(portraitOf(id));
    const { width, height } = decodeFaceAsset(open.asset);
    const [canvas, dirty, rgba] = [
      new Uint8Array(i420Bytes(width, height)),
      new Uint8Array(macroblocks(width, height)),
      new Uint8Array(width * height * 4),
    ];
    const asleep = async (blink: number): Promise<readonly string[]> => {
      const pose = new Float32Array(POSE_SIZE);
      pose[POSE_INDEX.blinkLeft] = pose[POSE_INDEX.blinkRight] = blink;
      new native.FaceRenderer(new native.FaceAsset(open.asset)).render(
        new Float32Array(ARTICULATION_SIZE),
        pose,
        canvas,
        dirty,
      );
      native.i420ToRgba(canvas, width, height, rgba);
      const { asset, warnings } = await create(
        await sharp(rgba, { raw: { width, height, channels: 4 } })
          .png()
          .toBuffer(),
      );
      const lids = decodeFaceAsset(asset);
      for (const lid of [lids.lidLeft, lids.lidRight]) {
        assert.equal(
          lid?.alpha.every((value) => value === 0),
          blink === 1,
          `${id} ${blink}`,
        );
      }
      return warnings;
    };
    assert.ok((await asleep(1)).includes('EYES_CLOSED'), id);
    assert.ok(!(await asleep(0.5)).includes('EYES_CLOSED'), `${id}, half closed`);
  }
});

test('refuses pictures that cannot be animated, with the reason', async () => {
  await rejects(await landscape(), 'NO_FACE');
  await rejects(
    await sharp({ create: { width: 400, height: 400, channels: 3, background: '#777' } })
      .png()
      .toBuffer(),
    'NO_FACE',
  );
  await rejects(await twoFaces('ava', 'noah'), 'SEVERAL_FACES');
  await rejects(await smallIn('mei', 160, 1200), 'FACE_TOO_SMALL');
  await rejects(fixture('profile.webp'), 'FACE_TURNED_AWAY');
  await rejects(
    await portrait('noah')
      .extract({ left: 512, top: 0, width: 512, height: 1024 })
      .png()
      .toBuffer(),
    'FACE_CUT_OFF',
  );
  const mask =
    '<path d="M345 520 Q520 480 690 520 L670 660 Q520 800 370 660 Z" fill="#7fb2d6"/><path ' +
    'd="M360 560 Q520 540 680 560 M365 600 Q520 590 675 600" stroke="#0003" ' +
    'stroke-width="3" fill="none"/>';
  await rejects(await drawnOver('ava', mask), 'MOUTH_COVERED');
  await rejects(await drawnOver('samuel', mask), 'MOUTH_COVERED');
  await rejects(
    await drawnOver('mei', '<circle cx="520" cy="630" r="95" fill="#2b2b2e"/>'),
    'MOUTH_COVERED',
  );
  for (const [id, skin] of [
    ['ava', '#d8a285'],
    ['samuel', '#6b4432'],
  ] as const) {
    await rejects(
      await drawnOver(
        id,
        `<rect x="490" y="560" width="50" height="260" rx="25" fill="${skin}" ` +
          'stroke="#0004" stroke-width="3"/>',
      ),
      'MOUTH_COVERED',
    );
  }
  const microphone = (x: number, y: number, radius: number, foam: string): string =>
    `<circle cx="${x}" cy="${y}" r="${radius}" fill="${foam}"/><rect ` +
    `x="${x - 0.35 * radius}" y="${y + 0.8 * radius}" width="${0.7 * radius}" height="400" ` +
    'fill="#151517"/>';
  for (const [x, y, radius, foam] of [
    [514, 660, 55, '#26262a'],
    [560, 640, 60, '#26262a'],
    [514, 620, 70, '#26262a'],
    [514, 650, 55, '#7a7a80'],
    [514, 650, 55, '#a02020'],
  ] as const) {
    await rejects(await drawnOver('walter', microphone(x, y, radius, foam)), 'MOUTH_COVERED');
  }
  const hand = [460, 494, 528, 562]
    .map(
      (x) =>
        `<rect x="${x - 24}" y="590" width="48" height="260" rx="24" fill="#d8a285" ` +
        'stroke="#0003" stroke-width="3"/>',
    )
    .join('');
  await rejects(await drawnOver('ava', hand), 'MOUTH_COVERED');
  for (const id of ['ava', 'samuel', 'walter']) {
    assert.deepEqual(
      (await create(await drawnOver(id, microphone(514, 690, 45, '#26262a')))).warnings,
      ['CHIN_COVERED'],
      `${id}: a microphone under the mouth is told`,
    );
  }
  assert.deepEqual((await create(portraitOf('noah'))).warnings, [], 'a beard is no cover');
  await rejects(
    await drawnOver(
      'noah',
      '<rect x="380" y="560" width="280" height="190" rx="60" fill="#d9a68c"/>',
    ),
    'MOUTH_COVERED',
  );
});

test('a second face that is clearly smaller is accepted', async () => {
  const background = await sharp({
    create: { width: 1400, height: 1000, channels: 3, background: '#888' },
  })
    .composite([
      { input: await portrait('ava').resize(960).png().toBuffer(), left: 20, top: 20 },
      { input: await portrait('noah').resize(380).png().toBuffer(), left: 1000, top: 40 },
    ])
    .jpeg({ quality: 92 })
    .toBuffer();
  const { warnings, asset } = await create(background);
  assert.ok(warnings.includes('OTHER_FACES'));
  assertSound(decodeFaceAsset(asset));
});
