// The examples, as a newcomer runs them: in an empty folder, with the packed packages, against the
// real server; the pages in a real browser.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, test } from 'vitest';
import sharp from 'sharp';
import { WebSocketServer } from 'ws';
import { connectAgent, createSession } from '../../clients/js/src/agent.ts';
import type { TestBrowser } from '../harness/browser.ts';
import { freePorts } from '../harness/free-ports.ts';
import { LIVEKIT_KEY, LIVEKIT_PROGRAM, LiveKitTestServer } from '../harness/livekit-server.ts';
import { patience } from '../harness/machine.ts';
import { canImport } from '../harness/python-packages.ts';
import { ROOT, createToken, firstFace, startServer, type TestServer } from '../harness/server.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { codeOf, RunningProgram } from '../harness/running-program.ts';
import { toWav } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';

const run = promisify(execFile);
const REACT = path.join(ROOT, 'test/clients/react');

let server: TestServer;
let browser: TestBrowser;
/** Where the examples run. */
let folder: string;
/** What the examples are told. */
let env: NodeJS.ProcessEnv;
/** A service with the voice of OpenAI's API: half a second of a tone at 24 kHz. */
const voice = http.createServer((_request, response) => {
  response.setHeader('content-type', 'audio/pcm');
  response.end(tone(0.5));
});
const tone = (seconds: number): Buffer =>
  Buffer.from(
    Int16Array.from({ length: seconds * 24_000 }, (_, at) => 9000 * Math.sin(at / 18)).buffer,
  );
