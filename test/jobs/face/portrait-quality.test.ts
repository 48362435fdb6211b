// What face creation refuses, warns of or mends in a photograph that is turned, badly lit, blurred or
// not of a person.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import sharp from 'sharp';
import {
  type DetectedFace,
  FaceLandmarker,
} from '../../../src/jobs/face/detect/face-landmarker.ts';
import {
  CHIN,
  LEFT_EYE,
  LEFT_SIDE,
  RIGHT_EYE,
  RIGHT_SIDE,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { cropFace } from '../../../src/jobs/face/detect/crop.ts';
import { checkPerson, chooseFace } from '../../../src/jobs/face/detect/portrait-quality.ts';
import { FACE_ERRORS, FaceError } from '../../../src/jobs/face/face-error.ts';
import { decodeImage } from '../../../src/jobs/face/imaging/decode.ts';
import { Pyramid } from '../../../src/jobs/face/imaging/image.ts';
import { decodeFaceAsset } from '../../../src/media/face-asset.ts';
import { create, rejects } from './face-checks.ts';
import { flatFace } from './flat-face.ts';
import { drawnOver, fixture, laughing, portrait, portraitOf } from './portraits.ts';

/** A portrait under `gain` times as much light, with noise of a sensor (share of white). */
async function underLight(id: string, gain: number, noise = 0): Promise<Buffer> {
  const { data, info } = await portrait(id)
    .resize(640)
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  let random = 1;
  for (const [i, value] of data.entries()) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    const light = (value / 255) ** 2.2 * gain + noise * (random / 2 ** 32 - 0.5);
    data[i] = Math.min(255, Math.round(255 * Math.max(0, light) ** (1 / 2.2)));
  }
  return sharp(data, { raw: { width: info.width, height: info.height, channels: 3 } })
    .png()
    .toBuffer();
}

test('an edge through the side of a face may cut its cheek, not its eye', async () => {
  const landmarker = await FaceLandmarker.load();
  const cutAt = async (id: string, left: number): Promise<string> => {
    const cut = portrait(id).extract({ left, top: 0, width: 1024 - left, height: 1024 });
    const image = await decodeImage(await cut.png().toBuffer());
    try {
      chooseFace(await landmarker.find(new Pyramid(image)), image);
      return 'taken';
    } catch (error) {
      assert.ok(error instanceof FaceError, String(error));
      return error.code;
    }
  };
  for (const id of ['ava', 'mei', 'noah', 'samuel']) {
    const [face] = await landmarker.find(new Pyramid(await decodeImage(portraitOf(id))));
    const across = (index: number): number => face!.points[index * 3]!;
    const edge = across(LEFT_SIDE);
    const eye = across(LEFT_EYE.outer);
    assert.ok(edge < eye, 'the left side is that of the picture');
    assert.equal(await cutAt(id, Math.round(edge)), 'taken', `${id} at the edge of the face`);
    const cheek = Math.round(edge + 0.5 * (eye - edge));
    assert.equal(await cutAt(id, cheek), 'taken', `${id} through the cheek`);
    for (const share of [0, 0.3, 0.6]) {
      const at = Math.round(eye + share * (across(LEFT_EYE.inner) - eye));
      assert.equal(await cutAt(id, at), 'FACE_CUT_OFF', `${id}, ${share} of the eye cut off`);
    }
  }
});

test('a picture that lies on its side or upside down is turned, with a warning', async () => {
  for (const [id, degrees] of [
    ['samuel', 180],
    ['noah', 90],
    ['mei', 190],
  ] as const) {
    const small = await portrait(id).resize(640).png().toBuffer();
    const upright = decodeFaceAsset((await create(small)).asset);
    const { asset, warnings } = await create(
      await sharp(small).rotate(degrees, { background: '#8a9096' }).png().toBuffer(),
    );
    assert.ok(warnings.includes('ROTATED'), `${id} ${degrees}: ${warnings.join()}`);
    const { landmarks } = decodeFaceAsset(asset);
    for (const index of [33, 263, 1, 152]) {
      for (const axis of [0, 1]) {
        const off = Math.abs(landmarks[index * 3 + axis]! - upright.landmarks[index * 3 + axis]!);
        // 10 degrees beyond the half turn: the head keeps 8 of them.
        assert.ok(off < (degrees % 90 === 0 ? 6 : 50), `${id} ${degrees}: ${index} is ${off} off`);
      }
    }
  }
  await rejects(
    await portrait('mei').rotate(135, { background: '#8a9096' }).png().toBuffer(),
    'FACE_TILTED',
  );
});

test('a head in three-quarter view is used, with a warning', async () => {
  const { warnings } = await create(fixture('three-quarter.webp'));
  assert.ok(warnings.includes('TURNED'), warnings.join());
});

