// The eyes of a created face: lids, glasses, make-up, closed eyes.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import sharp from 'sharp';
import { ARTICULATION_SIZE, POSE_INDEX, POSE_SIZE } from '../../../src/media/articulation.ts';
import {
  decodeFaceAsset,
  encodeFaceAsset,
  type FaceAssetParts,
} from '../../../src/media/face-asset.ts';
import { i420Bytes, macroblocks } from '../../../src/media/picture.ts';
import { noiseSource } from '../../../src/jobs/face/imaging/noise.ts';
import { native } from '../../../src/native/addon.ts';
import { at, create, describeFace, partsOf } from './face-checks.ts';
import { defaultPortrait, drawnOver, portrait, portraitOf } from './portraits.ts';

/** The face with its eyes closed, I420. @param blink 0 open to 1 closed */
function blinking(asset: Uint8Array, blink: number): Uint8Array {
  const { width, height } = decodeFaceAsset(asset);
  const picture = new Uint8Array(i420Bytes(width, height));
  const pose = new Float32Array(POSE_SIZE);
  pose[POSE_INDEX.blinkLeft] = pose[POSE_INDEX.blinkRight] = blink;
  new native.FaceRenderer(new native.FaceAsset(asset)).render(
    new Float32Array(ARTICULATION_SIZE),
    pose,
    picture,
    new Uint8Array(macroblocks(width, height)),
  );
  return picture;
}

