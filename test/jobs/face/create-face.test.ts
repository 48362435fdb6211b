// Portraits that become faces, with which warnings, and those that are refused.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import sharp, { type Matrix3x3 } from 'sharp';
import { isWithin, processorMs } from '../../harness/machine.ts';
import { assertDrawable, createFace } from '../../../src/jobs/face/create-face.ts';
import { listDefaultFaces } from '../../../src/jobs/face/default-faces.ts';
import { NOSE_BASE } from '../../../src/jobs/face/detect/landmarks.ts';
import { decodeFaceAsset, encodeFaceAsset } from '../../../src/media/face-asset.ts';
import { DEFAULT_LOOK, type FaceLook } from '../../../src/media/face-look.ts';
import { assertSound, at, create, partsOf, rejects } from './face-checks.ts';
import {
  defaultPortrait,
  drawnOver,
  fixture,
  landscape,
  portrait,
  portraitOf,
  smallIn,
  tilted,
  twoFaces,
} from './portraits.ts';

/** Landmarks as x, y in distances between the eyes' outer corners, level, from their middle. */
function fromEyes(landmarks: Float32Array): number[] {
  const at = (index: number, axis: number): number => landmarks[index * 3 + axis]!;
  const [dx, dy] = [at(263, 0) - at(33, 0), at(263, 1) - at(33, 1)];
  const square = dx * dx + dy * dy;
  return Array.from({ length: landmarks.length / 3 }, (_, i) => {
    const x = at(i, 0) - (at(263, 0) + at(33, 0)) / 2;
    const y = at(i, 1) - (at(263, 1) + at(33, 1)) / 2;
    return [(x * dx + y * dy) / square, (y * dx - x * dy) / square];
  }).flat();
}

test('every default face gives an asset without warnings, quickly and within limits', async () => {
  const shapes: { id: string; points: number[] }[] = [];
  for (const { id, file } of listDefaultFaces()) {
    const startMs = processorMs();
    const { asset, warnings, preview } = await create(defaultPortrait(file));
    const tookMs = processorMs() - startMs;
    assert.ok(isWithin(tookMs, 5000), `${id} took ${tookMs} ms`);
    assert.deepEqual(warnings, [], id);
    assert.ok(asset.length < 1 << 20);
    const parts = decodeFaceAsset(asset);
    assertSound(parts);
    const { width, height, format } = await sharp(preview).metadata();
    assert.deepEqual([width, height, format], [512, 512, 'jpeg']);
    shapes.push({ id, points: fromEyes(parts.landmarks) });
  }
  for (const [i, one] of shapes.entries()) {
    for (const other of shapes.slice(i + 1)) {
      const apart = Math.hypot(...one.points.map((x, k) => x - other.points[k]!));
      const mean = apart / Math.sqrt(one.points.length / 2);
      assert.ok(mean > 0.016, `${one.id} and ${other.id} have one skull: ${mean.toFixed(3)}`);
    }
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
  const startMs = processorMs();
  assertSound(await partsOf(huge));
  assert.ok(isWithin(processorMs() - startMs, 8000));
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

test('a face whose forehead is cut off stays a close-up, and has no wide video', async () => {
  const picture = await portrait('noah')
    .extract({ left: 325, top: 335, width: 395, height: 405 })
    .png()
    .toBuffer();
  const { warnings, asset } = await create(picture);
  assert.ok(warnings.includes('CROPPED'));
  const parts = decodeFaceAsset(asset);
  const eyes = at(parts, 263)[0] - at(parts, 33)[0];
  assert.ok(eyes > 0.5 * parts.width, `eyes ${eyes.toFixed(0)} px apart`);
  assert.ok(at(parts, 152)[1] < parts.height, 'the chin is in the picture');
  assert.equal(parts.matte[Math.round(at(parts, 10)[0])], 255, 'the upper edge follows the head');
  const wide: FaceLook = { ...DEFAULT_LOOK, size: '1280x720' };
  await assert.rejects(createFace(picture, { name: 'wide', look: wide }), { code: 'FACE_CUT_OFF' });
});

test('a picture may end at the chin, not above it', async () => {
  const until = (bottom: number): Promise<Buffer> =>
    portrait('ava')
      .extract({ left: 312, top: 190, width: 420, height: bottom - 190 })
      .png()
      .toBuffer();
  const { warnings, asset } = await create(await until(685));
  assert.ok(warnings.includes('CROPPED'));
  const parts = decodeFaceAsset(asset);
  assert.ok(at(parts, 17)[1] < 0.9 * parts.height, 'the lower lip can open');
  await rejects(await until(655), 'FACE_CUT_OFF');
});

test('a picture that is too low for a whole head is not continued upwards', async () => {
  const picture = await portrait('noah')
    .extract({ left: 190, top: 270, width: 660, height: 520 })
    .png()
    .toBuffer();
  const room = Number(decodeFaceAsset((await create(picture)).asset).meta.details['room']);
  assert.ok(room > 1.1 && room < 1.4, `the crop is ${room} times as large as the face`);
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
  // Lips are printed on the cloth, with a seam.
  const printed =
    '<path d="M452 622 Q490 596 516 606 Q542 596 580 622 Q516 676 452 622 Z" fill="#b03a3a"/>' +
    '<path d="M456 622 Q516 632 576 622" stroke="#300" stroke-width="5" fill="none"/>';
  for (const cloth of ['#e0b62e', '#7fb2d6', '#e9e9e6', '#1f2022']) {
    await rejects(
      await drawnOver('ava', `${mask.replace('#7fb2d6', cloth)}${printed}`),
      'MOUTH_COVERED',
    );
  }
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
  assert.deepEqual(
    (await create(portraitOf('noah'))).warnings,
    [],
    'a beard does not cover the mouth',
  );
  await rejects(
    await drawnOver(
      'noah',
      '<rect x="380" y="560" width="280" height="190" rx="60" fill="#d9a68c"/>',
    ),
    'MOUTH_COVERED',
  );
});

test('a face is created only when the renderer can draw it, as it can a bowed head that smiles', async () => {
  const { asset } = await create(portraitOf('mei'));
  const parts = decodeFaceAsset(asset);
  const moved = (move: (y: number, index: number) => number): Uint8Array =>
    encodeFaceAsset({
      ...parts,
      landmarks: parts.landmarks.map((y, i) => (i % 3 === 1 ? move(y, Math.floor(i / 3)) : y)),
    });
  const corners = (at(parts, 61)[1] + at(parts, 291)[1]) / 2;
  assertDrawable(moved((y, index) => (index === NOSE_BASE ? corners + 3 : y)));
  assert.throws(
    () => {
      assertDrawable(moved((y, index) => (index === NOSE_BASE ? corners + 60 : y)));
    },
    { code: 'FACE_UNCLEAR', message: /No face of a person/ },
  );
});
