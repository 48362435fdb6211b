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
  // The agent's side is not for pages.
  const forPages = scripts.filter((name) => name !== 'agent.js');
  const contents = await Promise.all(forPages.map((name) => readFile(path.join(folder, name))));
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
    import { connect, listDevices, SessionError, watch } from '@mouthpiece/client';
    import { connectAgent, createSession } from '@mouthpiece/client/agent';
    import type { MouthpieceAvatar } from '@mouthpiece/client/element';
    const session = await connect({ sessionToken: 't', baseUrl: 'https://media.example' });
    session.on('speaking', ({ at, utterance }) => console.log(at + utterance));
    session.addEventListener('end', ({ detail }) => console.log(detail.error?.code));
    const { microphones: [microphone], speakers: [speaker] } = await listDevices(true);
    await session.setMicrophone(microphone!.id);
    await session.setSpeaker(speaker!.id);
    const whole: boolean = await session.speak(await fetch('/voice'), { interrupt: true });
    const face = document.querySelector('mouthpiece-avatar') as MouthpieceAvatar;
    await face.speak(new Int16Array(16));
    const { kbps } = await session.stats();
    console.log(whole, kbps, new SessionError('X').code);
    const created = await createSession({ baseUrl: 'https://x.example', apiKey: 'k', faceId: 'ava' });
    const agent = await connectAgent(created);
    agent.on('viewer', ({ connected }) => console.log(connected));
    await agent.speak(new Uint8Array(2), { rate: 24_000 });
    const { heardMs }: { heardMs: number } = await agent.interrupt();
    const viewer = await watch({ viewerUrl: created.viewerUrl });
    viewer.on('end', ({ reason }) => console.log(reason, heardMs));
  `;
  assert.equal(await check(good), '');
  assert.match(await check(good.replace('utterance }', 'words }')), /words/);
});

test('its worker-free part can be imported, and the part of agents', async () => {
  const program = `
    import { connect } from '@mouthpiece/client';
    import { connectAgent } from '@mouthpiece/client/agent';
    console.log(typeof connect, typeof connectAgent);`;
  const args = ['--input-type=module', '-e', program];
  const { stdout } = await run(process.execPath, args, { cwd: project });
  assert.equal(stdout.trim(), 'function function');
});

test('an agent in a Node without WebSocket says which Node it needs', async () => {
  const program = `
    import { connectAgent } from '@mouthpiece/client/agent';
    await connectAgent({ agentUrl: 'ws://127.0.0.1:1' }).catch(({ message }) => console.log(message));`;
  const args = ['--no-experimental-websocket', '--input-type=module', '-e', program];
  const { stdout } = await run(process.execPath, args, { cwd: project });
  assert.match(stdout, /needs WebSocket.*Use Node 22 or later/);
});

const tone = (hertz: number, rate: number): Int16Array<ArrayBuffer> =>
  Int16Array.from({ length: rate }, (_, at) => 9000 * Math.sin((2 * Math.PI * hertz * at) / rate));

const rms = (samples: Int16Array): number =>
  Math.sqrt(samples.reduce((sum, value) => sum + value ** 2, 0) / samples.length);

/** What a source becomes: all its samples at 16 kHz. */
async function spoken(source: unknown, rate?: number): Promise<Int16Array> {
  const { speechChunks } = (await import(path.join(CLIENT, 'src/speech.ts'))) as {
    speechChunks: (
      source: unknown,
      signal: AbortSignal,
      rate?: number,
    ) => AsyncIterable<ArrayBufferView<ArrayBuffer>>;
  };
  const pieces: Buffer[] = [];
  for await (const chunk of speechChunks(source, new AbortController().signal, rate)) {
    pieces.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  }
  const all = new Uint8Array(Buffer.concat(pieces));
  return new Int16Array(all.buffer);
}

test('speech of other rates is resampled, however it is cut', async () => {
  const original = tone(440, 16_000);
  for (const rate of [8000, 24_000, 44_100]) {
    const bytes = new Uint8Array(tone(440, rate).buffer);
    const cuts = [];
    for (let at = 0; at < bytes.length; at += 1001) {
      cuts.push(bytes.subarray(at, at + 1001));
    }
    const samples = await spoken(cuts, rate);
    assert.ok(Math.abs(samples.length - 16_000) <= 2, `${rate} Hz: ${samples.length} samples`);
    // But for the ends, where the tone begins and stops.
    const errors = samples.map((value, at) => value - (original[at] ?? 0)).slice(200, -200);
    assert.ok(rms(errors) < 90, `${rate} Hz: an error of ${rms(errors)}`);
  }
  // What 16 kHz cannot hold is taken out, not folded back.
  const high = await spoken(new Uint8Array(tone(11_000, 24_000).buffer), 24_000);
  assert.ok(rms(high.slice(200, -200)) < 60, `11 kHz: ${rms(high)}`);
  await assert.rejects(spoken(new Uint8Array(4), 1), /4000 to 192000/);
});

test('outside of browsers WAV files are read; others are refused with a word that helps', async () => {
  const wav = (rate: number, channels: number, samples: Int16Array<ArrayBuffer>): Uint8Array => {
    const header = Buffer.alloc(44);
    header.write('RIFF', 0);
    header.write('WAVEfmt ', 8);
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(1, 20);
    header.writeUInt16LE(channels, 22);
    header.writeUInt32LE(rate, 24);
    header.writeUInt16LE(16, 34);
    header.write('data', 36);
    // A length that is not known, as of a file that was streamed.
    header.writeUInt32LE(0xffff_ffff, 40);
    return Buffer.concat([header, Buffer.from(samples.buffer)]);
  };
  const body = wav(24_000, 2, new Int16Array(2 * 24_000).fill(5000)) as BodyInit;
  const samples = await spoken(new Response(body, { headers: { 'content-type': 'audio/wav' } }));
  assert.ok(Math.abs(samples.length - 16_000) <= 2, `${samples.length} samples`);
  assert.ok(Math.abs(samples[8000]! - 5000) < 10);
  const told = { headers: { 'content-type': 'audio/pcm;rate=8000' } };
  assert.equal((await spoken(new Response(new Uint8Array(1600), told))).length, 1600);
  await assert.rejects(spoken(new Response('ID3')), /Outside of browsers give WAV/);
  await assert.rejects(spoken(new Response('', { status: 503 })), /503/);
});

test('it knows every message of the server, and which errors pass', async () => {
  const { RETRYABLE } = (await import(path.join(CLIENT, 'src/retry.ts'))) as {
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
    ['events', 'connection', 'session', 'agent'].map((name) =>
      readFile(path.join(CLIENT, `src/${name}.ts`), 'utf8'),
    ),
  );
  for (const reason of Object.keys(RATE_REASONS)) {
    assert.ok(sources.join('\n').includes(`'${reason}'`), reason);
  }
  for (const [type, { sockets }] of Object.entries(SERVER_MESSAGES)) {
    if (sockets.includes('p2p') || sockets.includes('agent')) {
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
