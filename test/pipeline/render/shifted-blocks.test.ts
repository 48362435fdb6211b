// A moving head whose blocks are left to the encoder in most frames: what a viewer sees, decoded,
// against pictures that were drawn as a whole.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { test } from 'vitest';
import { BLOCK_SHIFTED } from '../../../src/media/picture.ts';
import { KEY_FRAME_BIT, native } from '../../../src/native/addon.ts';
import { articulationOf } from '../../../src/pipeline/render/visemes.ts';
import { decode, psnr } from '../../native/decode.ts';
import { Canvas, poseOf, SIZE, syntheticAsset } from './synthetic-face.ts';

const FRAMES = 40;
/** Frames with a key frame on request, and from which on the renderer is held. */
const [KEY, HELD] = [19, 32];
/** A block is shifted as often in a row, and drawn when it has rested for three frames since. */
const [MOST_SHIFTS, RESTED] = [11, 3];

test('a head of which most movements are shifts looks as one that is drawn', () => {
  const asset = new native.FaceAsset(syntheticAsset());
  const silence = articulationOf({});
  const codecOptions = { codec: 'vp8', width: SIZE, height: SIZE, fps: 30 } as const;
  const poses = Array.from({ length: HELD }, (_, frame) =>
    poseOf({
      shiftX: 6 * Math.sin(frame / 8),
      shiftY: 3 * Math.sin(frame / 6),
      roll: 0.02 * Math.sin(frame / 11),
    }),
  );
  const whole = poses.map((pose) => new Canvas(asset).draw(silence, pose).picture);
  const run = (mayShift: boolean) => {
    const { renderer, picture, dirty } = new Canvas(asset);
    const motion = new Int16Array(2 * dirty.length);
    const encoder = new native.VideoEncoder({ ...codecOptions, bitrateKbps: 600 });
    const out = new Uint8Array(1 << 18);
    const [frames, maps]: [Uint8Array[], Uint8Array[]] = [[], []];
    for (let frame = 0; frame < FRAMES; frame++) {
      const expected = whole[Math.min(frame, HELD - 1)]!;
      if (frame < HELD) {
        renderer.render(silence, poses[frame]!, picture, dirty, motion, mayShift);
      } else {
        dirty.fill(0);
      }
      const result = encoder.encode(picture, out, frame === KEY, dirty, motion);
      assert.equal((result & KEY_FRAME_BIT) !== 0, frame === 0 || frame === KEY);
      frames.push(out.slice(0, result & ~KEY_FRAME_BIT));
      maps.push(dirty.slice());
      for (const [k, change] of dirty.entries()) {
        const [x, y] = [(k * 16) % SIZE, Math.floor((k * 16) / SIZE) * 16];
        for (let row = y; change === 1 && row < y + 16; row++) {
          const at = row * SIZE + x;
          assert.equal(
            Buffer.compare(picture.subarray(at, at + 16), expected.subarray(at, at + 16)),
            0,
          );
        }
      }
    }
    encoder.close();
    const seen = decode('vp8', frames, SIZE, SIZE);
    return {
      maps,
      quality: seen.map((shown, i) => psnr(shown, whole[Math.min(i, HELD - 1)]!, SIZE, SIZE)),
    };
  };
  const [plain, shifted] = [run(false), run(true)];
  const count = (maps: readonly Uint8Array[], change: number): number =>
    maps.reduce((sum, map) => sum + map.filter((value) => value === change).length, 0);
  const [drawn, left] = [count(shifted.maps, 1), count(shifted.maps, BLOCK_SHIFTED)];
  assert.equal(count(plain.maps, BLOCK_SHIFTED), 0);
  assert.ok(left > 0.7 * drawn, `${left} blocks shifted, ${drawn} drawn`);
  for (let k = 0; k < shifted.maps[0]!.length; k++) {
    let [shifts, rested] = [0, 0];
    for (let frame = 1; frame < HELD; frame++) {
      const change = shifted.maps[frame]![k]!;
      shifts = change === BLOCK_SHIFTED ? shifts + 1 : change === 0 ? shifts : 0;
      rested = change === 0 && shifts > 0 ? rested + 1 : 0;
      assert.ok(shifts <= MOST_SHIFTS, `block ${k} in frame ${frame}: ${shifts} shifts in a row`);
      assert.ok(rested < RESTED, `block ${k} in frame ${frame}: not drawn since it was shifted`);
    }
  }
  assert.ok(shifted.maps[KEY]!.includes(BLOCK_SHIFTED), 'the key frame meets shifted blocks');
  assert.ok(shifted.maps[HELD - 1]!.includes(BLOCK_SHIFTED), 'the held picture has some');
  for (const [frame, quality] of shifted.quality.entries()) {
    assert.ok(
      quality > plain.quality[frame]! - 1.5,
      `frame ${frame}: ${quality} dB, drawn ${plain.quality[frame]} dB`,
    );
  }
});
