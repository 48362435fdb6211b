// Programs of others on both sides of the real server: a Pipecat pipeline that speaks through our
// Python client, and aiortc as a viewer by WHEP. Each is skipped where its packages are missing.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, test, type TestContext } from 'vitest';
import { patience } from '../harness/machine.ts';
import { findPython } from '../harness/python-packages.ts';
import { ROOT, call, firstFace, startServer, type TestServer } from '../harness/server.ts';
import { until } from '../harness/until.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';

const PIPECAT = findPython('pipecat', 'pipecat, websockets');
const AIORTC = findPython('aiortc', 'aiortc');
const LIMIT_MS = 20_000;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server?.stop();
});

/** A program of test/harness that tells JSON, one message a line. */
class Program {
  readonly told: any[] = [];
  readonly exited: Promise<unknown>;
  errors = '';
  readonly #child;

  constructor(t: TestContext, python: string, name: string, args: readonly string[]) {
    this.#child = spawn(python, [path.join(ROOT, 'test/harness', name), ...args], {
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

  async next(wanted: (message: any) => boolean, what: string, from = 0): Promise<any> {
    const find = () => this.told.slice(from).find(wanted);
    await until(() => find() !== undefined, LIMIT_MS * patience(), what).catch((error) => {
      throw new Error(`${error}\n${JSON.stringify(this.told)}\n${this.errors}`, { cause: error });
    });
    return find();
  }

  quit(): void {
    this.#child.stdin.write('\n');
  }
}

test('a Pipecat pipeline speaks: replies to their ends, interruptions, a session that is over', async (t) => {
  t.skip(PIPECAT === undefined, 'no Python with pipecat-ai and websockets (CONTRIBUTING.md)');
  const args = [server.url, server.apiKey, await firstFace(server)];
  const program = new Program(t, PIPECAT!, 'pipecat_agent.py', args);
  const { viewerToken } = await program.next((message) => message.viewerToken, 'a session');
  const viewer = await WeriftPeer.connect(server, viewerToken);
  await program.exited;
  await viewer.connection.close();
  const seen = program.told.at(-1);
  assert.ok('refused' in seen, program.errors);
  const { heardOfReply, heardOfSpeech, ...rest } = seen;
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

test('aiortc watches by WHEP: an answer, a candidate, pictures and sound, the end', async (t) => {
  t.skip(AIORTC === undefined, 'no Python with aiortc (Debian: python3-aiortc)');
  const { body: session } = await call(server, '/sessions', { faceId: await firstFace(server) });
  const url = session.viewerUrl.split('?')[0];
  const program = new Program(t, AIORTC!, 'whep_aiortc.py', [url, session.tokens.viewer]);
  const of = (event: string, fields: object = {}) =>
    program.next(
      (message) =>
        message.event === event &&
        Object.entries(fields).every(([name, value]) => message[name] === value),
      `${event} ${JSON.stringify(fields)}`,
    );
  const { version } = await of('version');
  console.info(`aiortc ${version}`);
  const { status, type, etag } = await of('answer');
  assert.deepEqual([status, type], [201, 'application/sdp']);
  assert.match(etag, /^"\d+"$/);
  assert.equal((await of('trickle')).status, 204);
  assert.deepEqual((await of('frames', { kind: 'video', count: 50 })).size, [512, 512]);
  assert.deepEqual((await of('frames', { kind: 'audio', count: 50 })).size, [48_000, 960]);
  program.quit();
  const { status: deleted, again } = await of('deleted');
  assert.deepEqual([deleted, again], [200, 404]);
  await program.exited;
  assert.equal(program.errors, '');
});
