import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import ort from 'onnxruntime-node';
import { convertFaceModels, FACE_MODELS } from '../../../models/convert/index.ts';
import { convertTflite } from '../../../models/convert/tflite.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'face-models-'));
const fileOf = (name: string, at = folder): string => path.join(at, `${name}.onnx`);

beforeAll(async () => convertFaceModels({ outDir: folder }));
afterAll(() => rmSync(folder, { recursive: true }));

test('gives the same bytes every time', async () => {
  const again = mkdtempSync(path.join(os.tmpdir(), 'face-models-'));
  await convertFaceModels({ outDir: again });
  for (const name of FACE_MODELS) {
    assert.ok(readFileSync(fileOf(name)).equals(readFileSync(fileOf(name, again))), name);
  }
  rmSync(again, { recursive: true });
});

test('keeps finished files, and makes damaged ones again', async () => {
  const before = statSync(fileOf('facemesh')).mtimeMs;
  const lines: string[] = [];
  await convertFaceModels({ outDir: folder, log: (line) => lines.push(line) });
  assert.equal(statSync(fileOf('facemesh')).mtimeMs, before);
  assert.equal(lines.length, 0);
  const whole = readFileSync(fileOf('blazeface'));
  truncateSync(fileOf('blazeface'), 1000);
  await convertFaceModels({ outDir: folder, log: (line) => lines.push(line) });
  assert.ok(readFileSync(fileOf('blazeface')).equals(whole));
  assert.equal(lines.length, FACE_MODELS.length);
});

test('the networks load and have the shapes that face creation reads', async () => {
  const shapesOf = async (name: string, side: number): Promise<string[]> => {
    const session = await ort.InferenceSession.create(fileOf(name), { intraOpNumThreads: 1 });
    const outputs = await session.run({
      [session.inputNames[0]!]: new ort.Tensor(new Float32Array(side * side * 3), [
        1,
        side,
        side,
        3,
      ]),
    });
    return Object.values(outputs)
      .map(({ dims }) => dims.join('x'))
      .toSorted();
  };
  assert.deepEqual(await shapesOf('blazeface', 256), [
    '1x384x1',
    '1x384x16',
    '1x512x1',
    '1x512x16',
  ]);
  assert.deepEqual(await shapesOf('facemesh', 192), ['1x1', '1x1404', '1x266']);
  assert.deepEqual(await shapesOf('selfie', 256), ['1x256x256x1']);
});

test('refuses TensorFlow Lite models with operators or options that it does not know', () => {
  const entry = createRequire(import.meta.url).resolve('@mediapipe/selfie_segmentation');
  const model = readFileSync(path.join(path.dirname(entry), 'selfie_segmentation.tflite'));
  const changed = (from: Buffer, to: Buffer): Buffer => {
    const copy = Buffer.from(model);
    const at = copy.indexOf(from);
    assert.ok(at > 0);
    to.copy(copy, at);
    return copy;
  };
  const refuses = (bytes: Buffer, message: string): void => {
    assert.throws(() => convertTflite(bytes, 'model'), new Error(message));
  };
  assert.equal(convertTflite(model, 'model').nodes.at(-2)!.opType, 'Sigmoid');
  refuses(
    changed(Buffer.from('Convolution2DTransposeBias'), Buffer.from('Convolution3DTransposeBias')),
    'operator Convolution3DTransposeBias (segment) is not supported',
  );
  // Padding and strides of the last convolution: copies of the kernel would overlap.
  const options = (...values: number[]): Buffer => Buffer.from(Int32Array.from(values).buffer);
  refuses(
    changed(Buffer.concat([options(12), options(1, 2, 2)]), options(12, 1, 1, 1)),
    'the options of segment are not supported',
  );
  refuses(
    changed(Buffer.from('TFL3'), Buffer.from('TFL2')),
    'model is not a TensorFlow Lite model',
  );
});
