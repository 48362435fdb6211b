// Servers that share a Redis: they see one another, and clear up after one that dies.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { hashSecret, newUuid } from '../../../src/base/ids.ts';
import { monotonicMs, sleep } from '../../../src/base/time.ts';
import { Cluster, type NodeFacts } from '../../../src/front/cluster/cluster.ts';
import type { NodeFigures } from '../../../src/front/cluster/node-record.ts';
import { listSessions } from '../../../src/front/cluster/session-directory.ts';
import { SessionQuota } from '../../../src/front/sessions/session-quota.ts';
import { SessionTokens } from '../../../src/front/sessions/session-tokens.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { patience } from '../../harness/machine.ts';
import { startRedis, type TestRedis } from '../redis-servers.ts';
import { GRANT } from '../store/records.ts';

const log = createLogger('silent');
const ANY = {
  nodeId: undefined,
  ownerId: undefined,
  keyId: undefined,
  faceId: undefined,
  kind: undefined,
};

interface TestNode {
  readonly cluster: Cluster;
  readonly store: RedisStore;
  readonly tokens: SessionTokens;
  readonly quota: SessionQuota;
  readonly metrics: Metrics;
  figures: NodeFigures;
}

let redis: TestRedis;
let nodes: TestNode[];
beforeEach(async () => {
  redis = await startRedis();
  nodes = [];
});
afterEach(async () => {
  for (const { cluster, store } of nodes) {
    await cluster.close();
    await store.close();
  }
  await redis.close();
});

async function startNode(id: string): Promise<TestNode> {
  const store = await RedisStore.connect({ urls: [redis.url] }, log);
  const tokens = new SessionTokens(store, 60);
  const quota = new SessionQuota(store, 1000);
  const metrics = new Metrics();
  const cluster = new Cluster(id, { store, tokens, quota, metrics, log });
  const node: TestNode = {
    cluster,
    store,
    tokens,
    quota,
    metrics,
    figures: { room: 3, sessions: 0, load: 0.1, isDraining: false },
  };
  nodes.push(node);
  const facts: NodeFacts = {
    id,
    host: 'here',
    url: `http://127.0.0.1/${id}`,
    mediaAddresses: ['127.0.0.1'],
    version: '0',
    region: '',
    startedAtMs: 0,
    workers: 1,
    kinds: ['p2p'],
    models: ['rig'],
  };
  await cluster.clearOwn();
  await cluster.join(facts, () => node.figures);
  return node;
}

/** What the session service does when a session opens. */
async function openSession(node: TestNode, faceId = 'ava'): Promise<{ id: string; token: string }> {
  const id = newUuid();
  const token = await node.tokens.create({
    ...GRANT,
    ownerId: 'owner',
    keyId: 'key',
    faceId,
  });
  assert.equal((await node.tokens.claim(token, id, node.cluster.id)).kind, 'claimed');
  await node.quota.acquire('key', id);
  const nothing = { begin: () => Promise.resolve(), end: () => Promise.resolve() };
  await node.cluster.journal(nothing).begin({
    id,
    ownerId: 'owner',
    keyId: 'key',
    tokenId: 'id of the token',
    tokenHash: hashSecret(token),
    faceId,
    kind: 'p2p',
    aggregator: null,
    keyName: 'name',
    startMs: 1000,
  });
  return { id, token };
}

const idsSeenBy = async (node: TestNode): Promise<string[]> =>
  (await node.cluster.registry.nodes()).map(({ id }) => id);

async function until(limitMs: number, isTrue: () => Promise<boolean>): Promise<number> {
  const startMs = monotonicMs();
  while (!(await isTrue())) {
    assert.ok(monotonicMs() - startMs < limitMs, `not within ${limitMs} ms`);
    await sleep(20);
  }
  return monotonicMs() - startMs;
}

test('servers see one another, with the figures of the last heartbeat, until they leave', async () => {
  const first = await startNode('a');
  const second = await startNode('b');
  assert.deepEqual(await idsSeenBy(first), ['a', 'b']);
  second.figures = { room: 7, sessions: 2, load: 0.5, isDraining: true };
  await second.cluster.beat();
  const [, seen] = await first.cluster.registry.nodes();
  assert.deepEqual([seen!.room, seen!.sessions, seen!.isDraining], [7, 2, true]);
  assert.ok(seen!.seenMs < 4000);
  await second.cluster.close();
  assert.deepEqual(await idsSeenBy(first), ['a'], 'at once');
  await first.cluster.beat();
  assert.match((await first.metrics.render('')).body, /mouthpiece_cluster_nodes 1\b/);
});

