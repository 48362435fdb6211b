import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { Piscina } from 'piscina';
import type { CreateFaceResult } from '../../../src/jobs/face/create-face-task.ts';
import createFaceTask from '../../../src/jobs/face/create-face-task.ts';
import { FACE_ERRORS } from '../../../src/jobs/face/face-error.ts';
import { decodeFaceAsset } from '../../../src/media/face-asset.ts';
import { portrait, portraitOf } from './portraits.ts';

const TASK = path.resolve(import.meta.dirname, '../../../src/jobs/face/create-face-task.ts');

test('runs on a thread of the pool and returns a face or the reason of a refusal', async () => {
  const pool = new Piscina({
    filename: TASK,
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

/** Stops a task before it begins, and ends its thread at once, in a pool like that of the server. */
const STOPPED_AT_ONCE = `
  import { Piscina } from 'piscina';
  const pool = new Piscina({ filename: process.argv[1], maxThreads: 1, atomics: 'disabled' });
  const stop = new Int32Array(new SharedArrayBuffer(4)).fill(1);
  await pool.run({ image: new Uint8Array(3), name: 'x', stop }).catch(() => {});
  await pool.destroy();
`;

test('a thread whose task was stopped at once can end', async () => {
  const node = promisify(execFile);
  const args = ['--input-type=module', '--eval', STOPPED_AT_ONCE, TASK];
  // While a thread loads the first models of its process, ending it aborts the process. Of such
  // processes, on a busy machine, that happened to half.
  await Promise.all(Array.from({ length: 6 }, () => node(process.execPath, args)));
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
