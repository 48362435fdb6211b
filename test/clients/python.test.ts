// The Python client against the real server, with a second WebRTC stack as the viewer; and its
// package, built and installed into an empty folder.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { test } from 'vitest';
import { canImport } from '../harness/python-packages.ts';
import { ROOT, firstFace, startServer } from '../harness/server.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';

const CLIENT = path.join(ROOT, 'clients/python');

const run = promisify(execFile);

/** A Python that has the one library of the client (Debian: python3-websockets). */
const PYTHON = ['python3', '/usr/bin/python3'].find((python) => canImport(python, 'websockets'));

test('an agent in Python: speech, replies, commands, a lost socket', async (t) => {
  t.skip(PYTHON === undefined, 'no Python with the package websockets');
  const server = await startServer();
  t.onTestFinished(async () => {
    await server.stop();
  });
  const program = path.join(import.meta.dirname, 'python_agent.py');
  const child = spawn(PYTHON!, [program, server.url, server.apiKey, await firstFace(server)], {
    env: { ...process.env, PYTHONPATH: path.join(CLIENT, 'src') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.onTestFinished(() => {
    child.kill();
  });
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += String(text);
  });
  const exited = once(child, 'exit');
  const told: Record<string, any> = {};
  const viewers: WeriftPeer[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    Object.assign(told, JSON.parse(line));
    if (viewers.length === 0) {
      viewers.push(await WeriftPeer.connect(server, told['viewerToken']));
    }
  }
  await exited;
  await viewers[0]?.connection.close();
  assert.equal(errors, '');
  const { heard, first, viewerToken: _, ...rest } = told;
  assert.ok(Math.abs(first[0] - 800) <= 1 && first[1] === false, `heard ${first[0]} ms`);
  assert.ok(heard[0] < 7000 && heard[1] > 0, `heard ${heard[0]} ms, dropped ${heard[1]} ms`);
  assert.deepEqual(rest, {
    refused: 'INVALID_FACE_ID',
    whole: true,
    utterance: 1,
    rejected: 'gesture',
    lost: 'CONNECTION_LOST',
    again: true,
    end: 'stop',
    over: 'INVALID_SESSION_TOKEN',
  });
});

test('its package is built, and installed into an empty folder, with its types', async (t) => {
  const canBuild = PYTHON !== undefined && canImport(PYTHON, 'websockets, setuptools, wheel, pip');
  t.skip(!canBuild, 'no Python with websockets, pip, setuptools and wheel');
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-python-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const source = path.join(folder, 'source');
  await cp(CLIENT, source, { recursive: true });
  const pip = ['-m', 'pip', '--quiet', '--disable-pip-version-check'];
  const wheels = ['--no-deps', '--no-build-isolation', '-w', folder, source];
  await run(PYTHON!, [...pip, 'wheel', ...wheels]);
  const [wheel] = (await readdir(folder)).filter((name) => name.endsWith('.whl'));
  const target = path.join(folder, 'installed');
  await run(PYTHON!, [...pip, 'install', '--no-deps', '--no-index', '--target', target, wheel!], {
    cwd: folder,
  });
  const program = 'import mouthpiece; print(mouthpiece.__file__, *mouthpiece.__all__)';
  const env = { ...process.env, PYTHONPATH: target };
  const { stdout } = await run(PYTHON!, ['-c', program], { env });
  assert.ok(stdout.startsWith(target) && stdout.includes(' Agent '), stdout);
  assert.ok((await readdir(path.join(target, 'mouthpiece'))).includes('py.typed'));
});

test('python -m build makes it, and an empty virtual environment takes the wheel', async (t) => {
  const needs =
    'build.env, ensurepip, setuptools, wheel; assert int(setuptools.__version__.split(".")[0]) > 65';
  const python = [process.env['BUILD_PYTHON'], 'python3', '/usr/bin/python3'].find(
    (name) => name !== undefined && canImport(name, needs),
  );
  t.skip(
    python === undefined,
    'no Python with build, venv, wheel and setuptools 66 (BUILD_PYTHON)',
  );
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-build-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const source = path.join(folder, 'source');
  await cp(CLIENT, source, { recursive: true });
  await run(python!, ['-m', 'build', '--no-isolation', '--outdir', folder, source]);
  const made = (await readdir(folder)).filter((name) => /\.(?:whl|tar\.gz)$/.test(name));
  assert.equal(made.length, 2, made.join(', '));
  const wheel = path.join(
    folder,
    made.find((name) => name.endsWith('.whl'))!,
  );
  await run(python!, ['-m', 'venv', path.join(folder, 'empty')]);
  const inside = path.join(folder, 'empty/bin/python');
  const pip = ['-m', 'pip', 'install', '--quiet', '--retries', '0', '--timeout', '10', wheel];
  const isInstalled = await run(inside, pip).then(
    () => true,
    () => false,
  );
  t.skip(!isInstalled, 'pip could not install the wheel: its dependency needs a package registry');
  const program = 'import mouthpiece; print(mouthpiece.__file__, *mouthpiece.__all__)';
  const { stdout } = await run(inside, ['-c', program], { cwd: folder });
  assert.ok(stdout.startsWith(path.join(folder, 'empty')) && stdout.includes(' Agent '), stdout);
});
