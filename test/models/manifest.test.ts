// The model manifest: hashes, licences and total size of the listed files, and what the model card
// must state.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { test } from 'vitest';
import { InferenceSession } from 'onnxruntime-node';
import { MANIFEST_URL, readModelFile } from '../../src/pipeline/inference/model-file.ts';

interface Listed {
  file: string;
  sha256: string;
  bytes: number;
  licence: string;
  source: string;
  inputs: Record<string, unknown>;
  outputs: Record<string, unknown>;
}
const { models } = JSON.parse(await readFile(MANIFEST_URL, 'utf8')) as {
  models: Record<string, Listed>;
};
const SIZE_LIMIT = 2 * 1024 * 1024;

test('every listed file has its hash, a source and a licence, and is small', async () => {
  assert.ok(Object.keys(models).length > 0);
  for (const [name, entry] of Object.entries(models)) {
    const { bytes } = await readModelFile(name);
    assert.equal(createHash('sha256').update(bytes).digest('hex'), entry.sha256);
    assert.ok(entry.licence.length > 0 && entry.source.length > 0, name);
    assert.ok(entry.bytes <= SIZE_LIMIT, `${name} has ${entry.bytes} bytes`);
  }
});

test('inputs and outputs of the speech model are those that the manifest names', async () => {
  const { bytes, entry } = await readModelFile('speech-articulation');
  const session = await InferenceSession.create(bytes, { intraOpNumThreads: 1 });
  assert.deepEqual([...session.inputNames].sort(), Object.keys(entry.inputs).sort());
  assert.deepEqual([...session.outputNames].sort(), Object.keys(entry.outputs).sort());
  for (const meta of session.inputMetadata) {
    assert.ok(meta.isTensor);
    assert.deepEqual(meta.shape, entry.inputs[meta.name]);
  }
  await session.release();
});

test('the model card names the voices, the ones held out, and the look-ahead', async () => {
  const card = await readFile(new URL('MODEL_CARD.md', MANIFEST_URL), 'utf8');
  for (const word of [
    'flite',
    'espeak-ng',
    'festival',
    'awb',
    'ked',
    'held out',
    'licence',
    '60 ms',
    models['speech-articulation']!.sha256,
  ]) {
    assert.ok(card.includes(word), word);
  }
});
