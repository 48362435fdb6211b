// Servers that share a Redis: a relayed session beside a direct one, and what heartbeats of many
// servers and sessions cost Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { hashSecret, newUuid } from '../../src/base/ids.ts';
import { createLogger } from '../../src/base/log.ts';
import type { NodeRecord } from '../../src/front/cluster/node-record.ts';
import { NodeRegistry } from '../../src/front/cluster/node-registry.ts';
import { SessionQuota } from '../../src/front/sessions/session-quota.ts';
import { CLAIM_TTL_MS, SessionTokens } from '../../src/front/sessions/session-tokens.ts';
import { keys } from '../../src/front/store/keys.ts';
import { TOUCH_CLAIM } from '../../src/front/store/scripts.ts';
import { RedisStore } from '../../src/front/store/redis.ts';
import { startRedis } from '../../test/front/redis-servers.ts';
import { until } from '../../test/harness/until.ts';
import { createToken } from '../../test/harness/server.ts';
import { WsClient } from '../../test/harness/ws-client.ts';
import { quantile } from '../report/stats.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import { Interval, scrape } from '../server-view.ts';

/** Speech in real time, in pieces of 20 ms at 16 kHz. */
const PIECE = new Int16Array(320);
const PIECE_MS = 20;
const PING_EVERY = 5;
/** Claims that the rehearsal sends at once: one process could not send so many one by one. */
const BATCH = 100;

/** CPU of the main thread, in cores, over `work`. */
async function cpuOf(server: Server, work: () => Promise<unknown>): Promise<number> {
  const before = await scrape(server.url);
  await work();
  return new Interval(before, await scrape(server.url)).rate('mouthpiece_front_cpu_seconds_total');
}

/** Sends speech on all sockets in turn, with a ping now and then. @returns the round trips, ms */
async function converse(
  kinds: readonly (readonly WsClient[])[],
  seconds: number,
): Promise<number[][]> {
  const times: number[][] = kinds.map(() => []);
  const startMs = performance.now();
  for (let round = 0; performance.now() - startMs < seconds * 1000; round++) {
    for (const [kind, clients] of kinds.entries()) {
      for (const client of clients) {
        client.send(new Uint8Array(PIECE.buffer));
      }
      if (round % PING_EVERY === 0) {
        const client = clients[(round / PING_EVERY) % clients.length]!;
        const sentMs = performance.now();
        const { atMs } = await client.waitFor('pong', {
          from: (client.send(`ping ${round}`), client.messages.length),
        });
        times[kind]!.push(atMs - sentMs);
      }
    }
    await delay(Math.max(0, startMs + (round + 1) * PIECE_MS - performance.now()));
  }
  return times;
}

const open = (server: Server, count: number): Promise<WsClient[]> =>
  Promise.all(
    Array.from({ length: count }, async () => WsClient.open(server, await createToken(server))),
  );

interface RelayFigures {
  readonly directMs: readonly number[];
  readonly relayedMs: readonly number[];
  /** Of the full server's main thread, in cores. */
  readonly cpuPerSession: number;
}

async function measureRelay(context: Context, redisUrl: string): Promise<RelayFigures> {
  const { options } = context;
  const settings = {
    REDIS_URL: redisUrl,
    SECRETS_KEY: 'be'.repeat(32),
    BOOTSTRAP_API_KEY: 'the key of the cluster bench',
    WORKERS: '1',
    RATE_LIMIT_RPS: '10000',
  };
  const other = await context.server(settings);
  const full = await context.server({ ...settings, MAX_SESSIONS_PER_WORKER: '1' });
  const sessions = number(options, 'sessions');
  const seconds = number(options, 'seconds');
  const idle = await cpuOf(full, () => delay(seconds * 500));
  const [occupant] = await open(full, 1);
  await delay(1500); // it announces that it is full
  const relayed = await open(full, sessions);
  await until(
    async () => (await scrape(full.url)).sum('mouthpiece_relayed_sessions') === sessions,
    10_000,
    'all sessions are relayed',
  );
  const direct = await open(other, sessions);
  let times: number[][] = [];
  const busy = await cpuOf(full, async () => {
    times = await converse([direct, relayed], seconds);
  });
  for (const client of [occupant!, ...direct, ...relayed]) {
    await client.close();
  }
  return {
    directMs: times[0]!,
    relayedMs: times[1]!,
    cpuPerSession: (busy - idle) / sessions,
  };
}

