import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { Piscina } from 'piscina';
import type { CreateFaceResult } from '../../../src/jobs/face/create-face-task.ts';
import createFaceTask from '../../../src/jobs/face/create-face-task.ts';
import { FACE_ERRORS } from '../../../src/jobs/face/face-error.ts';
import { decodeFaceAsset } from '../../../src/media/face-asset.ts';
import { portrait, portraitOf } from './portraits.ts';

test('runs on a thread of the pool and returns a face or the reason of a refusal', async () => {
  const pool = new Piscina({
    filename: path.resolve(import.meta.dirname, '../../../src/jobs/face/create-face-task.ts'),
    maxThreads: 1,
  });
  const made = (await pool.run({ image: portraitOf('ava'), name: 'Ava' })) as CreateFaceResult;
  assert.ok('asset' in made);
  assert.equal(decodeFaceAsset(made.asset).meta.name, 'Ava');
  const refused = (await pool.run({
    image: Buffer.from('no picture'),
    name: 'x',
  })) as CreateFaceResult;
  assert.deepEqual(refused, { error: { code: 'NOT_AN_IMAGE', message: FACE_ERRORS.NOT_AN_IMAGE } });
  await pool.destroy();
});

test('any bytes give a face or the reason of a refusal', async () => {
  const seeds = await Promise.all([
    portrait().resize(160).jpeg().toBuffer(),
    portrait().resize(160).png().toBuffer(),
    portrait().resize(160).webp().toBuffer(),
  ]);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 20 }),
      fc.double({ min: 0.1, max: 1, noNaN: true }),
      async (seed, changes, keep) => {
        const bytes = Buffer.from(seed.subarray(0, Math.ceil(seed.length * keep)));
        for (const [where, value] of changes) {
          bytes[where % Math.min(bytes.length, 600)] = value;
        }
        const result = await createFaceTask({ image: bytes, name: 'fuzz' });
        if ('error' in result) {
          assert.notEqual(result.error.code, 'INTERNAL_ERROR', result.error.message);
        } else {
          decodeFaceAsset(result.asset);
        }
      },
    ),
    { numRuns: 60, seed: 7 },
  );
});
