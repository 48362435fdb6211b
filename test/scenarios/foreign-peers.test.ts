// Programs of others on both sides of the real server: a Pipecat pipeline that speaks through our
// Python client, and aiortc and pion as viewers by WHEP. Each is skipped where it is missing.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, test, type TestContext } from 'vitest';
import { cacheFolder } from '../../scripts/go-program.mjs';
import { patience } from '../harness/machine.ts';
import { findPython } from '../harness/python-packages.ts';
import { ROOT, call, firstFace, startServer, type TestServer } from '../harness/server.ts';
import { until } from '../harness/until.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';

const PIPECAT = findPython('pipecat', 'pipecat, websockets');
const AIORTC = findPython('aiortc', 'aiortc');
const PION = path.join(cacheFolder(), 'whep-pion');
const HARNESS = path.join(ROOT, 'test/harness');
const LIMIT_MS = 20_000;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server?.stop();
});

/** A program that tells JSON, one message a line. */
class Program {
  readonly told: any[] = [];
  readonly exited: Promise<unknown>;
  errors = '';
  readonly #child;

  constructor(t: TestContext, command: string, args: readonly string[]) {
    this.#child = spawn(command, args, {
      env: { ...process.env, PYTHONPATH: path.join(ROOT, 'clients/python/src') },
    });
    this.#child.stderr.on('data', (text) => {
      this.errors += String(text);
    });
    createInterface(this.#child.stdout).on('line', (line) => this.told.push(JSON.parse(line)));
    this.exited = once(this.#child, 'close');
    t.onTestFinished(async () => {
      this.#child.kill('SIGKILL');
      await this.exited;
    });
  }

  /** The first message of an event with these fields. */
  async of(event: string, fields: object = {}): Promise<any> {
    const find = () =>
      this.told.find(
        (message) =>
          message.event === event &&
          Object.entries(fields).every(([name, value]) => message[name] === value),
      );
    const what = `${event} ${JSON.stringify(fields)}`;
    await until(() => find() !== undefined, LIMIT_MS * patience(), what).catch((error) => {
      throw new Error(`${error}\n${JSON.stringify(this.told)}\n${this.errors}`, { cause: error });
    });
    return find();
  }

  tell(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }
  quit(): void {
    this.#child.stdin.end();
  }
}

test('a Pipecat pipeline speaks: replies to their ends, interruptions, a session that is over', async (t) => {
  t.skip(PIPECAT === undefined, 'no Python with pipecat-ai and websockets (CONTRIBUTING.md)');
  const args = [server.url, server.apiKey, await firstFace(server)];
  const program = new Program(t, PIPECAT!, [path.join(HARNESS, 'pipecat_agent.py'), ...args]);
  const { viewerToken } = await program.of('session');
  const viewer = await WeriftPeer.connect(server, viewerToken);
  await program.exited;
  await viewer.connection.close();
  const seen = program.told.at(-1);
  assert.equal(seen.event, 'seen', program.errors);
  const { event: _, heardOfReply, heardOfSpeech, ...rest } = seen;
  // Half a second after it began, and nothing of the replies before.
  for (const heardMs of [heardOfReply, heardOfSpeech]) {
    assert.ok(heardMs >= 300 && heardMs < 1500 * patience(), `heard ${heardMs} ms`);
  }
  const spoken = ['started', 'stopped'];
  assert.deepEqual(rest, {
    whole: spoken,
    next: spoken,
    last: spoken,
    end: 'stop',
    passed: 0,
    isActive: true,
    downstream: 10,
    errors: [],
    refused: ['The session of the face has ended: INVALID_SESSION_TOKEN'],
  });
});

/** The URL and the token of a viewer by WHEP. */
async function viewer(): Promise<readonly string[]> {
  const { body } = await call(server, '/sessions', { faceId: await firstFace(server) });
  return [body.viewerUrl.split('?')[0], body.tokens.viewer];
}

test('aiortc watches by WHEP: an answer, a candidate, pictures and sound, the end', async (t) => {
  t.skip(AIORTC === undefined, 'no Python with aiortc (Debian: python3-aiortc)');
  const program = new Program(t, AIORTC!, [
    path.join(HARNESS, 'whep_aiortc.py'),
    ...(await viewer()),
  ]);
  const { version } = await program.of('version');
  console.info(`aiortc ${version}`);
  const { status, type, etag } = await program.of('answer');
  assert.deepEqual([status, type], [201, 'application/sdp']);
  assert.match(etag, /^"\d+"$/);
  assert.equal((await program.of('trickle')).status, 204);
  assert.deepEqual((await program.of('frames', { kind: 'video', count: 50 })).size, [512, 512]);
  assert.deepEqual((await program.of('frames', { kind: 'audio', count: 50 })).size, [48_000, 960]);
  program.quit();
  const { status: deleted, again } = await program.of('deleted');
  assert.deepEqual([deleted, again], [200, 404]);
  await program.exited;
  assert.equal(program.errors, '');
});

test('pion watches by WHEP: candidates that come later, restarts of ICE, the end', async (t) => {
  t.skip(!existsSync(PION), 'there is no whep-pion: CONTRIBUTING.md');
  const program = new Program(t, PION, await viewer());
  const { status, etag } = await program.of('answer');
  assert.equal(status, 201);
  assert.match(etag, /^"\d+"$/);
  assert.equal((await program.of('trickle')).status, 204);
  await program.of('state', { state: 'connected' });
  for (const generation of [0, 1, 2]) {
    const [video, audio] = await Promise.all(
      ['video', 'audio'].map((kind) => program.of('frames', { kind, generation })),
    );
    assert.deepEqual([video.codec, audio.codec], ['video/VP8', 'audio/opus']);
    if (generation < 2) {
      program.tell('restart');
    }
  }
  program.quit();
  assert.equal((await program.of('deleted')).status, 200);
  await program.exited;
  const restarts = program.told.filter(({ event }) => event === 'restart');
  const restarted = { event: 'restart', status: 200, isNew: true };
  assert.deepEqual(restarts, [restarted, restarted]);
  assert.equal(program.errors, '');
});
