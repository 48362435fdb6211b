// What the stores promise, held against a single redis-server and a cluster of three.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ServiceError } from '../../../src/base/errors.ts';
import { hashSecret, newUuid } from '../../../src/base/ids.ts';
import { createLogger } from '../../../src/base/log.ts';
import { sleep, wallSeconds } from '../../../src/base/time.ts';
import { SLOT_TTL_MS, SessionQuota } from '../../../src/front/sessions/session-quota.ts';
import { SessionTokens } from '../../../src/front/sessions/session-tokens.ts';
import { Agents } from '../../../src/front/accounts/agents.ts';
import { ApiKeys } from '../../../src/front/accounts/api-keys.ts';
import { AutoTokens } from '../../../src/front/accounts/auto-tokens.ts';
import { DEFAULT_LOOK } from '../../../src/media/face-look.ts';
import { FaceRecords } from '../../../src/front/faces/face-records.ts';
import { History, type HistoryRecord } from '../../../src/front/history/history.ts';
import { JobQueue, LEASE_MS } from '../../../src/front/queue/job-queue.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { ConversationStore } from '../../../src/front/talk/conversation-store.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { SecretBox } from '../../../src/front/accounts/secret-box.ts';
import { code, GRANT, recordOf } from './records.ts';
import { startCluster, startRedis, type TestRedis } from '../redis-servers.ts';

