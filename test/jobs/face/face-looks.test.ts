// Faces in other sizes, with another framing or background: the picture, what is moved into it, and
// that it can be drawn, coded and decoded.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import sharp from 'sharp';
import { test } from 'vitest';
import { decodeFaceAsset, type FaceAssetParts } from '../../../src/media/face-asset.ts';
import { DEFAULT_LOOK, type FaceLook, FACE_SIZES, sizeOf } from '../../../src/media/face-look.ts';
import { pictureWeight } from '../../../src/media/picture.ts';
import { native } from '../../../src/native/addon.ts';
import { createFace } from '../../../src/jobs/face/create-face.ts';
import { FaceLandmarker } from '../../../src/jobs/face/detect/face-landmarker.ts';
import { VideoTrack } from '../../../src/pipeline/encode/video-track.ts';
import { RigRenderer } from '../../../src/pipeline/render/rig-renderer.ts';
import { articulationOf, VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { defaultPortrait, portraitOf } from './portraits.ts';

const landmarker = FaceLandmarker.load();

async function made(look: Partial<FaceLook>, portrait: string | Uint8Array = 'noah') {
  const bytes = typeof portrait === 'string' ? portraitOf(portrait) : portrait;
  const face = await createFace(bytes, {
    name: 'test',
    look: { ...DEFAULT_LOOK, ...look },
    landmarker: await landmarker,
  });
  return { ...face, parts: decodeFaceAsset(face.asset) };
}

/** Height of the face and its middle, in pixels of the picture. */
function faceOf({ landmarks }: FaceAssetParts) {
  const [top, chin] = [landmarks[10 * 3 + 1]!, landmarks[152 * 3 + 1]!];
  return { height: chin - top, x: landmarks[1 * 3]!, y: (top + chin) / 2 };
}

test('a large picture is drawn, coded and decoded, and its mouth opens', async () => {
  const { asset, parts } = await made({ size: '1280x720' });
  assert.deepEqual([parts.width, parts.height], [1280, 720]);
  const face = faceOf(parts);
  assert.ok(face.height > 0.35 * 720 && face.height < 0.6 * 720, `${face.height}`);
  assert.ok(Math.abs(face.x - 640) < 130, `${face.x}`);
  const look = { seed: 1, emotion: 0, motion: 'natural' as const, startFrame: 0 };
  const renderer = new RigRenderer(new native.FaceAsset(asset), look);
  const video = new VideoTrack('vp8', 900, undefined, renderer.size);
  let changed = 0;
  for (let frame = 0; frame < 40; frame++) {
    const shape = frame % 10 < 5 ? VISEMES.aa : VISEMES.m;
    const articulation = articulationOf({ ...shape, speech: 1 });
    renderer.draw(frame, articulation, true);
    changed = Math.max(
      changed,
      renderer.dirty.reduce((sum, block) => sum + block, 0),
    );
    assert.ok(video.encode(renderer.picture, renderer.dirty, renderer.motion));
  }
  assert.ok(changed > 100, `${changed} macroblocks`);
  const bytes = video.data.slice(0, video.length);
  assert.ok(bytes.length > 0);
  video.close();
});

test('shoulders show more of the body, and a tall picture has the face near its middle', async () => {
  const [head, tall] = await Promise.all([
    made({ size: '576x1024' }),
    made({ size: '720x1280', framing: 'shoulders' }),
  ]);
  const [near, far] = [faceOf(head.parts), faceOf(tall.parts)];
  assert.ok(near.y < 0.58 * 1024 && far.y < 0.58 * 1280, `${near.y} ${far.y}`);
  assert.ok(far.height / 720 <= near.height / 576 + 0.001);
  for (const { parts } of [head, tall]) {
    const { matte, width, height } = parts;
    for (let y = 1; y < height; y++) {
      for (let x = 1; x < width; x += 3) {
        const at = y * width + x;
        assert.ok(
          Math.abs(matte[at]! - matte[at - width]!) <= 9 &&
            Math.abs(matte[at]! - matte[at - 1]!) <= 9,
        );
      }
    }
  }
});

test('a background is replaced by a colour or green, and the face stays', async () => {
  const [kept, green] = await Promise.all([
    made({ size: '720x720' }, 'ava'),
    made({ size: '720x720', background: 'green' }, 'ava'),
  ]);
  assert.ok(!green.warnings.includes('BACKGROUND_KEPT'), green.warnings.join());
  const luma = ({ neutral }: FaceAssetParts, x: number, y: number) => neutral[y * 720 + x]!;
  const chroma = ({ neutral }: FaceAssetParts, x: number, y: number) =>
    neutral[720 * 720 + (y >> 1) * 360 + (x >> 1)]!;
  const { x, y } = faceOf(kept.parts);
  const [cx, cy] = [Math.round(x), Math.round(y)];
  assert.equal(luma(green.parts, cx, cy), luma(kept.parts, cx, cy));
  assert.ok(chroma(green.parts, 8, 8) < 110, `${chroma(green.parts, 8, 8)}`);
  assert.notEqual(chroma(kept.parts, 8, 8), chroma(green.parts, 8, 8));
});

/** Stripes in colours of hair and skin, everywhere but at the head and the body. */
const STRIPES = Buffer.from(`<svg width="1024" height="1024">
  <pattern id="bars" width="160" height="160" patternUnits="userSpaceOnUse">
    <rect width="40" height="160" fill="#7a4a2a"/>
    <rect x="40" width="40" height="160" fill="#e0b090"/>
    <rect x="80" width="40" height="160" fill="#303030"/>
    <rect x="120" width="40" height="160" fill="#c8c8d0"/>
  </pattern>
  <path fill="url(#bars)" fill-rule="evenodd" d="M0 0h1024v600H0z
    M285 420a225 340 0 0 1 450 0a225 340 0 0 1 -450 0z"/>
</svg>`);

test('a busy background with the colours of the person is replaced, and the hair stays', async () => {
  for (const id of ['ruth', 'noah']) {
    const busy = await sharp(defaultPortrait(`${id}.webp`))
      .composite([{ input: STRIPES }])
      .png()
      .toBuffer();
    const [kept, green] = await Promise.all([
      made({ size: '720x720' }, busy),
      made({ size: '720x720', background: 'green' }, busy),
    ]);
    assert.deepEqual(green.warnings, [], id);
    // Nothing bends behind a head that moves.
    assert.ok(green.parts.limits.yaw > 1.3 * kept.parts.limits.yaw, id);
    const { landmarks } = kept.parts;
    const [x, forehead, chin] = [landmarks[30]!, landmarks[31]!, landmarks[152 * 3 + 1]!];
    const changed = (column: number, row: number): number => {
      const at = Math.round(row) * 720 + Math.round(column);
      return Math.abs(green.parts.neutral[at]! - kept.parts.neutral[at]!);
    };
    // Hair above the forehead, the chest, and stripes on both sides.
    assert.equal(changed(x, forehead - 0.25 * (chin - forehead)), 0, `${id}: hair`);
    assert.equal(changed(x, 710), 0, `${id}: chest`);
    for (let column = 8; column < 60; column += 4) {
      const chroma = (at: number): number =>
        green.parts.neutral[720 * 720 + 100 * 360 + (at >> 1)]!;
      assert.ok(chroma(column) < 110 && chroma(719 - column) < 110, `${id}: stripe ${column}`);
    }
  }
});

test('a person of whom only the head can be cut out keeps the background', async () => {
  const { warnings } = await made({ background: 'green' }, 'mei'); // a light pullover, a light wall
  assert.ok(warnings.includes('BACKGROUND_KEPT'), warnings.join());
});

test('the weight of a picture is 1 at the usual size, and grows with it', () => {
  const weights = FACE_SIZES.map((size) => pictureWeight(sizeOf(size)));
  assert.equal(weights[0], 1);
  assert.ok(weights.every((weight) => weight >= 1 && weight < 2));
  assert.ok(pictureWeight(sizeOf('1280x720')) > pictureWeight(sizeOf('720x720')));
});
