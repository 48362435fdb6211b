// Servers that share a Redis: a relayed session beside a direct one, and what heartbeats of many
// servers and sessions cost Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { newUuid } from '../../src/base/ids.ts';
import { createLogger } from '../../src/base/log.ts';
import { NodeRegistry } from '../../src/front/cluster/node-registry.ts';
import { SessionQuota } from '../../src/front/sessions/session-quota.ts';
import { SessionTokens } from '../../src/front/sessions/session-tokens.ts';
import { RedisStore } from '../../src/front/store/redis.ts';
import { startRedis } from '../../test/front/redis-servers.ts';
import { until } from '../../test/harness/until.ts';
import { createToken } from '../../test/harness/server.ts';
import { WsClient } from '../../test/harness/ws-client.ts';
import { type Rehearsal, rehearse } from '../cluster/rehearsal.ts';
import { BEATS, recordOf } from '../cluster/simulated-server.ts';
import { quantile } from '../report/stats.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  type Table,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import { Interval, scrape } from '../server-view.ts';

/** Speech in real time, in pieces of 20 ms at 16 kHz. */
const PIECE = new Int16Array(320);
const PIECE_MS = 20;
const PING_EVERY = 5;

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
  tell: (kind: number, ms: number) => void,
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
        tell(kind, atMs - sentMs);
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
    times = await converse([direct, relayed], seconds, (kind, ms) => {
      context.record(`ping: ${['direct', 'relayed'][kind]}`, ms, 'ms');
    });
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
    await registry.announce(recordOf(name), name, false);
  }
  await add('heartbeat of a server', nodes, (index) => {
    const name = names[index % nodes]!;
    return registry.announce(recordOf(name), name, true);
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

/** The rehearsal's tables: how it went, and what each server sends. */
function rehearsalTables(nodes: number, sessions: number, rehearsal: Rehearsal): Table[] {
  const { redis, placeMs, openMs } = rehearsal;
  const pair = (times: readonly number[]): string =>
    [0.5, 0.99].map((q) => quantile(times, q).toFixed(2)).join(' / ');
  return [
    {
      title:
        `${nodes} servers and ${sessions} sessions on one Redis for ` +
        `${Math.round(rehearsal.seconds)} s, one server dies`,
      columns: ['what', 'value'],
      rows: [
        ['commands a second', Math.round(rehearsal.commandsPerSecond)],
        ['cores of Redis, all its threads', redis.cores.toFixed(2)],
        ['of them the thread that runs commands', redis.mainCores.toFixed(2)],
        ['cores of the processes that rewrite its log, besides', redis.childCores.toFixed(2)],
        ['received / sent by Redis, Mbit/s', pairOf(redis.receivedMbit, redis.sentMbit)],
        ['written to its log, MB/s', redis.writtenMb.toFixed(1)],
        ['memory of Redis, MB', Math.round(redis.memoryMb)],
        ['to find the servers with most room, p50 / p99, ms', pair(placeMs)],
        ['to record a session that begins, four commands, p50 / p99, ms', pair(openMs)],
        ['until the death is noticed, s', inSeconds(rehearsal.noticeMs)],
        ['until a token of the dead server is claimed, s', inSeconds(rehearsal.claimableMs)],
        ['servers that live, but were taken for dead', rehearsal.falselyDead],
        ['cores of the processes that send', rehearsal.senderCores.toFixed(2)],
        ['sent too late, p99, ms', rehearsal.lateP99Ms.toFixed(1)],
      ],
    },
    {
      title: 'What they send, and how long the reply takes',
      columns: ['what', 'a second', 'p50 / p99, ms'],
      rows: BEATS.map((name) => [
        name,
        Math.round(rehearsal.perSecond[name]),
        pair(rehearsal.replyMs[name]),
      ]),
    },
  ];
}

const pairOf = (one: number, other: number): string => `${one.toFixed(0)} / ${other.toFixed(0)}`;
const inSeconds = (ms: number): string => (ms / 1000).toFixed(2);

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const redis = await startRedis();
  context.defer(() => redis.close());
  const relay = await measureRelay(context, redis.url);
  const store = await RedisStore.connect({ urls: [redis.url] }, createLogger('silent'));
  context.defer(() => store.close());
  // As in deploy/compose; the tests' Redis waits for the disk at each command.
  await store.use((client) => client.config('SET', 'appendfsync', 'everysec'));
  const heartbeats = await measureRedis(context, store);
  await store.use((client) => client.flushall());
  const nodes = number(options, 'nodes');
  const perNode = number(options, 'perNode');
  const rehearsal = await rehearse(
    store,
    {
      port: Number(new URL(redis.url).port),
      servers: nodes,
      sessions: perNode,
      warmUpSeconds: number(options, 'warmUpSeconds'),
      seconds: number(options, 'rehearsalSeconds'),
      processes: number(options, 'processes'),
    },
    (line) => {
      context.progress(line);
    },
  );
  const [placeP50Ms, placeP99Ms] = [0.5, 0.99].map((q) => quantile(rehearsal.placeMs, q));
  const [direct, relayed] = [relay.directMs, relay.relayedMs].map((times) => quantile(times, 0.5));
  return {
    figures: {
      directPingP50Ms: direct!,
      relayedPingP50Ms: relayed!,
      relayAddsMs: relayed! - direct!,
      relayCpuPercent: relay.cpuPerSession * 100,
      redisCores: rehearsal.redis.cores,
      redisLogMbPerSecond: rehearsal.redis.writtenMb,
      commandsPerSecond: rehearsal.commandsPerSecond,
      placeP50Ms: placeP50Ms!,
      placeP99Ms: placeP99Ms!,
      noticeMs: rehearsal.noticeMs,
      claimableMs: rehearsal.claimableMs,
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
      atMost('a token of a dead server is claimed', rehearsal.claimableMs, 8000, 'ms'),
      atLeast(
        'heartbeats of servers sent, of those that are due',
        (rehearsal.perSecond['heartbeat of the server'] * 100) / nodes,
        98,
        '%',
      ),
      atMost('servers that live, but were taken for dead', rehearsal.falselyDead, 0),
      atMost('commands that Redis refused', rehearsal.failures.length, 0),
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
      ...rehearsalTables(nodes, nodes * perNode, rehearsal),
      {
        title: 'CPU of Redis for one command, when each is sent alone',
        columns: ['what', 'us', 'most a second', `a second by ${nodes} servers`],
        rows: heartbeats.map(({ name, cpuUs, perSecond, wantedPerSecond }) => [
          name,
          cpuUs.toFixed(1),
          Math.round(perSecond),
          Math.round(wantedPerSecond),
        ]),
      },
    ],
    plots: [],
    notes: [
      'In the rehearsal each server has a connection of its own, and sends the scripts of a real ' +
        'one as often as that does: also the servers with room, as if all were full. Sessions do ' +
        'not begin or end, but for those of the figures. Redis appends to its log, which it syncs ' +
        'once a second.',
      'Sessions have no peer here: what is relayed is what their sockets carry. The load generator, ' +
        'the servers and Redis share the machine.',
      ...rehearsal.failures,
    ],
  };
}

export const cluster: Scenario = {
  name: 'cluster',
  about: 'servers that share a Redis: a relayed session, and the rate of a thousand servers',
  options: {
    sessions: 6,
    seconds: 16,
    nodes: 1000,
    perNode: 100,
    warmUpSeconds: 6,
    rehearsalSeconds: 60,
    processes: 2,
  },
  small: { sessions: 2, seconds: 3, nodes: 50, warmUpSeconds: 3, rehearsalSeconds: 3 },
  run,
};
