// The contact sheet script: makes pictures from an asset, and refuses wrong arguments.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { test } from 'vitest';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { syntheticAsset } from './synthetic-face.ts';

const SCRIPT = path.resolve(import.meta.dirname, '../../../scripts/faces-sheet.ts');
const run = async (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [SCRIPT, ...args]);

test('a sheet shows every shape and the sentence', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'faces-sheet-'));
  try {
    const asset = path.join(folder, 'drawn.face');
    await writeFile(asset, syntheticAsset());
    await run(asset, '--out', folder, '--zoom', 'mouth', '--emotion', 'happy', '--format', 'webp');
    assert.deepEqual((await readdir(folder)).sort(), [
      'drawn-mouth.webp',
      'drawn-spoken-mouth.webp',
      'drawn.face',
    ]);
    const { width, height } = await sharp(path.join(folder, 'drawn-mouth.webp')).metadata();
    assert.ok(width === 2000 && height > 1000);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('wrong arguments are refused with the usage', async () => {
  await assert.rejects(run(), /Name a portrait/);
  await assert.rejects(
    run('x.face', '--zoom', 'nose'),
    /--zoom nose: must be one of face, mouth, eyes/,
  );
});