interface Heartbeat {
  readonly name: string;
  /** CPU of Redis for one, in microseconds. */
  readonly cpuUs: number;
  readonly perSecond: number;
  /** How many a second the whole cluster sends. */
  readonly wantedPerSecond: number;
}

/** @returns CPU time of Redis since its start, seconds */
async function redisCpu(store: RedisStore): Promise<number> {
  const info = await store.use((client) => client.info('cpu'));
  return [/used_cpu_sys:([\d.]+)/, /used_cpu_user:([\d.]+)/]
    .map((field) => Number(field.exec(info)![1]))
    .reduce((sum, value) => sum + value, 0);
}

/** Runs `beat` for a while, 64 at a time, and reads the CPU time of Redis. */
async function measureBeat(
  store: RedisStore,
  seconds: number,
  beat: (index: number) => Promise<unknown>,
): Promise<{ cpuUs: number; perSecond: number }> {
  const before = await redisCpu(store);
  const startMs = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (performance.now() - startMs < seconds * 1000) {
        await beat(done++);
      }
    }),
  );
  const elapsed = (performance.now() - startMs) / 1000;
  return { cpuUs: ((await redisCpu(store)) - before) * (1e6 / done), perSecond: done / elapsed };
}

const tokenOf = (index: number): string => `a token of the bench, number ${index}`;

interface Rehearsal {
  /** To find the servers with most room, ms. */
  readonly placeMs: readonly number[];
  /** From the last heartbeat of a server until another is told of its death, ms. */
  readonly noticeMs: number;
  readonly heartbeatsPerSecond: number;
  readonly claimsPerSecond: number;
  readonly redisCores: number;
}

/** @returns what sends the claims of a hundred sessions at once, as that many servers do */
async function claimBatches(
  store: RedisStore,
  sessions: number,
): Promise<(index: number) => Promise<unknown>> {
  const sha = await store.use((client) => client.script('LOAD', TOUCH_CLAIM.lua));
  const batches = Array.from({ length: Math.ceil(sessions / BATCH) }, (_batch, index) =>
    Array.from({ length: BATCH }, (_claim, i) => [
      'evalsha',
      String(sha),
      1,
      keys.tokenClaim(hashSecret(tokenOf(index * BATCH + i))),
      'session',
      'node',
      CLAIM_TTL_MS,
    ]),
  );
  return (index) => store.use((client) => client.pipeline(batches[index % batches.length]).exec());
}

