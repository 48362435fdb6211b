// The judge of faces: a sheet, a film and a table from a folder of portraits, also without MediaPipe; wrong
// arguments are refused.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { test } from 'vitest';
import { promisify } from 'node:util';
import sharp from 'sharp';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const run = async (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(process.execPath, [path.join(ROOT, 'scripts/faces-judge.ts'), ...args]);

test('a sheet and a film of each face, and a table; other pictures are named with the reason', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'faces-judge-'));
  try {
    await copyFile(path.join(ROOT, 'models/faces/ava.webp'), path.join(folder, 'ava.webp'));
    const grey = { width: 300, height: 300, channels: 3, background: '#888' } as const;
    await writeFile(path.join(folder, 'wall.png'), await sharp({ create: grey }).png().toBuffer());
    const out = path.join(folder, 'out');
    const { stderr } = await run(folder, '--out', out, '--python', 'no-such-python');
    assert.match(stderr, /no-such-python has no MediaPipe/);
    assert.deepEqual((await readdir(out)).sort(), ['ava-film.png', 'ava.png', 'judge.md']);
    const table = await readFile(path.join(out, 'judge.md'), 'utf8');
    assert.match(table, /^\| ava .*\| \d+\.\d s \| \d+ % \| \d+ % \|$/m);
    assert.match(table, /^- wall\.png: /m);
    const size = async (file: string): Promise<readonly number[]> => {
      const { width, height } = await sharp(path.join(out, file)).metadata();
      return [width, height];
    };
    assert.deepEqual(await size('ava.png'), [1536, 552]);
    assert.deepEqual(await size('ava-film.png'), [1280, 828]);
  } finally {
    await rm(folder, { recursive: true });
  }
}, 240_000);

test('wrong arguments are refused with the usage', async () => {
  await assert.rejects(run(), /Name one folder/);
  await assert.rejects(run('/no/such/folder'), /Cannot read \/no\/such\/folder/);
  await assert.rejects(run('.', '--motion', 'wild'), /--motion wild: must be one of none, calm/);
});
