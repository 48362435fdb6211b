// The package of the JavaScript client: packed, installed into an empty project, with types that
// hold, small; and the same sources as the server serves them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, test } from 'vitest';
import { SOCKET_ERRORS } from '../../src/base/socket-errors.ts';
import { clientRoutes } from '../../src/front/api/client-files.ts';
import { ARKIT_BLEND_SHAPES } from '../../src/media/arkit.ts';
import { RATE_REASONS, SERVER_MESSAGES } from '../../src/front/sessions/server-messages.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../..');
const CLIENT = path.join(ROOT, 'clients/js');
const TSC = path.join(ROOT, 'node_modules/typescript/bin/tsc');
const MAX_GZIPPED_BYTES = 15_000;

let project: string;
beforeAll(async () => {
  project = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-client-'));
  const npm = { cwd: CLIENT };
  await run('npm', ['pack', '--pack-destination', project, '--loglevel', 'error'], npm);
  await writeFile(path.join(project, 'package.json'), '{"private": true, "type": "module"}');
  const [archive] = (await readdir(project)).filter((name) => name.endsWith('.tgz'));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${archive!}`], {
    cwd: project,
  });
});
afterAll(async () => {
  await rm(project, { recursive: true, force: true });
  await rm(path.join(CLIENT, 'dist'), { recursive: true, force: true });
});

test('the package has no dependencies, and its scripts are small', async () => {
  const installed = path.join(project, 'node_modules/@mouthpiece/client');
  const manifest = JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8')) as {
    dependencies?: unknown;
  };
  assert.equal(manifest.dependencies, undefined);
  const folder = path.join(installed, 'dist');
  const scripts = (await readdir(folder)).filter((name) => name.endsWith('.js'));
  const contents = await Promise.all(scripts.map((name) => readFile(path.join(folder, name))));
  const { length } = gzipSync(Buffer.concat(contents), { level: 9 });
  console.info(`${length} bytes gzipped`);
  assert.ok(length < MAX_GZIPPED_BYTES, `${length} bytes`);
  assert.ok((await readdir(installed)).includes('README.md'));
});

test('its types hold in a strict project, and find mistakes', async () => {
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom'];
  const check = async (source: string): Promise<string> => {
    await writeFile(path.join(project, 'page.ts'), source);
    const args = [TSC, ...options, '--module', 'nodenext', 'page.ts'];
    return await run(process.execPath, args, { cwd: project }).then(
      () => '',
      (error: { stdout: string }) => error.stdout,
    );
  };
  const good = `
    import { connect, SessionError } from '@mouthpiece/client';
    import type { MouthpieceAvatar } from '@mouthpiece/client/element';
    const session = await connect({ sessionToken: 't', baseUrl: 'https://media.example' });
    session.on('speaking', ({ at, utterance }) => console.log(at + utterance));
    session.addEventListener('end', ({ detail }) => console.log(detail.error?.code));
    const whole: boolean = await session.speak(await fetch('/voice'), { interrupt: true });
    const face = document.querySelector('mouthpiece-avatar') as MouthpieceAvatar;
    await face.speak(new Int16Array(16));
    const { kbps } = await session.stats();
    console.log(whole, kbps, new SessionError('X').code);
  `;
  assert.equal(await check(good), '');
  assert.match(await check(good.replace('utterance }', 'words }')), /words/);
});

test('its worker-free part can be imported', async () => {
  const { stdout } = await run(
    process.execPath,
    ['-e', "import('@mouthpiece/client').then((all) => console.log(typeof all.connect))"],
    { cwd: project },
  );
  assert.equal(stdout.trim(), 'function');
});

test('it knows every message of the server, and which errors pass', async () => {
  const { RETRYABLE } = (await import(path.join(CLIENT, 'src/session.ts'))) as {
    RETRYABLE: string[];
  };
  const passing = Object.entries(SOCKET_ERRORS)
    .filter(([, retry]) => retry === 'now' || retry === 'later')
    .map(([code]) => code);
  const ofTheClient = ['CONNECTION_LOST', 'SOCKET_FAILED'];
  assert.deepEqual([...RETRYABLE].sort(), [...passing, ...ofTheClient].sort());
  const { ARKIT_BLEND_SHAPES: names } = (await import(
    path.join(CLIENT, 'src/blend-shapes.ts')
  )) as { ARKIT_BLEND_SHAPES: string[] };
  assert.deepEqual(names, ARKIT_BLEND_SHAPES);
  const sources = await Promise.all(
    ['events', 'connection', 'session'].map((name) =>
      readFile(path.join(CLIENT, `src/${name}.ts`), 'utf8'),
    ),
  );
  for (const reason of Object.keys(RATE_REASONS)) {
    assert.ok(sources.join('\n').includes(`'${reason}'`), reason);
  }
  for (const [type, { sockets }] of Object.entries(SERVER_MESSAGES)) {
    if (sockets.includes('p2p')) {
      assert.match(sources.join('\n'), new RegExp(`\\b${type}[:']`), type);
    }
  }
});

test('the server serves the sources as scripts, to pages of any origin', async () => {
  const routes = await clientRoutes(path.join(CLIENT, 'src'));
  const paths = routes.map((route) => route.path);
  const asked = (header: string) => ({ header: () => header }) as never;
  for (const route of routes) {
    const { headers, body, status } = await route.handler(asked(''));
    assert.equal(status, 200);
    assert.ok(body?.kind === 'text' && body.contentType.startsWith('text/javascript'));
    for (const [, name] of body.text.matchAll(/from '\.\/([^']+)'/g)) {
      assert.ok(paths.includes(`/client/${name!}`), `${route.path} imports ${name!}`);
    }
    assert.equal(headers?.['access-control-allow-origin'], '*');
    assert.equal((await route.handler(asked(headers['etag']!))).status, 304);
  }
  assert.ok(paths.includes('/client/index.js') && paths.includes('/client/speech-worklet.js'));
});
