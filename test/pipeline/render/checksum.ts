// Run inside a worker thread by face-asset-native.test.ts: draws a face from shared memory and
// hashes the pictures.
import { createHash } from 'node:crypto';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { Canvas, poseOf } from './synthetic-face.ts';

export function checksumOf(memory: Uint8Array): string {
  const canvas = new Canvas(new native.FaceAsset(memory));
  const hash = createHash('sha256');
  for (const shape of Object.values(VISEMES)) {
    hash.update(canvas.show(shape, 1, poseOf({ yaw: 0.02, blinkLeft: 0.4 })).picture);
  }
  return hash.digest('hex');
}