/** The heartbeats of all servers and sessions at once, as often as they are sent; one server dies. */
async function rehearse(context: Context, store: RedisStore): Promise<Rehearsal> {
  const { options } = context;
  const nodes = number(options, 'nodes');
  const sessions = nodes * number(options, 'perNode');
  const registry = new NodeRegistry(store);
  const claimsOf = await claimBatches(store, sessions);
  const names = Array.from({ length: nodes }, () => newUuid());
  const [dying] = names as [string];
  const startMs = performance.now();
  const dieAtMs = startMs + 1000;
  const endMs = startMs + number(options, 'rehearsalSeconds') * 1000;
  const cpuBefore = await redisCpu(store);
  let lastBeatMs = 0;
  let noticedMs = Number.NaN;
  /** As many calls as are due, some at a time. @returns how many were made a second */
  const paced = async (
    perSecond: number,
    lanes: number,
    work: (index: number) => Promise<unknown>,
  ): Promise<number> => {
    let begun = 0;
    const lane = async (): Promise<void> => {
      while (performance.now() < endMs) {
        const due = startMs + (begun * 1000) / perSecond - performance.now();
        if (due > 0) {
          await delay(Math.max(1, due));
        } else {
          await work(begun++);
        }
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    return (begun * 1000) / (performance.now() - startMs);
  };
  const beat = async (index: number): Promise<void> => {
    const name = names[index % nodes]!;
    if (name === dying) {
      if (performance.now() > dieAtMs) {
        return;
      }
      lastBeatMs = performance.now();
    }
    const { dead } = await registry.announce(nodeRecord(name), name, true);
    if (dead.includes(dying) && Number.isNaN(noticedMs)) {
      noticedMs = performance.now();
    }
  };
  const placeMs: number[] = [];
  const place = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const sinceMs = performance.now();
      await registry.roomiest(9);
      placeMs.push(performance.now() - sinceMs);
      await delay(50);
    }
  };
  const [heartbeatsPerSecond, claimsPerSecond] = await Promise.all([
    paced(nodes, 16, beat),
    paced(sessions / 3 / BATCH, 4, claimsOf).then((batches) => batches * BATCH),
    place(),
  ]);
  const seconds = (performance.now() - startMs) / 1000;
  return {
    placeMs,
    noticeMs: noticedMs - lastBeatMs,
    heartbeatsPerSecond,
    claimsPerSecond,
    redisCores: ((await redisCpu(store)) - cpuBefore) / seconds,
  };
}

const nodeRecord = (id: string): NodeRecord => ({
  id,
  host: 'a-machine-of-the-fleet',
  url: 'http://10.0.0.1:8080',
  mediaAddresses: ['192.0.2.1'],
  version: '0.1.0',
  region: 'eu-west',
  startedAtMs: 1_700_000_000_000,
  workers: 8,
  kinds: ['p2p', 'livekit', 'agent', 'auto'],
  models: ['rig'],
  room: 28,
  sessions: 100,
  load: 0.7,
  isDraining: false,
});

async function measureRedis(context: Context, store: RedisStore): Promise<Heartbeat[]> {
  const { options } = context;
  const nodes = number(options, 'nodes');
  const perNode = number(options, 'perNode');
  const seconds = number(options, 'seconds') / 4;
  const registry = new NodeRegistry(store);
  const tokens = new SessionTokens(store, 3600);
  const quota = new SessionQuota(store, 1_000_000);
  const names = Array.from({ length: nodes }, () => newUuid());
  const session = newUuid();
  const heartbeats: Heartbeat[] = [];
  const add = async (
    name: string,
    wantedPerSecond: number,
    beat: (index: number) => Promise<unknown>,
  ): Promise<void> => {
    const figures = await measureBeat(store, seconds, beat);
    heartbeats.push({ name, wantedPerSecond, ...figures });
    context.progress(`${name}: ${Math.round(figures.perSecond)} a second`);
  };
  for (const name of names) {
    await registry.announce(nodeRecord(name), name, false);
  }
  await add('heartbeat of a server', nodes, (index) => {
    const name = names[index % nodes]!;
    return registry.announce(nodeRecord(name), name, true);
  });
  await add('claim of a session, every 3 s', (nodes * perNode) / 3, (index) =>
    tokens.touch(tokenOf(index % (nodes * perNode)), session, 'node'),
  );
  const ids = Array.from({ length: perNode }, () => newUuid());
  await add(`slots of ${perNode} sessions of a key, every 3 s`, nodes / 3, (index) =>
    quota.touch(`key ${index % 100}`, ids),
  );
  await add('the servers with room, of a full server', 2 * nodes, () => registry.roomiest(9));
  return heartbeats;
}

