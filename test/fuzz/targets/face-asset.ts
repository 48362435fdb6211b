// Files of faces: a whole one with changes. JavaScript and C++ read the same format and must agree
// on what is one.
import assert from 'node:assert/strict';
import {
  BREATH_CELL,
  decodeFaceAsset,
  encodeFaceAsset,
  LANDMARK_COUNT,
  type FacePatch,
} from '../../../src/media/face-asset.ts';
import { FaceAssetError } from '../../../src/media/face-asset-error.ts';
import { native } from '../../../src/native/addon.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

const SIDE = 128;
/**
 * Steps: bytes at a place among the first 64 KiB, or the file's new length; odd ones mend the
 * length that the file says it has.
 */
const CUT = 2;
const MEND = 1;

const patch = (side: number): FacePatch => {
  const pixels = side * side;
  return {
    x: 32,
    y: 32,
    width: side,
    height: side,
    luma: new Uint8Array(pixels),
    u: new Uint8Array(pixels / 4),
    v: new Uint8Array(pixels / 4),
    alpha: new Uint8Array(pixels),
  };
};
const WHOLE = encodeFaceAsset({
  width: SIDE,
  height: SIDE,
  meta: { name: 'a face', warnings: [], details: {} },
  neutral: new Uint8Array((SIDE * SIDE * 3) / 2),
  landmarks: new Float32Array(LANDMARK_COUNT * 3).map((_, index) => index % SIDE),
  matte: new Uint8Array(SIDE * SIDE),
  shoulders: new Uint8Array((SIDE / BREATH_CELL) ** 2).fill(99),
  tints: { cavity: [1, 2, 3], gums: [1, 2, 3], tongue: [1, 2, 3], teeth: [1, 2, 3] },
  limits: { round: 1, open: 1, yaw: 0.06, pitch: 0.06, roll: 0.06, shift: 12, brow: 1 },
  lidLeft: patch(8),
  lidRight: undefined,
});

function change(data: Buffer): Uint8Array {
  let bytes = WHOLE.slice();
  for (const { op, payload } of readScript(data)) {
    const place = payload.length >= 2 ? payload.readUInt16BE(0) : 0;
    if ((op & CUT) !== 0) {
      bytes = bytes.slice(0, place);
    } else {
      for (let at = 2; at < payload.length && place + at - 2 < bytes.length; at++) {
        bytes[place + at - 2] = payload[at]!;
      }
    }
    if ((op & MEND) !== 0 && bytes.length >= 12) {
      new DataView(bytes.buffer).setUint32(8, bytes.length, true);
    }
  }
  return bytes;
}

export const target: FuzzTarget = {
  maxBytes: 2048,
  words: ['MPFACE', 'lidLeft', 'lidRight', 'limits', 'neutral', 'landmarks'],
  run(data) {
    const bytes = change(data);
    let reason: unknown;
    try {
      const parts = decodeFaceAsset(bytes);
      assert.equal(parts.landmarks.length, LANDMARK_COUNT * 3);
    } catch (error) {
      if (!(error instanceof FaceAssetError)) {
        throw error;
      }
      reason = error;
    }
    let nativeReason: unknown;
    try {
      assert.equal(new native.FaceAsset(bytes, true).width % 16, 0);
    } catch (error) {
      nativeReason = error;
    }
    // The metadata are nobody's but JavaScript's.
    if (reason instanceof FaceAssetError && reason.message.includes('"meta"')) {
      return;
    }
    assert.equal(
      reason === undefined,
      nativeReason === undefined,
      `JavaScript: ${String(reason)}; C++: ${String(nativeReason)}`,
    );
  },
};
