// Things die: a worker, the database, the server itself. What is left must go on, and whoever was
// hit must be told.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test, vi } from 'vitest';
import { patience } from '../harness/machine.ts';
import { LightPeer } from '../../bench/peers/light-peer.ts';
import { createLogger } from '../../src/base/log.ts';
import { sleep } from '../../src/base/time.ts';
import type { SessionStatsReport } from '../../src/link/messages.ts';
import { loadConfig } from '../../src/config.ts';
import { type RunningServer, startServer } from '../../src/server.ts';
import { TalkThread } from '../../src/front/talk/talk-thread.ts';
import { ROOT, call } from '../harness/server.ts';
import { synthesize } from '../harness/speech.ts';

const holdsConversations = existsSync(
  path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'),
);

let dataDir = '';
let server: RunningServer;

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-failures-'));
  server = await startServer(
    loadConfig({ PORT: '0', DATA_DIR: dataDir, WORKERS: '2' }),
    createLogger('fatal'),
  );
});

afterAll(async () => {
  await server.stop(0);
  await rm(dataDir, { recursive: true, force: true });
});

const connect = (): Promise<LightPeer> =>
  LightPeer.connect({ target: server, codec: 'vp8', faceId: 'ava' });

async function statsOf({ sessionId }: LightPeer): Promise<SessionStatsReport> {
  const { body } = await call(server, `/sessions/${sessionId}/stats`);
  return body as SessionStatsReport;
}

async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 10_000 * patience(),
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await isSo())) {
    assert.ok(performance.now() < deadline, `not within ${limitMs} ms: ${what}`);
    await sleep(20);
  }
}

test(
  'a worker that dies takes only its own sessions, they are told within a second, and it is ' +
    'replaced',
  async () => {
    const peers = [await connect(), await connect()];
    const handles = server.pool.handles;
    assert.deepEqual(
      handles.map((handle) => handle.sessions),
      [1, 1],
      'the two sessions lie on two workers',
    );
    const killed = handles[0]!;
    const startedMs = performance.now();
    killed.kill();
    await until(
      'one session is over',
      () => peers.some((peer) => peer.figures.state === 'over'),
      1000 * patience(),
    );
    const hit = peers.find((peer) => peer.figures.state === 'over')!;
    const spared = peers.find((peer) => peer !== hit)!;
    assert.match(hit.figures.ending ?? '', /^ERROR WORKER_LOST/);
    assert.ok(performance.now() - startedMs < 1000 * patience());
    const framesBefore = spared.figures.frames;
    await until(
      'the other session goes on',
      () => spared.figures.frames > framesBefore + 30,
      3000 * patience(),
    );
    await until(
      'the worker is replaced',
      () => server.pool.handles[0] !== killed && server.pool.handles[0]!.isReady,
    );
    const again = await connect();
    await until('the new worker serves', () => again.figures.frames > 10);
    await Promise.all([hit.close(), spared.close(), again.close()]);
    await until(
      'every slot is free',
      () =>
        server.sessions.size === 0 && server.pool.handles.every((handle) => handle.sessions === 0),
      2000,
    );
  },
);

test.skipIf(!holdsConversations)(
  'a thread of conversations that dies: told in words, replaced, and no other session notices',
  async () => {
    // The instance of the server; what runs on the thread is not told before it ends.
    const starts = vi.spyOn(TalkThread.prototype, 'start');
    try {
      const { pcm } = await synthesize('hello how are you');
      const converse = (): Promise<LightPeer> =>
        LightPeer.connect({
          target: server,
          codec: 'vp8',
          faceId: 'ava',
          microphone: pcm,
          token: { ttsProvider: 'local', firstMessage: 'Welcome.' },
        });
      const [plain, talking] = [await connect(), await converse()];
      await until('frames', () => plain.figures.frames > 30 && talking.figures.frames > 10);
      const skippedBefore = (await statsOf(plain)).framesSkipped;
      const thread = starts.mock.contexts[0] as TalkThread;
      await thread.kill();
      await until('the conversation is over', () => talking.figures.state === 'over');
      assert.match(
        talking.figures.ending ?? '',
        /^ERROR CONVERSATION_FAILED .*holds conversations failed\. Please start another one/,
      );
      const framesBefore = plain.figures.frames;
      const next = await converse();
      await until('the next conversation has a face', () => next.figures.frames > 10);
      await until('the other session goes on', () => plain.figures.frames > framesBefore + 30);
      assert.equal(thread.size, 1, 'a new thread holds it');
      const { framesSkipped } = await statsOf(plain);
      const lost = framesSkipped - skippedBefore;
      console.info(`${lost} frames skipped beside a thread that ends and one that starts`);
      assert.ok(lost <= 5 + 10 * (patience() - 1), `${lost} skipped`);
      assert.equal(plain.figures.state, 'live');
      await Promise.all([plain.close(), talking.close(), next.close()]);
      await until('every slot is free', () => server.sessions.size === 0 && thread.size === 0);
    } finally {
      starts.mockRestore();
    }
  },
);

test(
  'the database goes away and comes back: live sessions go on, their records are written ' +
    'afterwards',
  async () => {
    const peer = await connect();
    const redis = execFileSync('pgrep', ['-f', `redis-server.*${dataDir}`], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number);
    assert.ok(redis.length >= 1, 'the private redis-server runs');
    for (const pid of redis) {
      process.kill(pid, 'SIGSTOP');
    }
    const refused = await call(server, '/compose/token', { faceId: 'ava' });
    assert.ok(refused.status >= 400, `a token request says so: ${refused.status}`);
    const framesBefore = peer.figures.frames;
    const { pcm } = await synthesize('The database is gone and I go on talking.');
    void peer.speak(pcm, 'burst');
    await until('frames keep coming', () => peer.figures.frames > framesBefore + 45, 3000);
    await until(
      'it speaks',
      () => peer.figures.utterances.some(({ audibleMs }) => audibleMs !== undefined),
      3000,
    );
    await peer.close();
    await until('the session is over', () => server.sessions.size === 0, 3000);
    for (const pid of redis) {
      process.kill(pid, 'SIGCONT');
    }
    await until(
      'its record is in history',
      async () => {
        const { status, body } = await call(server, '/history/sessions');
        return (
          status === 200 &&
          (body.sessions as { id: string }[]).some(({ id }) => id === peer.sessionId)
        );
      },
      15_000,
    );
  },
);

test(
  'drain: new sessions are refused with the reason, the running one finishes its sentence, ' +
    'then STOP',
  async () => {
    const peer = await connect();
    const { pcm } = await synthesize('This sentence is said to its very end.');
    void peer.speak(pcm, 'burst');
    await until(
      'it speaks',
      () => peer.figures.utterances.some(({ speakMs }) => speakMs !== undefined),
      3000,
    );
    const stopped = server.sessions.drain(5000, () =>
      peer.figures.utterances.every(({ silentMs }) => silentMs !== undefined),
    );
    const ready = await fetch(`${server.url}/readyz`);
    assert.equal(ready.status, 503);
    const refused = await call(server, '/compose/token', { faceId: 'ava' });
    assert.equal(refused.status, 429);
    assert.equal(refused.body.session_token, 'FAIL TOKEN');
    await stopped;
    assert.notEqual(
      peer.figures.utterances[0]!.silentMs,
      undefined,
      'the sentence was heard to its end',
    );
    await until('the client is told', () => peer.figures.state === 'over', 2000);
    assert.match(peer.figures.ending ?? '', /^STOP/);
    await peer.close();
  },
);
