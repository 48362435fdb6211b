// Micro bench of face creation: one portrait to one asset on one thread, by kind of portrait.
// Target: 3 s on one core.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import { createFace } from '../../src/jobs/face/create-face.ts';
import { FaceLandmarker } from '../../src/jobs/face/detect/face-landmarker.ts';
import { laughing } from '../../test/jobs/face/portraits.ts';
import { type BenchCase, measure, report } from '../harness.ts';

const portrait = readFileSync(path.resolve(import.meta.dirname, '../../models/faces/mei.webp'));
const landmarker = await FaceLandmarker.load();
const makes = (name: string, bytes: Uint8Array): BenchCase => ({
  name,
  run: async () => createFace(bytes, { name: 'bench', landmarker }),
});

report(
  'face creation, one portrait',
  await measure(
    [
      makes('1024 px', portrait),
      makes('1024 px, a smile to close', await laughing('mei', { x: 516, y: 598, halfWidth: 88 })),
      makes('6000 px JPEG', await sharp(portrait).resize(6000).jpeg().toBuffer()),
    ],
    { budgetMs: 6000 },
  ),
);