for (const [kind, start] of [
  ['single', startRedis],
  ['cluster', startCluster],
] as const) {
  describe(`stores on a ${kind} Redis`, () => {
    let redis: TestRedis;
    let store: RedisStore;
    beforeAll(async () => {
      redis = await start();
      store = await RedisStore.connect({ urls: redis.url.split(',') }, createLogger('silent'));
    });
    afterAll(async () => {
      await store.close();
      await redis.close();
    });

    test('the Redis server reports its version', async () => {
      const info = await store.use((client) => client.info('server'));
      console.info(
        `${kind}: ${/^valkey_version:.*/m.exec(info)?.[0] ?? /^redis_version:.*/m.exec(info)?.[0]}`,
      );
      assert.match(info, /^redis_version:/m);
    });

    test('an API key works until it is revoked, and its text is not stored', async () => {
      const apiKeys = new ApiKeys(store, 1000);
      const { key, id } = await apiKeys.create('owner', 'laptop');
      assert.deepEqual(await apiKeys.authenticate(key), {
        ownerId: 'owner',
        keyId: id,
        keyName: 'laptop',
        isOperator: false,
      });
      const stored = JSON.stringify(await store.use((client) => client.hgetall(keys.apiKey(id))));
      assert.ok(!stored.includes(key) && !stored.includes(key.slice(3)));
      await assert.rejects(apiKeys.authenticate(`${key}x`), code('INVALID_API_KEY'));
      await assert.rejects(apiKeys.authenticate(''), code('INVALID_API_KEY'));
      assert.equal((await apiKeys.list()).find((known) => known.id === id)?.name, 'laptop');
      assert.ok(await apiKeys.revoke(id));
      await assert.rejects(apiKeys.authenticate(key), code('INVALID_API_KEY'));
      assert.equal(await apiKeys.revoke('0000000000000000'), false);
    });

    test('registering the same key again changes nothing', async () => {
      const apiKeys = new ApiKeys(store, 1000);
      assert.equal((await apiKeys.register('a key somebody chose', 'first', 'one')).created, true);
      assert.equal(
        (await apiKeys.register('a key somebody chose', 'second', 'two')).created,
        false,
      );
      assert.equal((await apiKeys.authenticate('a key somebody chose')).ownerId, 'first');
    });

    test('requests over the rate are refused with the time to wait, and accepted after it', async () => {
      const apiKeys = new ApiKeys(store, 5);
      const { key } = await apiKeys.create('owner', 'fast');
      const outcomes = await Promise.allSettled(
        Array.from({ length: 30 }, () => apiKeys.authenticate(key)),
      );
      const granted = outcomes.filter(({ status }) => status === 'fulfilled').length;
      assert.ok(granted >= 10 && granted <= 12, `burst of 10 allowed ${granted}`);
      const refused = outcomes.find(
        (outcome): outcome is PromiseRejectedResult => outcome.status === 'rejected',
      )?.reason as ServiceError;
      assert.equal(refused.code, 'RATE_LIMITED');
      assert.ok((refused.retryAfterSeconds ?? 0) > 0 && (refused.retryAfterSeconds ?? 9) <= 0.2);
      await sleep(250);
      await apiKeys.authenticate(key);
    });

    test('a Redis clock that is set back locks no key and extends no slot or lease', async () => {
      const later = Date.now() + 3_600_000;
      const apiKeys = new ApiKeys(store, 5);
      const { key, id } = await apiKeys.create('owner', 'clock');
      await store.use((client) => client.hset(keys.apiKeyBucket(id), { tokens: 3, atMs: later }));
      for (let i = 0; i < 3; i++) {
        await apiKeys.authenticate(key);
      }

      const quota = new SessionQuota(store, 5);
      await quota.acquire(id, 'mine');
      await store.use((client) => client.zadd(keys.apiKeyLive(id), later, 'of-a-dead-server'));
      await quota.acquire(id, 'mine');
      const until = Number(
        await store.use((client) => client.zscore(keys.apiKeyLive(id), 'of-a-dead-server')),
      );
      assert.ok(until <= Date.now() + SLOT_TTL_MS + 1000, `held for ${until - Date.now()} ms`);

      const queue = new JobQueue<object>({ store, name: 'static', serverId: 'dead', capacity: 5 });
      await queue.enqueue('job', {});
      await queue.take();
      await store.use((client) => client.zadd(keys.jobsRunning('static'), later, 'job'));
      await queue.take();
      const lease = Number(
        await store.use((client) => client.zscore(keys.jobsRunning('static'), 'job')),
      );
      assert.ok(lease <= Date.now() + LEASE_MS + 1000, `leased for ${lease - Date.now()} ms`);
      await queue.finish('job');
    });

    test('a token keeps its grant, allows one live session, and is taken over from a dead one', async () => {
      const tokens = new SessionTokens(store, 60);
      const token = await tokens.create(GRANT);
      assert.equal((await tokens.find(token))?.faceId, 'ava');
      assert.equal(await tokens.find('x'.repeat(43)), undefined);
      assert.equal((await tokens.claim(token, 's1', 'server-a')).kind, 'claimed');
      assert.equal(
        (await tokens.claim(token, 's1', 'server-a')).kind,
        'claimed',
        'its own session may claim again',
      );
      assert.deepEqual(await tokens.claim(token, 's2', 'server-b'), {
        kind: 'in-use',
        sessionId: 's1',
        serverId: 'server-a',
      });
      assert.equal(
        (await tokens.claim(token, 's2', 'server-a', 's1')).kind,
        'claimed',
        'replacing one known to be dead',
      );
      assert.equal(
        await tokens.touch(token, 's1', 'server-a'),
        'lost',
        'the first one learns that it was replaced',
      );
      assert.equal(await tokens.touch(token, 's2', 'server-a'), 'held');
      assert.equal((await tokens.claim(token, 's3', 'server-a')).kind, 'in-use');
      assert.equal(
        await tokens.touch(token, 's2', 'server-a'),
        'held',
        'on its own server it is asked directly',
      );
      assert.equal((await tokens.claim(token, 's3', 'server-b')).kind, 'in-use');
      assert.equal(
        await tokens.touch(token, 's2', 'server-a'),
        'wanted',
        'it hears that it is asked for elsewhere',
      );
      assert.equal(await tokens.touch(token, 's2', 'server-a'), 'held', 'once');
      await tokens.release(token, 's1');
      assert.equal(
        (await tokens.claim(token, 's3', 'server-b')).kind,
        'in-use',
        'a release by another changes nothing',
      );
      await tokens.release(token, 's2');
      assert.equal((await tokens.claim(token, 's3', 'server-b')).kind, 'claimed');
      assert.equal((await tokens.claim('unknown-token-of-some-length', 's', 'x')).kind, 'unknown');
    });

    test('of many simultaneous claims of one token exactly one succeeds', async () => {
      const tokens = new SessionTokens(store, 60);
      const token = await tokens.create(GRANT);
      const results = await Promise.all(
        Array.from({ length: 20 }, (_session, i) => tokens.claim(token, `s${i}`, 'a')),
      );
      assert.equal(results.filter(({ kind: outcome }) => outcome === 'claimed').length, 1);
    });

    test('a token expires', async () => {
      const tokens = new SessionTokens(store, 1);
      const token = await tokens.create(GRANT);
      await sleep(1100);
      assert.equal(await tokens.find(token), undefined);
      assert.equal((await tokens.claim(token, 's', 'a')).kind, 'unknown');
    });

    test('a key has no more concurrent sessions than its limit', async () => {
      const quota = new SessionQuota(store, 3);
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_session, i) => quota.acquire('busy', `s${i}`)),
      );
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 3);
      assert.equal(await quota.usage('busy'), 3);
      await assert.rejects(quota.check('busy'), code('RATE_LIMITED'));
      await quota.release('busy', 's0');
      await quota.acquire('busy', 'another');
      await quota.acquire('busy', 'another'); // the same session again takes no second slot
      assert.equal(await quota.usage('busy'), 3);
    });

    test('a revoked key starts no sessions, also with tokens that it made before', async () => {
      const apiKeys = new ApiKeys(store, 1000);
      const quota = new SessionQuota(store, 3);
      const { id } = await apiKeys.create('owner', 'lost phone');
      await quota.acquire(id, 'before');
      await apiKeys.revoke(id);
      await assert.rejects(quota.acquire(id, 'after'), code('INVALID_API_KEY'));
      assert.equal(await quota.usage(id), 1);
    });

    test('the slot of a crashed server expires', async () => {
      const quota = new SessionQuota(store, 1);
      await quota.acquire('crashed', 'old');
      // Its lease ran out.
      await store.use((client) => client.zadd(keys.apiKeyLive('crashed'), Date.now() - 1, 'old'));
      await quota.acquire('crashed', 'new');
      assert.equal(await quota.usage('crashed'), 1);
    });

    test('history: range, order, idempotence and retention', async () => {
      const history = new History(store, 1);
      const now = wallSeconds();
      const owner = newUuid();
      const records = [30, 20, 10].map((ago) => recordOf(owner, now - ago));
      for (const entry of records) {
        await history.write(entry, now);
      }
      await history.write(records[0] as HistoryRecord, now);
      await history.write(recordOf(owner, now - 2 * 86_400), now);
      const read = async (from?: number, until?: number): Promise<number[]> => {
        const found: HistoryRecord[] = [];
        for await (const page of history.pages(owner, from, until, now)) {
          found.push(...page.map((text) => JSON.parse(text) as HistoryRecord));
        }
        return found.map(({ startTime }) => startTime - now);
      };
      assert.deepEqual(await read(), [-30, -20, -10]);
      assert.deepEqual(await read(now - 20), [-20, -10]);
      assert.deepEqual(await read(undefined, now - 20), [-30, -20]);
      assert.deepEqual(await read(now - 25, now - 15), [-20]);
      assert.deepEqual(await read(now + 1), []);
      assert.equal(
        await store.use((client) => client.zcard(keys.history(owner))),
        3,
        'what is too old is removed',
      );
      assert.equal(await store.use((client) => client.hlen(keys.historyRecords(owner))), 3);
    });

    test('history: pages hold every record once, with thousands a second and concurrent writes', async () => {
      const history = new History(store, 1);
      const now = wallSeconds();
      const owner = newUuid();
      const expected = Array.from({ length: 7000 }, (_record, i) =>
        recordOf(owner, i < 5000 ? now - 100 : now - 50),
      );
      // In slices: a command that waits for thousands of others is over its time on a busy machine.
      for (let at = 0; at < expected.length; at += 500) {
        await Promise.all(expected.slice(at, at + 500).map((entry) => history.write(entry, now)));
      }
      const seen: string[] = [];
      for await (const page of history.pages(owner, undefined, undefined, now)) {
        seen.push(...page.map((text) => (JSON.parse(text) as HistoryRecord).id));
        await history.write(recordOf(owner, now - 200), now);
        await history.write(recordOf(owner, now - 100), now);
      }
      assert.equal(new Set(seen).size, seen.length, 'none comes twice');
      const got = new Set(seen);
      assert.ok(
        expected.every(({ id }) => got.has(id)),
        'none is missed',
      );
    });

    test('jobs: in order, bounded, resumed when their server is lost, removed when done', async () => {
      const options = { store, name: 'face', capacity: 3 } as const;
      const ours = new JobQueue<{ n: number }>({ ...options, serverId: 'a' });
      const theirs = new JobQueue<{ n: number }>({ ...options, serverId: 'b' });
      for (const n of [1, 2, 3]) {
        assert.equal(await ours.enqueue(`job${n}`, { n }), n - 1);
      }
      await assert.rejects(ours.enqueue('job4', { n: 4 }), code('QUEUE_FULL'));
      assert.equal(await ours.position('job3'), 2);
      assert.deepEqual(await ours.take(), { id: 'job1', data: { n: 1 }, attempt: 1, faults: 0 });
      assert.equal((await theirs.take())?.id, 'job2');
      assert.equal(await theirs.extend('job1'), false, 'not theirs');
      assert.equal(await ours.extend('job1'), true);
      assert.equal(await ours.reclaim(), 1); // as a restarted server does
      assert.deepEqual(await theirs.take(), { id: 'job1', data: { n: 1 }, attempt: 2, faults: 0 });
      assert.equal(await ours.extend('job1'), false, 'it was given to another');
      await ours.finish('job1');
      assert.equal(await theirs.has('job1'), true, 'it is not ours to finish');
      assert.equal(await ours.reclaim('b'), 2, 'their server died');
      assert.equal(await theirs.extend('job2'), true, 'it lives after all');
      assert.equal((await ours.take())?.id, 'job1');
      await ours.finish('job1');
      for (const id of ['job2', 'job3']) {
        await ours.cancel(id);
      }
      assert.equal(await ours.take(), undefined);
      for (const id of ['job1', 'job2', 'job3']) {
        assert.equal(await ours.has(id), false, id);
      }
    });

    test('faces: listed for their owner, and a late update does not restore a deleted one', async () => {
      const faces = new FaceRecords(store);
      const owner = newUuid();
      const face = await faces.create(owner, 'Me', DEFAULT_LOOK);
      assert.equal((await faces.find(face.id))?.status, 'pending');
      assert.equal(
        await faces.update(face.id, { status: 'failed', error: 'No face was found.' }),
        true,
      );
      assert.deepEqual(
        (await faces.list(owner)).map(({ status, error }) => [status, error]),
        [['failed', 'No face was found.']],
      );
      await faces.delete(face);
      assert.equal(await faces.update(face.id, { status: 'completed' }), false);
      assert.equal(await faces.find(face.id), undefined);
      assert.deepEqual(await faces.list(owner), []);
    });

    test('agents are listed in pages, the oldest first', async () => {
      const agents = new Agents<Record<string, unknown>>(store);
      const owner = `lister-${Math.random()}`;
      const made: string[] = [];
      for (let index = 0; index < 20; index++) {
        made.push(String((await agents.create(owner, { name: String(index) }))['name']));
        await sleep(2);
      }
      const pages: string[][] = [];
      const times: string[] = [];
      for await (const page of agents.pages(owner)) {
        pages.push(page.map((agent) => String(agent['name'])));
        times.push(...page.map(({ created_at }) => created_at));
      }
      assert.deepEqual(times, times.toSorted());
      assert.deepEqual(
        pages.map((page) => page.length),
        [8, 8, 4],
        'all at once could be 200 MB',
      );
      assert.deepEqual(new Set(pages.flat()), new Set(made));
      for await (const page of agents.pages('nobody')) {
        assert.fail(JSON.stringify(page));
      }
    });

    test('agents: no update is lost, a stale one is refused', async () => {
      const agents = new Agents<Record<string, unknown>>(store);
      const owner = newUuid();
      const agent = await agents.create(owner, { name: 'a' });
      await Promise.all(
        Array.from({ length: 8 }, (_change, i) =>
          agents.update(owner, agent.id, { [`field${i}`]: i }, undefined),
        ),
      );
      const after8 = await agents.find(owner, agent.id);
      assert.equal(after8?.version, 9);
      for (let i = 0; i < 8; i++) {
        assert.equal(after8?.[`field${i}`], i);
      }
      await assert.rejects(
        agents.update(owner, agent.id, { name: 'b' }, 1),
        code('PRECONDITION_FAILED'),
      );
      assert.equal((await agents.update(owner, agent.id, { name: 'b' }, 9))?.['name'], 'b');
      assert.equal(
        await agents.update('somebody else', agent.id, { name: 'c' }, undefined),
        undefined,
      );
      assert.equal(await agents.delete('somebody else', agent.id), false);
      assert.equal(await agents.delete(owner, agent.id), true);
      assert.equal(await agents.update(owner, agent.id, { name: 'd' }, undefined), undefined);
    });

    test('a second server with another SECRETS_KEY is refused, one with the same is not', async () => {
      const [first, other] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
      await SecretBox.open(first, '/nowhere', store);
      await SecretBox.open(first, '/nowhere', store);
      await assert.rejects(SecretBox.open(other, '/nowhere', store), /SECRETS_KEY differs/);
    });

    test('a transcript is for its owner, and kept for the days of the settings', async () => {
      const conversations = new ConversationStore(store, new SecretBox(randomBytes(32)), 2);
      const sessionId = newUuid();
      await conversations.writeTranscript({
        sessionId,
        agentId: 'agent',
        ownerId: 'owner',
        startedAt: '2026-01-02T03:04:05.000Z',
        endedAt: '2026-01-02T03:05:05.000Z',
        endReason: 'done',
        items: [],
      });
      assert.equal((await conversations.transcript('owner', sessionId))?.agentId, 'agent');
      assert.equal(await conversations.transcript('another', sessionId), undefined);
      const seconds = await store.use((client) => client.ttl(keys.transcript(sessionId)));
      assert.ok(seconds > 2 * 86_400 - 60 && seconds <= 2 * 86_400, `${seconds}`);
    });

    test('secrets of auto tokens are encrypted in Redis and decrypted unchanged', async () => {
      const autoTokens = new AutoTokens(store, new SecretBox(randomBytes(32)));
      const token = await autoTokens.create(
        {
          ownerId: 'o',
          keyId: 'k',
          keyName: 'n',
          createTranscript: true,
          originAllowList: [],
          llmApiKey: 'sk-very-secret',
          ttsApiKey: '',
        },
        60,
      );
      const grant = await autoTokens.find(token);
      assert.equal(grant?.llmApiKey, 'sk-very-secret');
      assert.equal(grant?.createTranscript, true);
      const raw = await store.use((client) => client.get(keys.autoToken(hashSecret(token))));
      assert.ok(raw && !raw.includes('sk-very-secret'));
    });
  });
}