test('a dead server is gone within six seconds, all it held is free two seconds later', async () => {
  const survivor = await startNode('a');
  const victim = await startNode('b');
  const deaths: string[] = [];
  survivor.cluster.onDeath((id) => {
    deaths.push(id);
    return Promise.resolve();
  });
  const lost = await Promise.all(Array.from({ length: 250 }, () => openSession(victim)));
  await openSession(survivor);
  await sleep(2500); // the survivor must have lived long enough to judge when the other one is dead
  victim.store.client.disconnect();
  const deadMs = await until(6000 * patience(), async () => {
    const seen = await idsSeenBy(survivor);
    return !seen.includes('b');
  });
  const freedMs = await until(
    2000 * patience(),
    async () => (await survivor.quota.usage('key')) === 1,
  );
  const claims = await Promise.all(
    lost.map(({ token }) => survivor.tokens.claim(token, 'again', 'a')),
  );
  assert.deepEqual([...new Set(claims.map(({ kind }) => kind))], ['claimed']);
  assert.deepEqual(deaths, ['b']);
  console.info(`death known after ${Math.round(deadMs)} ms, freed ${Math.round(freedMs)} ms later`);
  assert.equal((await survivor.cluster.registry.sessionsOf('b')).length, 0);
  assert.equal((await survivor.cluster.registry.sessionsOf('a')).length, 1);
  assert.equal(await survivor.cluster.registry.find('b'), undefined);
  assert.match(
    (await survivor.metrics.render('')).body,
    /mouthpiece_cluster_sessions_freed_total 250\b/,
  );
});

test('after an outage of Redis nobody is taken for dead', async () => {
  const first = await startNode('a');
  const second = await startNode('b');
  await openSession(second);
  await redis.stop();
  await sleep(5000);
  await redis.start();
  await until(5000 * patience(), async () => first.store.ready && second.store.ready);
  await first.cluster.beat(); // the other one's last heartbeat is older than DEAD_AFTER_MS
  assert.equal(await second.quota.usage('key'), 1, 'its slot is kept');
  assert.equal((await first.cluster.registry.sessionsOf('b')).length, 1);
  await second.cluster.beat();
  assert.deepEqual(await idsSeenBy(first), ['a', 'b']);
});

test('a server that was taken for dead is back with its sessions', async () => {
  const node = await startNode('a');
  const { id } = await openSession(node);
  await node.store.use((client) =>
    client.del(keys.nodeBeats(), keys.nodeRecords(), keys.nodeSessions('a')),
  );
  await node.cluster.beat();
  assert.deepEqual(
    (await node.cluster.registry.sessionsOf('a')).map((session) => session.id),
    [id],
  );
});

test('a server that starts again frees what its last run left behind', async () => {
  const node = await startNode('a');
  await openSession(node);
  node.store.client.disconnect();
  await node.cluster.close();
  const again = await startNode('a');
  assert.equal(await again.quota.usage('key'), 0);
  assert.equal((await again.cluster.registry.sessionsOf('a')).length, 0);
});

test('sessions are listed in pages: each once, in order, by filters', async () => {
  const first = await startNode('a');
  const second = await startNode('b');
  for (let i = 0; i < 3; i++) {
    await openSession(first, i === 0 ? 'other' : 'ava');
  }
  await openSession(second);
  const { registry } = first.cluster;
  const all: string[] = [];
  let after: string | undefined;
  let pages = 0;
  do {
    const page = await listSessions(registry, ANY, 3, after);
    all.push(...page.sessions.map(({ nodeId, id }) => `${nodeId}/${id}`));
    after = page.next;
    pages++;
  } while (after !== undefined);
  assert.equal(pages, 2);
  assert.equal(new Set(all).size, 4);
  assert.deepEqual(all, all.toSorted());
  const count = async (filter: object): Promise<number> =>
    (await listSessions(registry, { ...ANY, ...filter }, 100)).sessions.length;
  assert.equal(await count({ nodeId: 'b' }), 1);
  assert.equal(await count({ faceId: 'ava' }), 3);
  assert.equal(await count({ ownerId: 'nobody' }), 0);
  assert.equal(await count({ kind: 'p2p', keyId: 'key' }), 4);
});