const listen = async (one: http.Server): Promise<string> => {
  one.listen(0, '127.0.0.1');
  await once(one, 'listening');
  return `http://127.0.0.1:${(one.address() as AddressInfo).port}`;
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-examples-'));
  const npm = async (cwd: string, ...args: string[]) =>
    await run('npm', [...args, '--no-audit', '--no-fund', '--loglevel', 'error'], { cwd });
  if (!existsSync(path.join(REACT, 'node_modules/react-dom'))) {
    await npm(REACT, 'ci', '--ignore-scripts');
  }
  // The header of another service, beside our own.
  const API_KEY_HEADERS = 'x-service-api-key,x-other-api-key';
  [server, browser] = await Promise.all([startServer({ env: { API_KEY_HEADERS } }), openBrowser()]);
  // In a copy: another test packs the original, perhaps at the same time.
  const client = path.join(folder, 'client');
  await cp(path.join(ROOT, 'clients/js'), client, {
    recursive: true,
    filter: (file) => !file.endsWith('/dist'),
  });
  await symlink(path.join(ROOT, 'node_modules'), path.join(client, 'node_modules'));
  const settings = path.join(client, 'tsconfig.json');
  const inherited = await readFile(settings, 'utf8');
  await writeFile(settings, inherited.replace('../..', ROOT));
  await npm(client, 'pack', '--pack-destination', folder);
  await npm(path.join(ROOT, 'clients/react'), 'pack', '--pack-destination', folder);
  await writeFile(path.join(folder, 'package.json'), '{"private": true, "type": "module"}');
  const archives = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  const given = ['react', 'react-dom', '@types/react'].map((name) =>
    path.join(REACT, 'node_modules', name),
  );
  const ws = path.join(ROOT, 'node_modules/ws');
  await npm(folder, 'install', '--offline', ...archives.map((name) => `./${name}`), ...given, ws);
  await cp(path.join(ROOT, 'examples'), folder, { recursive: true });
  env = {
    ...process.env,
    MOUTHPIECE_URL: server.url,
    MOUTHPIECE_KEY: server.apiKey,
    FACE: await firstFace(server),
    TTS_BASE_URL: await listen(voice),
    PORT: '0',
  };
});
afterAll(async () => {
  voice.closeAllConnections();
  voice.close();
  await browser?.close();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs an example. */
const start = (command: string, args: string[], more: NodeJS.ProcessEnv = {}): RunningProgram =>
  new RunningProgram(command, args, { cwd: folder, env: { ...env, ...more } });

/** Joins as the viewer of an example. */
const join = async (viewerUrl: string): Promise<WeriftPeer> =>
  await WeriftPeer.connect(server, new URL(viewerUrl).searchParams.get('token')!);

test('a web server with an agent, its page, and a page in React', async (t) => {
  const agent = start(process.execPath, ['agent.mjs']);
  t.onTestFinished(() => {
    agent.child.kill();
  });
  const url = (await agent.says(/(http\S+)/)).replace('localhost', '127.0.0.1');
  const page = await browser.newPage({ width: 600, height: 600 });
  await page.goto(url);
  await page.waitForSelector('mouthpiece-avatar[state=connected]');
  assert.equal(await agent.says(/heard (\d+) ms/), '500');

  // React: bundled, as any project does, and served beside the same agent.
  const rolldown = path.join(ROOT, 'node_modules/rolldown/bin/cli.mjs');
  const bundle = ['react/main.jsx', '--file', 'react/main.js', '--format', 'esm'];
  await run(process.execPath, [rolldown, ...bundle], { cwd: folder });
  const files: Record<string, string> = { '/': 'index.html', '/main.js': 'main.js' };
  const site = http.createServer((request, response) => {
    const name = files[request.url!];
    response.setHeader('content-type', name === 'main.js' ? 'text/javascript' : 'text/html');
    const answer =
      name === undefined
        ? fetch(url, { method: 'POST' }).then(async (reply) => await reply.text())
        : readFile(path.join(folder, 'react', name), 'utf8');
    answer.then(
      (text) => response.end(text),
      () => response.destroy(),
    );
  });
  t.onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  await page.goto(await listen(site));
  // The greeting waits for the viewer; at its end the agent hangs up.
  await agent.says(/heard \d+ ms\s+heard (500) ms/);
  await until(async () => (await page.content()).includes('Good-bye!'), 20_000 * patience(), 'end');
  await page.close();
});

test('the hook of React: in strict mode one session, which speaks, and ends with its component', async () => {
  await writeFile(
    path.join(folder, 'hook.jsx'),
    `import { StrictMode, useEffect } from 'react';
    import { createRoot } from 'react-dom/client';
    import { useMouthpiece } from '@mouthpiece/react';
    function Face(props) {
      const face = useMouthpiece(props);
      useEffect(() => { window.face = face; (window.states ??= []).push(face.state); });
      return <video ref={face.videoRef} />;
    }
    const root = createRoot(document.body);
    const options = { baseUrl: window.baseUrl, sessionToken: window.token };
    root.render(<StrictMode><Face {...options} /></StrictMode>);
    window.leave = () => root.render(<p>left</p>);`,
  );
  const rolldown = path.join(ROOT, 'node_modules/rolldown/bin/cli.mjs');
  const bundle = ['hook.jsx', '--file', 'hook.js', '--format', 'iife'];
  await run(process.execPath, [rolldown, ...bundle], { cwd: folder });
  const page = await browser.newPage({ width: 600, height: 600 });
  await page.goto(`${server.url}/auto/room/none`);
  await page.evaluate(
    (baseUrl, token) => Object.assign(globalThis, { baseUrl, token }),
    server.url,
    await createToken(server),
  );
  await page.evaluate(await readFile(path.join(folder, 'hook.js'), 'utf8'));
  const state = async (): Promise<string> => (await page.evaluate('window.face?.state')) as string;
  await until(async () => (await state()) === 'idle', 20_000 * patience(), 'idle');
  const told = await page.evaluate(async () => {
    const scope = globalThis as any;
    const { session, speak } = scope.face;
    const silent = new Promise((resolve) => {
      session.on('silent', ({ utterance }: any) => resolve(utterance));
    });
    const isWhole = await speak(new Int16Array(8000).fill(3000));
    const utterance = await silent;
    const isShown = document.querySelector('video')!.srcObject === session.stream;
    scope.leave();
    while (session.state !== 'ended') {
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    }
    return { isWhole, utterance, isShown, states: [...new Set(scope.states)] };
  });
  assert.deepEqual(told, {
    isWhole: true,
    utterance: 1,
    isShown: true,
    states: ['closed', 'connecting', 'idle', 'speaking'],
  });
  await page.close();
});

test('the types of the React package hold in a strict project', async () => {
  await writeFile(
    path.join(folder, 'page.tsx'),
    `import { Mouthpiece, useMouthpiece, type MouthpieceFace } from '@mouthpiece/react';
    import { useRef } from 'react';
    export function Page(props: { viewerUrl?: string }) {
      const ref = useRef<MouthpieceFace>(null);
      const { state, videoRef, speak } = useMouthpiece({ sessionToken: 't', motion: true });
      const greet = async () => await speak(await fetch('/voice'), { interrupt: true });
      return <><Mouthpiece ref={ref} {...props} onEnd={({ reason }) => console.log(reason)} />
        <video ref={videoRef} onClick={greet} />{state}</>;
    }`,
  );
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = '--strict --noEmit --target es2022 --lib es2022,dom --module nodenext';
  const args = [tsc, ...options.split(' '), '--jsx', 'react-jsx', 'page.tsx'];
  await run(process.execPath, args, { cwd: folder }).catch((error: { stdout: string }) => {
    assert.fail(error.stdout);
  });
});

test('a realtime model: it speaks, and is told what was heard when the user interrupts', async (t) => {
  const site = http.createServer();
  const url = await listen(site);
  const sockets = new WebSocketServer({ server: site });
  const events: any[] = [];
  sockets.on('connection', (socket) => {
    const tell = (event: object): void => socket.send(JSON.stringify(event));
    socket.on('message', (text) => {
      const event = JSON.parse((text as Buffer).toString());
      events.push(event);
      if (event.type === 'response.create') {
        const delta = tone(8).toString('base64');
        tell({ type: 'response.output_audio.delta', item_id: 'item-1', delta });
        setTimeout(tell, 2000, { type: 'input_audio_buffer.speech_started' });
      } else {
        socket.close();
      }
    });
  });
  t.onTestFinished(() => {
    sockets.close();
    site.close();
  });
  const agent = start(process.execPath, ['realtime.mjs'], {
    REALTIME_URL: url.replace('http', 'ws'),
    REALTIME_KEY: 'k',
  });
  t.onTestFinished(() => {
    agent.child.kill();
  });
  const viewer = await join(await agent.says(/viewer: (\S+)/));
  await until(() => events.length === 2, 20_000 * patience(), 'truncate');
  await viewer.connection.close();
  const { type, item_id: item, audio_end_ms: heardMs } = events[1];
  assert.deepEqual([type, item], ['conversation.item.truncate', 'item-1']);
  assert.ok(heardMs > 0 && heardMs < 8000, `heard ${heardMs} ms`);
});

const PYTHON = ['python3', '/usr/bin/python3'].find((name) => canImport(name, 'websockets'));
const PYTHONPATH = path.join(ROOT, 'clients/python/src');

test('an agent in Python', async (t) => {
  t.skip(PYTHON === undefined, 'no Python with the package websockets');
  const agent = start(PYTHON!, ['agent.py', 'Hello!'], { PYTHONPATH });
  const viewer = await join(await agent.says(/(http\S+)/));
  assert.equal(await agent.says(/heard (\d+) ms/), '500');
  await viewer.connection.close();
});

/** Half a second that is heard: of silence the server tells nothing. */
const writeSound = async () =>
  await writeFile(
    path.join(folder, 'hello.wav'),
    toWav(Int16Array.from({ length: 8000 }, (_, at) => 9000 * Math.sin(at / 12))),
  );

for (const [language, readme, file] of [
  ['js', 'clients/js/README.md', 'readme.mjs'],
  ['python', 'clients/python/README.md', 'readme.py'],
] as const) {
  test(`the agent of ${readme} runs as it stands`, async (t) => {
    const program = language === 'js' ? process.execPath : PYTHON;
    t.skip(program === undefined, 'no Python with the package websockets');
    await writeFile(path.join(folder, file), await codeOf(readme, language, 'flush('));
    await writeSound();
    const agent = start(program!, [file], { PYTHONPATH });
    t.onTestFinished(() => {
      agent.child.kill();
    });
    const token = await agent.says(/watch http\S+\/viewer#(\S+)/);
    const viewer = await WeriftPeer.connect(server, token);
    assert.equal(await agent.says(/heard (\d+) ms$/m), '500');
    await until(() => agent.child.exitCode !== null, 10_000 * patience(), 'its end');
    assert.equal(agent.child.exitCode, 0);
    await viewer.connection.close();
  });
}

test('the page and the server of clients/js/README.md run as they stand', async (t) => {
  const [port] = await freePorts(1);
  for (const [file, language, text] of [
    ['server.mjs', 'js', 'createServer'],
    ['page.html', 'html', 'connect('],
  ] as const) {
    const code = await codeOf('clients/js/README.md', language, text);
    await writeFile(
      path.join(folder, file),
      code.replaceAll('http://localhost:8080', server.url).replace('3000', String(port)),
    );
  }
  await writeSound();
  const site = start(process.execPath, ['server.mjs']);
  t.onTestFinished(() => {
    site.child.kill();
  });
  const url = `http://127.0.0.1:${port}`;
  const isUp = () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isUp, 10_000 * patience(), 'its server');
  const page = await browser.newPage({ width: 600, height: 600 });
  const heard: string[] = [];
  page.on('console', (message) => heard.push(message.text()));
  await page.goto(url);
  await page.waitForFunction(() => {
    const { button, video } = globalThis as any;
    return button.onclick !== null && video.videoWidth > 0;
  });
  await page.click('#button');
  await until(() => heard.some((text) => text.startsWith('utterance 1')), 20_000 * patience());
  await page.close();
});

test('the page for OBS: a face on nothing, by a token in the fragment of its address', async () => {
  const session = await createSession({
    baseUrl: server.url,
    apiKey: server.apiKey,
    faceId: env['FACE']!,
  });
  const page = await browser.newPage({ width: 600, height: 300 });
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${server.url}/viewer#${session.tokens.viewer}`);
  await page.waitForSelector('body[data-state=connected]');
  await page.waitForFunction(
    '(({ currentTime, videoWidth, paused }) => currentTime > 0.5 && videoWidth === 512 && !paused)' +
      "(document.querySelector('video'))",
  );
  // The face in the middle; beside it what is behind the page.
  const { data, info } = await sharp(await page.screenshot({ omitBackground: true }))
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const alpha = (x: number, y: number): number => data[(y * info.width + x) * 4 + 3]!;
  assert.deepEqual([alpha(5, 5), alpha(595, 295), alpha(300, 150)], [0, 0, 255]);
  const secret = session.tokens.viewer.split('.')[1]!;
  assert.deepEqual(
    asked.filter((url) => new URL(url).search.includes(secret)),
    [],
  );
  // Its end leaves nothing in the scene; without a token the page says what to do.
  const agent = await connectAgent(session);
  await agent.finish();
  await page.waitForSelector('body[data-state=ended]');
  assert.equal(await page.$eval('#problem', (element) => element.hasAttribute('hidden')), true);
  // Only the fragment changes: the page reloads itself.
  await page.goto(`${server.url}/viewer#`);
  const problem = await page.waitForSelector('#problem:not([hidden])');
  assert.match(await problem!.evaluate(({ textContent }) => textContent), /has no token/);
  await page.close();
});

test('moving from another service: the snippet of the document, with its own header', async () => {
  const text = await readFile(path.join(ROOT, 'docs/moving.md'), 'utf8');
  const [, snippet] = /```js\n([\s\S]*?)```/.exec(text)!;
  const page = await browser.newPage({ width: 300, height: 300 });
  await page.goto(`${server.url}/auto/room/none`);
  const told = (await page.evaluate(`(async () => {
    const [BASE_URL, API_KEY, FACE_ID] = ${JSON.stringify([server.url, server.apiKey, env['FACE']])};
    const video = document.body.appendChild(document.createElement('video'));
    const speech = new Int16Array(16_000).fill(3000);
    ${snippet!}
    while (!messages.includes('SILENT')) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return {
      messages: messages.filter((text) => /^[A-Z]+$/.test(text)),
      peer: peer.connectionState,
    };
  })()`)) as { messages: string[]; peer: string };
  assert.equal(told.peer, 'connected');
  assert.deepEqual(
    [...new Set(told.messages)].filter((text) => text !== 'ACK'),
    ['START', 'SPEAK', 'SILENT'],
  );
  await page.close();
});

test('an agent in a LiveKit room, with a face', async (t) => {
  const python = process.env['LIVEKIT_PYTHON'] ?? 'python3';
  t.skip(
    LIVEKIT_PROGRAM === undefined || !canImport(python, 'livekit.api, livekit.rtc'),
    'no livekit-server, or no Python with livekit and livekit-api (LIVEKIT_PYTHON)',
  );
  const livekit = await LiveKitTestServer.start();
  t.onTestFinished(() => livekit.stop());
  const agent = start(python, ['livekit_agent.py', 'room-1', 'Hello!'], {
    LIVEKIT_URL: livekit.url,
    LIVEKIT_API_KEY: LIVEKIT_KEY.key,
    LIVEKIT_API_SECRET: LIVEKIT_KEY.secret,
  });
  t.onTestFinished(() => {
    agent.child.kill();
  });
  const heardMs = Number(await agent.says(/heard (\d+) ms/));
  assert.ok(Math.abs(heardMs - 500) <= 20, `heard ${heardMs} ms`);
});

test('a video from a sound file', async () => {
  const [sound, video] = ['speech.wav', 'video.mp4'];
  const silence = ['-v', 'error', '-f', 'lavfi', '-i', 'sine=frequency=200:duration=0.5', sound];
  await run('ffmpeg', silence, { cwd: folder });
  await run(process.execPath, ['video.mjs', sound, video], { cwd: folder, env });
  assert.equal((await readFile(path.join(folder, video))).toString('latin1', 4, 8), 'ftyp');
});