test('a face in low light is used, its mouth and its open eyes are seen', async () => {
  for (const [id, gain, noise] of [
    ['ava', 0.06, 0.005],
    ['samuel', 0.06, 0],
    ['walter', 0.1, 0.005],
  ] as const) {
    const { warnings } = await create(await underLight(id, gain, noise));
    assert.deepEqual(warnings, ['DARK'], `${id} under ${gain}`);
  }
});

test('a faded picture is used, its mouth and its open eyes are seen', async () => {
  for (const [id, contrast, black] of [
    ['ava', 0.35, 90],
    ['samuel', 0.35, 90],
    ['noah', 0.25, 110],
  ] as const) {
    const old = portrait(id).resize(640).greyscale().linear(contrast, black);
    const { warnings } = await create(await old.png().toBuffer());
    assert.deepEqual(warnings, [], id);
  }
});

test('a picture that is too dark, overexposed or blurred is told as what it is', async () => {
  await rejects(await underLight('ava', 0.005), 'FACE_TOO_DARK');
  await rejects(await underLight('samuel', 0.01), 'FACE_TOO_DARK');
  await rejects(await underLight('ava', 12), 'FACE_OVEREXPOSED');
  const { warnings } = await create(await portrait('noah').resize(640).blur(4).png().toBuffer());
  assert.ok(warnings.includes('BLURRED'));
});

test('a mouth that screams is told as wide open', async () => {
  const ellipse = (rx: number, ry: number, fill: string): string =>
    `<ellipse cx="514" cy="638" rx="${rx}" ry="${ry}" fill="${fill}"/>`;
  for (const id of ['mei', 'walter']) {
    await rejects(
      await drawnOver(id, ellipse(60, 70, '#a8584f') + ellipse(52, 62, '#2a0f10')),
      'MOUTH_WIDE_OPEN',
    );
  }
  // Lips and teeth are clearly seen.
  const teeth = '<path d="M474 598 Q514 580 554 598 V612 Q514 600 474 612 Z" fill="#efe6da"/>';
  const laugh = ellipse(72, 84, '#c0504c') + ellipse(56, 62, '#5a2020') + teeth;
  await rejects(await drawnOver('mei', laugh), 'MOUTH_WIDE_OPEN');
});

test('a tongue that is out is told, and a finger at the lips is warned of', async () => {
  const mouth =
    '<ellipse cx="514" cy="632" rx="58" ry="34" fill="#9c4a44"/>' +
    '<ellipse cx="514" cy="630" rx="50" ry="26" fill="#2a0f10"/>' +
    '<path d="M482 628 Q514 616 546 628 V690 Q514 740 482 690 Z" fill="#a08a80"/>';
  await rejects(await drawnOver('mei', mouth), 'MOUTH_WIDE_OPEN');
  const finger =
    '<rect x="538" y="608" width="44" height="260" rx="15" fill="#f2cdb4" stroke="#0004"/>';
  const { warnings } = await create(await drawnOver('mei', finger));
  assert.ok(warnings.includes('CHIN_COVERED'), warnings.join());
});

