// A moving head whose blocks are left to the encoder in every second frame: what a viewer sees,
// decoded, against pictures that were drawn as a whole.
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

test('a head of which every second picture is shifted looks as one that is drawn', () => {
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
  assert.ok(left > 0.4 * drawn, `${left} blocks shifted, ${drawn} drawn`);
  for (let frame = 1; frame < HELD; frame++) {
    for (const [k, before] of shifted.maps[frame - 1]!.entries()) {
      if (before === BLOCK_SHIFTED) {
        const next = shifted.maps.slice(frame, Math.min(frame + 3, HELD)).map((map) => map[k]!);
        const change = next.find((value) => value !== 0) ?? (next.length < 3 ? 1 : 0);
        assert.equal(change, 1, `block ${k}, shifted in frame ${frame - 1}, is drawn next`);
      }
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
