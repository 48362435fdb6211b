// What heartbeats of sessions keep: claims, quota slots, and the entries of the journal.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { newUuid } from '../../../src/base/ids.ts';
import { createLogger } from '../../../src/base/log.ts';
import { SLOT_TTL_MS, SessionQuota } from '../../../src/front/sessions/session-quota.ts';
import { SessionTokens } from '../../../src/front/sessions/session-tokens.ts';
import {
  JOURNAL_BEGIN,
  JOURNAL_END,
  JOURNAL_HEARTBEAT,
  JOURNAL_LOST,
} from '../../../src/front/store/journal-scripts.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { startRedis, type TestRedis } from '../redis-servers.ts';
import { GRANT } from './records.ts';

let redis: TestRedis;
let store: RedisStore;
beforeAll(async () => {
  redis = await startRedis();
  store = await RedisStore.connect({ urls: [redis.url] }, createLogger('silent'));
});
afterAll(async () => {
  await store.close();
  await redis.close();
});

test('after an outage a heartbeat takes claims and slots again, of any number', async () => {
  const tokens = new SessionTokens(store, 60);
  const token = await tokens.create(GRANT);
  assert.equal(await tokens.touch(token, 's1', 'server-a'), 'held', 'its claim had expired');
  assert.deepEqual(await tokens.claim(token, 's2', 'server-b'), {
    kind: 'in-use',
    sessionId: 's1',
    serverId: 'server-a',
  });
  const quota = new SessionQuota(store, 3);
  const ids = Array.from({ length: 2500 }, () => newUuid());
  await quota.touch('large', ids);
  assert.equal(await quota.usage('large'), 2500);
  const live = keys.apiKeyLive('large');
  const leftMs = await store.use((client) => client.zscore(live, ids.at(-1)!));
  assert.ok(Number(leftMs) > Date.now() + SLOT_TTL_MS / 2);
});

test('a heartbeat of the journal concerns the sessions that are in it', async () => {
  const journal = [keys.journal(), keys.journalRecords()];
  for (const id of ['here', 'ended']) {
    await store.run(JOURNAL_BEGIN, journal, [id, `record of ${id}`, 0]);
  }
  await store.run(JOURNAL_END, journal, ['ended']);
  await store.use((client) => client.zadd(keys.journal(), 1, 'here'));
  await store.run(JOURNAL_HEARTBEAT, journal, ['ended', 3000, 'here', 4000]);
  assert.deepEqual(await store.run(JOURNAL_LOST, journal, [60_000]), [], 'not lost any more');
  const [id, , ...rest] = (await store.run(JOURNAL_LOST, journal, [0])) as string[];
  assert.deepEqual([id, ...rest], ['here', '4000', 'record of here']);
  await store.run(JOURNAL_HEARTBEAT, journal, ['ended', 5000]);
  await store.run(JOURNAL_END, journal, ['here']);
  assert.equal(await store.use((client) => client.exists(...journal)), 0);
});
