// Every session gets its history record: with Redis away, and after a crash of the server.
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, afterEach, test, vi } from 'vitest';
import { newUuid } from '../../../src/base/ids.ts';
import { createLogger } from '../../../src/base/log.ts';
import { sleep, wallMs, wallSeconds } from '../../../src/base/time.ts';
import { History, type HistoryRecord } from '../../../src/front/history/history.ts';
import { SessionRecorder, type SessionStart } from '../../../src/front/history/session-recorder.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { startRedis, type TestRedis } from '../redis-servers.ts';

const log = createLogger('silent');
let redis: TestRedis;
let store: RedisStore;
let history: History;
let dataDir: string;
const open = (serverId = 'server-a'): Promise<SessionRecorder> =>
  SessionRecorder.open({ store, history, serverId, dataDir, log });

beforeAll(async () => {
  redis = await startRedis();
  store = await RedisStore.connect({ urls: [redis.url] }, log);
  history = new History(store, 30);
});
afterAll(async () => {
  await store.close();
  await redis.close();
});
beforeEach(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-recorder-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

const session = (ownerId: string, startMs = wallMs() - 5000): SessionStart => ({
  id: newUuid(),
  ownerId,
  tokenId: 't',
  faceId: 'ava',
  kind: 'p2p',
  aggregator: 'team',
  keyName: 'key',
  startMs,
});

async function recordsOf(ownerId: string): Promise<HistoryRecord[]> {
  const found: HistoryRecord[] = [];
  for await (const page of history.pages(ownerId, undefined, undefined, wallSeconds())) {
    found.push(...page.map((text) => JSON.parse(text) as HistoryRecord));
  }
  return found;
}

test('an ended session has a record with every field', async () => {
  const recorder = await open();
  const owner = newUuid();
  const start = session(owner);
  await recorder.begin(start);
  await recorder.end(start.id);
  const [first] = await recordsOf(owner);
  await recorder.end(start.id); // a second end changes nothing
  const records = await recordsOf(owner);
  assert.deepEqual(records, [first]);
  const { sessionTotalTime, endTime, ...fields } = records[0] ?? assert.fail();
  assert.ok(sessionTotalTime >= 5 && sessionTotalTime < 15, `${sessionTotalTime} s`);
  assert.equal(endTime, Math.floor((start.startMs + sessionTotalTime * 1000) / 1000));
  assert.deepEqual(fields, {
    id: start.id,
    userId: owner,
    sessionTokenId: 't',
    face_id: 'ava',
    kind: 'p2p',
    endUserAggregator: 'team',
    apiKeyName: 'key',
    startTime: Math.floor(start.startMs / 1000),
  });
  await recorder.close();
});

test('while Redis is away records wait in a file, and are written when it is back', async () => {
  const recorder = await open();
  const owner = newUuid();
  const [one, two] = [session(owner), session(owner)];
  await recorder.begin(one);
  await recorder.begin(two);
  await redis.stop();
  await recorder.end(one.id);
  await recorder.end(two.id);
  assert.equal(recorder.pendingCount, 2);
  const file = path.join(dataDir, 'history', 'pending.jsonl');
  assert.equal((await readFile(file, 'utf8')).trim().split('\n').length, 2);
  const back = new Promise<void>((resolve) => {
    store.onReady(resolve);
  });
  await redis.start();
  await back;
  await recorder.flush();
  assert.equal(recorder.pendingCount, 0);
  assert.deepEqual((await recordsOf(owner)).map(({ id }) => id).sort(), [one.id, two.id].sort());
  await recorder.close();
  await assert.rejects(readFile(file), { code: 'ENOENT' });
});

test('records in the file survive a crash without Redis; a truncated line is ignored', async () => {
  const owner = newUuid();
  const crashed = await open();
  const start = session(owner);
  await crashed.begin(start);
  await redis.stop();
  await crashed.end(start.id);
  await appendFile(path.join(dataDir, 'history', 'pending.jsonl'), '{"id":"cut sho');
  const back = new Promise<void>((resolve) => {
    store.onReady(resolve);
  });
  await redis.start();
  await back;
  const next = await open();
  assert.deepEqual(
    (await recordsOf(owner)).map(({ id }) => id),
    [start.id],
  );
  await next.close();
  await crashed.close();
});

test('a session of a killed server is recorded at the next start, up to its last heartbeat', async () => {
  const owner = newUuid();
  const killed = await open('server-k');
  const start = session(owner, wallMs() - 20_000);
  await killed.begin(start); // and never again
  const other = await open('server-other');
  assert.deepEqual(
    await recordsOf(owner),
    [],
    'another server leaves it alone while its server may be running',
  );
  const restarted = await open('server-k');
  const [found] = await recordsOf(owner);
  assert.equal(found?.id, start.id);
  assert.ok(
    found && Math.abs(found.sessionTotalTime - 20) < 2,
    `lasted ${found?.sessionTotalTime}`,
  );
  await Promise.all([other.close(), restarted.close(), killed.close()]);
  assert.equal((await recordsOf(owner)).length, 1, 'still one record');
});

test('sessions that run when the server stops are recorded', async () => {
  const owner = newUuid();
  const recorder = await open('server-s');
  await recorder.begin(session(owner));
  await recorder.close();
  assert.equal((await recordsOf(owner)).length, 1);
});

for (const [what, byMs] of [
  ['back by an hour', -3_600_000],
  ['on by an hour', 3_600_000],
] as const) {
  test(`the wall clock is set ${what}: durations of sessions are right, also after a kill`, async () => {
    const owner = newUuid();
    const killed = await open('server-w');
    const [ends, lost] = [session(owner), session(owner)];
    await killed.begin(ends);
    await killed.begin(lost);
    const realNow = Date.now;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + byMs);
    try {
      await sleep(300);
      await killed.end(ends.id);
      await sleep(5200); // a beat of the other one
      const restarted = await open('server-w');
      clock.mockRestore();
      const seconds = new Map(
        (await recordsOf(owner)).map(({ id, sessionTotalTime }) => [id, sessionTotalTime]),
      );
      const [ended = -1, found = -1] = [seconds.get(ends.id), seconds.get(lost.id)];
      assert.ok(ended >= 5.3 && ended < 8, `the one that ended lasted ${ended} s`);
      assert.ok(found >= 9.9 && found < 14, `the one that was lost lasted ${found} s`);
      await restarted.close();
    } finally {
      clock.mockRestore();
      await killed.close();
    }
  });
}