test('a broad smile whose corners are dark is not taken for a covered mouth', async () => {
  const teeth = '#d0beb0';
  const smile = await laughing(
    'mei',
    { x: 516, y: 598, halfWidth: 100 },
    { lips: '#bf5c58', inside: teeth, teeth, height: 0.6 },
  );
  const corners = [456.5, 575.5].map(
    (x) => `<ellipse cx="${x}" cy="612.4" rx="32.5" ry="20.4" fill="#140808"/>`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="1024" height="1024">${corners.join('')}</svg>`;
  const picture = await sharp(smile)
    .composite([{ input: Buffer.from(svg) }])
    .png()
    .toBuffer();
  assert.deepEqual((await create(picture)).warnings, ['MOUTH_OPEN']);
});

test('red lips beside a corner in deep shadow are seen, a finger across them covers them', async () => {
  const shadow = '<path d="M424 588 L486 600 V612 L424 604 Z" fill="#120606"/>';
  const middle = '<path d="M484 594 Q514 602 548 594 V612 Q514 622 484 612 Z" fill="#b4625c"/>';
  assert.deepEqual((await create(await drawnOver('mei', shadow + middle))).warnings, []);
  const finger = '<rect x="484" y="560" width="64" height="120" rx="20" fill="#e8bda4"/>';
  await rejects(await drawnOver('mei', shadow + finger), 'MOUTH_COVERED');
});

test('in black and white, lips as light as the skin are known by their seam', async () => {
  const mouth = (seam: string): Promise<Buffer> =>
    drawnOver(
      'mei',
      '<ellipse cx="514" cy="604" rx="110" ry="40" fill="#d6b39c"/>' +
        `<path d="M420 600 Q514 612 608 600" stroke="${seam}" stroke-width="9" fill="none"/>`,
    );
  const grey = async (seam: string): Promise<Buffer> =>
    sharp(await mouth(seam))
      .greyscale()
      .png()
      .toBuffer();
  assert.deepEqual((await create(await grey('#8e7464'))).warnings, []);
  // As faint as the pleats of a mask.
  await rejects(await grey('#a98c7a'), 'MOUTH_COVERED');
});

test('a dog as large as the person who holds it is no second person', async () => {
  const source = new Pyramid(await decodeImage(portraitOf('mei')));
  const [person] = await (await FaceLandmarker.load()).find(source);
  const dog = { ...person!, confidence: 1 - 1.7e-4 };
  const larger = { ...dog, width: dog.width * 1.2, height: dog.height * 1.2 };
  const choose = (...faces: DetectedFace[]): unknown => chooseFace(faces, source.image);
  const expected = { face: person, warnings: ['OTHER_FACES'] };
  assert.deepEqual(choose(person!, dog), expected);
  assert.deepEqual(choose(larger, person!), expected);
  assert.deepEqual(choose(person!), { face: person, warnings: [] });
  for (const several of [
    [person!, person!],
    [larger, person!, person!],
    [larger, dog],
  ]) {
    assert.throws(() => choose(...several), new FaceError('SEVERAL_FACES'));
  }
  // A face far smaller than the largest is none to choose, however sure it is.
  const small = { ...person!, width: person!.width / 2, height: person!.height / 2 };
  assert.deepEqual(choose(dog, small), { face: dog, warnings: ['OTHER_FACES'] });
});

test('what is less surely a person than any portrait is refused', async () => {
  const source = new Pyramid(await decodeImage(portraitOf('mei')));
  const faces = await (await FaceLandmarker.load()).find(source);
  const face = faces[0]!;
  const crop = cropFace(source, face);
  const check = (changes: Partial<DetectedFace>, shown = crop): void => {
    checkPerson({ ...face, ...changes }, shown);
  };
  const refused = (changes: Partial<DetectedFace>, shown = crop): void => {
    assert.throws(() => {
      check(changes, shown);
    }, new FaceError('FACE_UNCLEAR'));
  };
  // The score of people of whom little is seen.
  const unsure = { confidence: 1 - 7e-6 };
  check({});
  check(unsure);
  // Red lips count for a person, none against: an even muzzle is a dog's.
  check({ confidence: 1 - 4e-5 });
  check({ confidence: 1 - 2e-5 });
  const pale = flatFace(crop.points, [160, 140, 120], [150, 130, 110]);
  refused({ confidence: 1 - 2e-5 }, { ...crop, image: pale });
  // Scores of photographs of a marmoset, of a fox and of a dog.
  for (const confidence of [0.9995, 0.9973, 1 - 1.1e-4]) {
    refused({ confidence });
  }
  // A drawn character is smooth and has warm skin. Fur is rough, or grey.
  const drawn = { confidence: 0.98 };
  const warm = flatFace(crop.points, [226, 158, 138], [180, 90, 90]);
  const fur = { ...warm, data: warm.data.map((value, i) => value + (i % 7) * 6) };
  check(drawn, { ...crop, image: warm });
  refused(drawn, { ...crop, image: fur });
  refused(drawn, { ...crop, image: warm, scale: 0.5 });
  refused(drawn, { ...crop, image: pale });
  refused({ confidence: 0.96 }, { ...crop, image: warm });
  // Round eyes, a wide face and a muzzle that stands out: a monkey. Each of them alone: a person.
  const unit = crop.points[RIGHT_EYE.outer * 3]! - crop.points[LEFT_EYE.outer * 3]!;
  const like = (...moves: readonly (readonly [number, 0 | 1 | 2, number])[]): typeof crop => {
    const points = crop.points.slice();
    for (const [index, axis, share] of moves) {
      points[index * 3 + axis]! += share * unit;
    }
    return { ...crop, points };
  };
  const eyes = [LEFT_EYE, RIGHT_EYE].map(({ lower }) => [lower[3]!, 1, 0.035] as const);
  const wide = [LEFT_SIDE, RIGHT_SIDE].map(
    (index, k) => [index, 0, k === 0 ? -0.06 : 0.06] as const,
  );
  const muzzle = [[CHIN, 2, -0.3] as const];
  for (const trait of [eyes, wide, muzzle]) {
    check({}, like(...trait));
  }
  refused({}, like(...eyes, ...wide, ...muzzle));
  assert.match(FACE_ERRORS.FACE_UNCLEAR, /animals/);
});
