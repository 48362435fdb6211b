import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import ort from 'onnxruntime-node';
import { convertLandmarkModels, LANDMARK_MODELS } from '../../../models/convert/index.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'landmarks-'));
const fileOf = (name: string, at = folder): string => path.join(at, `${name}.onnx`);

beforeAll(async () => convertLandmarkModels({ outDir: folder }));
afterAll(() => rmSync(folder, { recursive: true }));

test('gives the same bytes every time', async () => {
  const again = mkdtempSync(path.join(os.tmpdir(), 'landmarks-'));
  await convertLandmarkModels({ outDir: again });
  for (const name of LANDMARK_MODELS) {
    assert.ok(readFileSync(fileOf(name)).equals(readFileSync(fileOf(name, again))), name);
  }
  rmSync(again, { recursive: true });
});

test('keeps finished files, and makes damaged ones again', async () => {
  const before = statSync(fileOf('facemesh')).mtimeMs;
  const lines: string[] = [];
  await convertLandmarkModels({ outDir: folder, log: (line) => lines.push(line) });
  assert.equal(statSync(fileOf('facemesh')).mtimeMs, before);
  assert.equal(lines.length, 0);
  const whole = readFileSync(fileOf('blazeface'));
  truncateSync(fileOf('blazeface'), 1000);
  await convertLandmarkModels({ outDir: folder, log: (line) => lines.push(line) });
  assert.ok(readFileSync(fileOf('blazeface')).equals(whole));
  assert.equal(lines.length, LANDMARK_MODELS.length);
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
});