test('closed lids have the hue of the skin, whatever is close to the eye', async () => {
  const lines = (colour: string): string =>
    `<g fill="none" stroke="${colour}"` +
    ' stroke-width="34"><path d="M380 432 q60 -52 120 ' +
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
  const plain = redOf(await partsOf(portraitOf('walter')));
  const besides = async (colour: string): Promise<number> =>
    redOf(await partsOf(await drawnOver('walter', lines(colour)))) / plain;
  const [grey, red] = [await besides('#777'), await besides('#a84a20')];
  assert.ok(grey > 0.6, `${grey}`);
  assert.ok(red < 1.2, `${red}`);
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

/** A drawn portrait with coloured noise. @param deviation standard deviation, 0..255 */
async function noisy(bytes: Buffer, deviation: number): Promise<Buffer> {
  const { data, info } = await sharp(bytes)
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const noise = noiseSource(5);
  for (let i = 0; i < data.length; i++) {
    data[i] = Math.min(255, Math.max(0, data[i]! + deviation * Math.SQRT2 * noise()));
  }
  const { width, height, channels } = info;
  return sharp(data, { raw: { width, height, channels } }).png().toBuffer();
}

test('noise is not taken for glasses', async () => {
  const browOf = async (bytes: Buffer): Promise<number> =>
    (await describeFace(await noisy(bytes, 30))).parts.limits.brow;
  for (const id of ['ava', 'walter']) {
    assert.equal(await browOf(portraitOf(id)), 1, id);
  }
  assert.ok((await browOf(portraitOf('ruth'))) < 0.3, 'ruth wears glasses');
});

test('a lid closes with the noise of the portrait', async () => {
  const parts = await partsOf(await noisy(portraitOf('ava'), 40));
  const canvas = blinking(encodeFaceAsset(parts), 1);
  /** Deviation of each pixel from the mean of those beside it, in a square. */
  const roughness = (x: number, y: number): number => {
    let [sum, count] = [0, 0];
    for (let row = y - 5; row < y + 5; row++) {
      for (let column = x - 8; column < x + 8; column++) {
        const k = row * 512 + column;
        sum += Math.abs(canvas[k]! - (canvas[k - 1]! + canvas[k + 1]!) / 2);
        count++;
      }
    }
    return sum / count;
  };
  const place = (index: number, down = 0): number => {
    const [x, y] = at(parts, index);
    return roughness(Math.round(x), Math.round(y + down));
  };
  for (const [lid, cheek] of [
    [159, 50],
    [386, 280],
  ] as const) {
    const [closed, skin] = [place(lid, 2), place(cheek)];
    assert.ok(closed > 0.6 * skin, `${closed} beside ${skin} of the cheek`);
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
  const canvas = blinking(encodeFaceAsset(parts), 1);
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

/** The share of the patch's opacity at some positions beside each other, above an upper lid. */
function opacityAbove({ lidLeft }: FaceAssetParts, x: number, y: number): number {
  const { x: left, y: top, width, alpha } = lidLeft!;
  const values = [-2, -1, 0, 1, 2].map((dx) => {
    return alpha[(Math.round(y) - top) * width + Math.round(x) + dx - left]! / 255;
  });
  return Math.min(...values);
}

test('a closed lid has no fold above it, and hair that hangs there stays', async () => {
  const bare = await partsOf(portraitOf('walter'));
  // Above the crease, in the middle of the eye.
  const [x, crease] = at(bare, 27);
  const y = crease - 1;
  assert.ok(opacityAbove(bare, x, y) > 0.6, `${opacityAbove(bare, x, y)} on skin`);
  const fringe = await partsOf(
    await drawnOver('walter', '<rect x="330" y="200" width="210" height="236" fill="#120c0a"/>'),
  );
  assert.ok(opacityAbove(fringe, x, y) < 0.2, `${opacityAbove(fringe, x, y)} on hair`);
});

test('the shade of a socket is no hair, and a closed lid covers it', async () => {
  const shade =
    '<defs><radialGradient id="shade"><stop offset=".5" stop-color="#140c08" stop-opacity=".62"/>' +
    '<stop offset="1" stop-color="#140c08" stop-opacity="0"/></radialGradient></defs>' +
    '<ellipse cx="480" cy="395" rx="90" ry="55" fill="url(#shade)"/>';
  const parts = await partsOf(await drawnOver('priya', shade));
  // The crease, on the side of the nose.
  const [x, crease] = at(parts, 28);
  const covered = opacityAbove(parts, x, crease + 2);
  assert.ok(covered > 0.6, `${covered} in the socket`);
});

test('a dark line that runs from the brow down to the lid is no hair, and goes', async () => {
  const line = '<path d="M388 330 V366 L438 420" stroke="#120c0a" stroke-width="5" fill="none"/>';
  const parts = await partsOf(await drawnOver('walter', line));
  const { x, y, width, alpha } = parts.lidLeft!;
  const [middle, lid] = at(parts, 159).map(Math.round) as [number, number];
  let [seen, left] = [0, 0];
  for (let row = lid - 16; row < lid; row++) {
    for (let column = middle - 8; column < middle + 8; column++) {
      if (parts.neutral[row * parts.width + column]! < 70) {
        seen++;
        left += alpha[(row - y) * width + column - x]! < 60 ? 1 : 0;
      }
    }
  }
  assert.ok(seen > 20 && left < 0.3 * seen, `${left} of ${seen} pixels`);
});

test('a closed lid has texture of its own, as the cheek has', async () => {
  const { lidLeft } = await partsOf(portraitOf('walter'));
  const { width, luma, alpha } = lidLeft!;
  let [rough, count] = [0, 0];
  for (let i = width + 1; i < luma.length - width; i++) {
    if ([i, i - 1, i + 1, i - width, i + width].every((k) => alpha[k] === 255)) {
      const around = (luma[i - 1]! + luma[i + 1]! + luma[i - width]! + luma[i + width]!) / 4;
      rough += Math.abs(luma[i]! - around);
      count++;
    }
  }
  assert.ok(rough / count > 0.8, `${rough / count} luma`);
});

/**
 * The middle of a closed left eye, from well above the lashes down to the cheek.
 * @returns luma of each row, and the row of the lashes
 */
async function closedColumn(bytes: Uint8Array): Promise<{ luma: number[]; line: number }> {
  const { asset } = await create(bytes);
  const parts = decodeFaceAsset(asset);
  const picture = blinking(asset, 1);
  const x = Math.round((at(parts, 33)[0] + at(parts, 133)[0]) / 2);
  const top = Math.round(at(parts, 159)[1]);
  const luma = Array.from({ length: 40 }, (_, row) => {
    const across = [-2, -1, 0, 1, 2].map((dx) => picture[(top - 8 + row) * parts.width + x + dx]!);
    return across.reduce((sum, value) => sum + value, 0) / across.length;
  });
  const line = luma.indexOf(Math.min(...luma));
  return { luma, line };
}

test('a closed lid is dark above its lashes', async () => {
  const { luma, line } = await closedColumn(defaultPortrait('mei.webp'));
  const [near, far] = [luma[line - 4]!, luma[line - 12]!];
  assert.ok(near < 0.84 * far, `${near} of ${far}`);
});

test('lashes of a closed lid are as soft as a blurred portrait', async () => {
  const step = async (bytes: Uint8Array): Promise<number> => {
    const { luma, line } = await closedColumn(bytes);
    const near = luma.slice(Math.max(1, line - 3), line + 4);
    return Math.max(
      ...near.map((value, i) => Math.abs(value - luma[Math.max(1, line - 3) + i - 1]!)),
    );
  };
  const [sharp, blurred] = [
    await step(portraitOf('noah')),
    await step(await portrait('noah').blur(4).png().toBuffer()),
  ];
  assert.ok(blurred < 0.6 * sharp, `${blurred} of ${sharp}`);
});

test('eyes with dark make-up blink', async () => {
  const ring = (x: number): string =>
    `<path d="M${x - 68} 440 a68 46 0 1 1 136 0 a68 46 0 1 1 -136 0 M${x - 40} 440 a40 14 ` +
    '0 1 0 80 0 a40 14 0 1 0 -80 0Z"/>';
  const made = `<g fill="#241c20" fill-rule="evenodd">${ring(428)}${ring(586)}</g>`;
  const { warnings } = await create(await drawnOver('noah', made));
  assert.ok(!warnings.includes('EYES_HIDDEN'));
});

test('eyes in the shade of a lamp aside blink', async () => {
  const shade =
    '<defs><linearGradient id="shade"><stop offset=".47" stop-color="#140c08" stop-opacity="0"/>' +
    '<stop offset=".53" stop-color="#140c08" stop-opacity=".68"/></linearGradient></defs>' +
    '<rect width="1024" height="1024" fill="url(#shade)"/>';
  for (const id of ['ava', 'noah', 'priya']) {
    const { warnings } = await create(await drawnOver(id, shade));
    assert.ok(!warnings.includes('EYES_HIDDEN'), id);
  }
});

test('a portrait with closed eyes keeps them closed, with a warning', async () => {
  for (const id of ['noah', 'priya'] as const) {
    const open = await create(defaultPortrait(`${id}.webp`));
    const { width, height } = decodeFaceAsset(open.asset);
    const rgba = new Uint8Array(width * height * 4);
    const asleep = async (blink: number): Promise<readonly string[]> => {
      native.i420ToRgba(blinking(open.asset, blink), width, height, rgba);
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