async function run(context: Context): Promise<Outcome> {
  const redis = await startRedis();
  context.defer(() => redis.close());
  const relay = await measureRelay(context, redis.url);
  const store = await RedisStore.connect({ urls: [redis.url] }, createLogger('silent'));
  context.defer(() => store.close());
  const heartbeats = await measureRedis(context, store);
  await store.use((client) => client.flushall());
  const rehearsal = await rehearse(context, store);
  const [placeP50Ms, placeP99Ms] = [0.5, 0.99].map((q) => quantile(rehearsal.placeMs, q));
  const [direct, relayed] = [relay.directMs, relay.relayedMs].map((times) => quantile(times, 0.5));
  const redisCores = heartbeats.reduce(
    (sum, { cpuUs, wantedPerSecond }) => sum + (cpuUs * wantedPerSecond) / 1e6,
    0,
  );
  const nodes = number(context.options, 'nodes');
  const sessions = nodes * number(context.options, 'perNode');
  return {
    figures: {
      directPingP50Ms: direct!,
      relayedPingP50Ms: relayed!,
      relayAddsMs: relayed! - direct!,
      relayCpuPercent: relay.cpuPerSession * 100,
      redisCores,
      placeP50Ms: placeP50Ms!,
      placeP99Ms: placeP99Ms!,
      noticeMs: rehearsal.noticeMs,
      rehearsedClaimsPerSecond: rehearsal.claimsPerSecond,
    },
    bounds: [
      atMost('a relay adds, median of a round trip', relayed! - direct!, 3, 'ms'),
      atMost(
        'a relayed session costs the full server',
        relay.cpuPerSession * 100,
        1,
        '% of a core',
      ),
      atMost('a death is noticed', rehearsal.noticeMs, 6000, 'ms'),
      atLeast('pings measured', relay.relayedMs.length, 10),
    ],
    tables: [
      {
        title: 'Round trip of a ping over the socket of a session, ms',
        columns: ['session', 'p50', 'p99'],
        rows: [
          ['direct', relay.directMs],
          ['relayed', relay.relayedMs],
        ].map(([name, times]) => [
          String(name),
          ...[0.5, 0.99].map((q) => quantile(times as number[], q).toFixed(2)),
        ]),
      },
      {
        title: `${nodes} servers and ${sessions} sessions send heartbeats to one Redis, one server dies`,
        columns: ['what', 'value'],
        rows: [
          ['heartbeats of servers a second', Math.round(rehearsal.heartbeatsPerSecond)],
          ['claims of sessions a second', Math.round(rehearsal.claimsPerSecond)],
          ['of them wanted', Math.round(sessions / 3)],
          ['cores of Redis', rehearsal.redisCores.toFixed(2)],
          [
            'to find the servers with most room, p50 / p99, ms',
            `${placeP50Ms!.toFixed(2)} / ${placeP99Ms!.toFixed(2)}`,
          ],
          ['until the death is noticed, s', (rehearsal.noticeMs / 1000).toFixed(1)],
        ],
      },
      {
        title: `Redis, ${nodes} servers and ${sessions} sessions: ${redisCores.toFixed(2)} cores`,
        columns: ['what', 'CPU of Redis, us', 'most a second', 'wanted a second', 'cores'],
        rows: heartbeats.map(({ name, cpuUs, perSecond, wantedPerSecond }) => [
          name,
          cpuUs.toFixed(1),
          Math.round(perSecond),
          Math.round(wantedPerSecond),
          ((cpuUs * wantedPerSecond) / 1e6).toFixed(3),
        ]),
      },
    ],
    plots: [],
    notes: [
      'The rehearsal sends from one process, which may not reach what is wanted, and whose own ' +
        'event loop is in the time to find servers.',
      'Sessions have no peer here: what is relayed is what their sockets carry. The load generator, ' +
        'both servers and Redis share the machine.',
      'All full servers at once is the worst case of the last row; cores of Redis are one thread.',
    ],
  };
}

export const cluster: Scenario = {
  name: 'cluster',
  about: 'servers that share a Redis: a relayed session, and heartbeats of a thousand servers',
  options: { sessions: 6, seconds: 16, nodes: 1000, perNode: 100, rehearsalSeconds: 12 },
  small: { sessions: 2, seconds: 3, nodes: 50, rehearsalSeconds: 7 },
  run,
};
