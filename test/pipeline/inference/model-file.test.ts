// A model file with other bytes than the manifest lists is refused, and the message says what to
// do.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { pathToFileURL } from 'node:url';
import { readModelFile } from '../../../src/pipeline/inference/model-file.ts';
import { SpeechModel } from '../../../src/pipeline/inference/speech-model.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'model-file-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const GOOD = Buffer.from('x'.repeat(1000));

/** A folder with a manifest for GOOD, and `bytes` as the file. */
async function given(
  bytes: Buffer | undefined,
  shapes = { inputs: {}, outputs: {} },
): Promise<URL> {
  const manifest = {
    models: {
      thing: {
        file: 'thing.onnx',
        sha256: createHash('sha256').update(GOOD).digest('hex'),
        bytes: GOOD.length,
        ...shapes,
      },
    },
  };
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
  if (bytes !== undefined) {
    await writeFile(join(folder, 'thing.onnx'), bytes);
  }
  return pathToFileURL(join(folder, 'manifest.json'));
}

test('a good file is read', async () => {
  assert.deepEqual((await readModelFile('thing', await given(GOOD))).bytes, GOOD);
});

const FAULTS: [string, Buffer | undefined, RegExp][] = [
  ['cut short', GOOD.subarray(0, 400), /cut short: 400 of 1000 bytes/],
  ['empty', Buffer.alloc(0), /cut short: 0 of 1000 bytes/],
  ['with a flipped bit', Buffer.concat([GOOD.subarray(0, 999), Buffer.from('y')]), /SHA-256/],
  ['too long', Buffer.concat([GOOD, Buffer.from('x')]), /SHA-256/],
  [
    'a Git LFS pointer',
    Buffer.from('version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1000\n'),
    /Git LFS pointer.*git lfs pull/,
  ],
  [
    'a git-annex pointer',
    Buffer.from('/annex/objects/SHA256E-s1000--00.onnx\n'),
    /git-annex pointer/,
  ],
  ['missing', undefined, /cannot be read/],
];
for (const [what, bytes, message] of FAULTS) {
  test(`a file that is ${what} is refused`, async () => {
    await assert.rejects(readModelFile('thing', await given(bytes)), message);
  });
}

test('an unknown name and a broken manifest are refused', async () => {
  const url = await given(GOOD);
  await assert.rejects(readModelFile('other', url), /lists no model called "other"/);
  await writeFile(url, '{"models":{"thing":{"file":"thing.onnx"}}}');
  await assert.rejects(readModelFile('thing', url), /not a valid model manifest/);
});

test('a model of other shapes is refused before it runs', async () => {
  const url = await given(GOOD);
  const manifest = JSON.stringify({
    models: {
      'speech-articulation': {
        file: 'thing.onnx',
        sha256: createHash('sha256').update(GOOD).digest('hex'),
        bytes: GOOD.length,
        lookaheadMs: 60,
        inputs: { mel: ['batch', 4, 40], state: ['batch', 10] },
        outputs: { articulation: ['batch', 14], state_out: ['batch', 10] },
      },
    },
  });
  await writeFile(url, manifest);
  await assert.rejects(SpeechModel.load({ manifestUrl: url }), /another version of this server/);
});
