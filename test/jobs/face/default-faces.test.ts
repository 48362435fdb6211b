import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';
import {
  buildDefaultFaces,
  dependencyFiles,
  listDefaultFaces,
} from '../../../src/jobs/face/default-faces.ts';
import { decodeFaceAsset } from '../../../src/media/face-asset.ts';
import { defaultPortrait } from './portraits.ts';

test('the ids of the default faces stay the same, because clients store them', () => {
  assert.deepEqual(
    listDefaultFaces()
      .map(({ id }) => id)
      .toSorted(),
    ['amara', 'ava', 'mei', 'noah', 'priya', 'ruth', 'samuel', 'walter'],
  );
  for (const { id, file } of listDefaultFaces()) {
    assert.ok(defaultPortrait(file).length < 400 << 10, `${id}: portraits stay small`);
  }
});

test('every default face has a head, and a place that lights it', () => {
  const models = path.resolve(import.meta.dirname, '../../../models/faces');
  const places = JSON.parse(
    readFileSync(path.join(models, 'render/surroundings.json'), 'utf8'),
  ) as Record<string, unknown>;
  const ids = listDefaultFaces().map(({ id }) => id);
  assert.deepEqual(Object.keys(places).toSorted(), ids.toSorted());
  for (const id of ids) {
    assert.ok(existsSync(path.join(models, 'generator/heads', `${id}.bin`)), id);
  }
});

test('makes an asset and a preview of each face, and makes nothing the second time', async () => {
  const outDir = mkdtempSync(path.join(os.tmpdir(), 'faces-'));
  const lines: string[] = [];
  await buildDefaultFaces({ outDir, log: (line) => lines.push(line) });
  assert.equal(lines.length, listDefaultFaces().length);
  const times = readdirSync(outDir).map((file) => statSync(path.join(outDir, file)).mtimeMs);
  for (const { id, name } of listDefaultFaces()) {
    assert.equal(decodeFaceAsset(readFileSync(path.join(outDir, `${id}.face`))).meta.name, name);
    assert.ok(readFileSync(path.join(outDir, `${id}.jpg`)).length > 5000);
  }
  await buildDefaultFaces({ outDir, log: (line) => lines.push(line) });
  assert.equal(lines.length, listDefaultFaces().length);
  assert.deepEqual(
    readdirSync(outDir).map((file) => statSync(path.join(outDir, file)).mtimeMs),
    times,
  );
  rmSync(outDir, { recursive: true });
});

test('a change to any file of face creation makes the assets again', () => {
  const root = path.resolve(import.meta.dirname, '../../..');
  const files = dependencyFiles().map((file) => path.relative(root, file));
  for (const file of [
    'src/jobs/face/create-face.ts',
    'src/jobs/face/detect/crop.ts',
    'src/jobs/face/imaging/inpaint.ts',
    'src/jobs/face/regions/closed-eye.ts',
    'src/media/face-asset.ts',
  ]) {
    assert.ok(files.includes(file), `${file} is not among ${files.join(', ')}`);
  }
});
