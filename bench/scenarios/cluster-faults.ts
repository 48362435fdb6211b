// Three servers on one Redis behind Sentinels and one S3 server behind a balancer: one is full, one
// drains, the Redis master is killed, Redis goes away, S3 does, other programs take the cores, a
// server is killed. Who loses a session, and when are those back who lost one?
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'puppeteer-core';
import { type TestSentinels, startSentinels } from '../../test/front/redis-sentinels.ts';
import { startRedis } from '../../test/front/redis-servers.ts';
import { freePorts } from '../../test/harness/free-ports.ts';
import { S3TestServer } from '../../test/harness/s3-server.ts';
import { call } from '../../test/harness/server.ts';
import { until } from '../../test/harness/until.ts';
import { hasBalancer } from '../balancer.ts';
import { busyNeighbours } from '../busy-neighbours.ts';
import { FaultPictures } from '../fault-pictures.ts';
import { Cluster, GIVE_UP_MS, SERVERS, drainServer, lostOf } from '../faulty-cluster.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';

/** Those who lost their session must be back within this time. */
const BACK_WITHIN_MS = 8000;
/** Servers find others dead only after they have lived for so long with Redis. */
const SETTLE_MS = 7000;

/** The first server is full. Its further clients, and those of the balancer, are at the others. */
async function fillOne(cluster: Cluster, size: number, more: number): Promise<void> {
  const [full] = cluster.servers as [Server];
  await cluster.connect(full, size);
  await cluster.untilNodes('it is known to be full', (nodes) =>
    nodes.every(({ url, room }) => (room === 0) === (url === full.url)),
  );
  const before = cluster.watch();
  await cluster.connect(full, 1); // relayed
  await cluster.connect(cluster.balancer, more);
  const where = await cluster.whereabouts(full);
  const misplaced = cluster.clients
    .slice(size)
    .filter(({ sessionId }) => where.get(sessionId) === full.url);
  cluster.note('one server is full, more clients come', before, lostOf(before), 0, {
    note: `${more + 1} got a session elsewhere, one of them relayed by the full server`,
  });
  if (misplaced.length > 0) {
    throw new Error(`${misplaced.length} sessions on a server that was full`);
  }
}

/** A server drains, and is started again. */
async function drainOne(cluster: Cluster, drainSeconds: number): Promise<void> {
  const [asked, second] = cluster.servers as [Server, Server];
  const where = await cluster.whereabouts(asked);
  const index = cluster.watch().some(({ sessionId }) => where.get(sessionId) === second.url)
    ? 1
    : 2;
  const { there, others, lost, backMs } = await drainServer(cluster, index, drainSeconds);
  cluster.note('one server drains and is started again', others, lost, 0, {
    backMs,
    note:
      `${there.length} ran there, and went on for the ${drainSeconds} s of the drain; ` +
      'a new client got a session meanwhile',
  });
  await cluster.startServer(index);
  await cluster.untilNodes('it is back', (nodes) => nodes.length === SERVERS);
}

/** Redis is gone for a while. @returns when it still is, as Date.now() */
async function loseRedis(cluster: Cluster, seconds: number): Promise<number> {
  const before = cluster.watch();
  const lookedAtMs = Date.now() + seconds * 1000;
  const over = cluster.outage(seconds);
  await delay((seconds * 1000) / 2);
  const refused = await call(cluster.balancer, '/compose/token', { faceId: 'ava' });
  await over;
  const againMs = await cluster.untilTokens();
  await delay(SETTLE_MS);
  cluster.note(`Redis is gone for ${seconds} s`, before, lostOf(before), 0, {
    note:
      `a token asked for meanwhile: ${refused.status}; ` +
      `made again ${(againMs / 1000).toFixed(1)} s after its start`,
  });
  return lookedAtMs;
}

/** The Redis master is killed, and the Sentinels make its replica the master. */
async function failOver(cluster: Cluster, redis: TestSentinels): Promise<void> {
  const before = cluster.watch();
  await redis.killMaster();
  const againMs = await cluster.untilTokens();
  await cluster.connect(cluster.balancer, 1);
  await delay(SETTLE_MS);
  cluster.note('the Redis master is killed', before, lostOf(before), 0, {
    note:
      `tokens made again ${(againMs / 1000).toFixed(1)} s later, by the replica; ` +
      'a new client got a session then',
  });
  await redis.start();
}

/** Other programs run on all cores, before the workers where that is permitted. */
async function takeCores(cluster: Cluster, seconds: number): Promise<void> {
  const before = cluster.watch();
  const taken = await busyNeighbours(seconds);
  cluster.note(
    `other programs take ${taken} of each core for ${seconds} s`,
    before,
    lostOf(before),
    0,
  );
}

/** Files are gone for a while. @returns when they still are, as Date.now() */
async function loseFiles(cluster: Cluster, seconds: number): Promise<number> {
  const before = cluster.watch();
  const lookedAtMs = Date.now() + seconds * 1000;
  await cluster.outageOfFiles(seconds);
  cluster.note(`S3 is gone for ${seconds} s`, before, lostOf(before), 0, {
    note: 'a new client with a default face got a session meanwhile',
  });
  return lookedAtMs;
}

/** The server of the browser's session, or else one with sessions, is killed. */
async function killOne(cluster: Cluster, killed: Server): Promise<void> {
  const { page } = cluster;
  const asked = cluster.servers.find((server) => server !== killed)!;
  const before = cluster.watch();
  const where = await cluster.whereabouts(asked);
  const there = before.filter(({ sessionId }) => where.get(sessionId) === killed.url);
  const sinceMs = performance.now();
  process.kill(killed.pid!, 'SIGKILL');
  await until(() => there.every((client) => !client.isLive), GIVE_UP_MS, 'they are told');
  const [pageMs, ...backMs] = await Promise.all([
    page === undefined ? 0 : pageIsBack(page, sinceMs),
    ...there.map((client) => client.comeBack(sinceMs, GIVE_UP_MS)),
  ]);
  const others = before.filter((client) => !there.includes(client));
  cluster.note('one server is killed', before, [...there, ...lostOf(others)], there.length, {
    pages: page === undefined ? 0 : 1,
    backMs: Math.max(0, pageMs, ...backMs),
    note:
      page === undefined
        ? ''
        : `one of them Chromium with the JavaScript client, back after ${(pageMs / 1000).toFixed(1)} s`,
  });
}

/** @returns milliseconds since `sinceMs` until the page has lost its session and has it again */
async function pageIsBack(page: Page, sinceMs: number): Promise<number> {
  const limit = { timeout: GIVE_UP_MS };
  await page.waitForFunction("session.state === 'reconnecting'", limit);
  await page.waitForFunction("session.state === 'idle' || session.state === 'speaking'", limit);
  return performance.now() - sinceMs;
}

/** The server of the page, whose session is none of the light clients'; or one that has some. */
async function serverToKill(cluster: Cluster): Promise<Server> {
  const where = await cluster.whereabouts(cluster.servers[0]!);
  const ofClients = cluster.clients.map(({ sessionId }) => where.get(sessionId));
  for (const { sessionId } of cluster.clients) {
    where.delete(sessionId);
  }
  const url = [...where.values()][0];
  return (
    cluster.servers.find((server) => server.url === url) ??
    cluster.servers.slice(1).find((server) => ofClients.includes(server.url))!
  );
}

async function run(context: Context): Promise<Outcome> {
  if (!hasBalancer()) {
    throw new Error('HAProxy is needed (Debian: apt-get install haproxy).');
  }
  const { options } = context;
  const sentinels = number(options, 'sentinels') === 1 ? await startSentinels() : undefined;
  const redis = sentinels ?? (await startRedis());
  context.defer(() => redis.close());
  const files = await S3TestServer.start();
  context.defer(() => files.stop());
  const cluster = new Cluster(context, redis, files, await freePorts(SERVERS + 1));
  await cluster.start();
  const watch = await FaultPictures.start(context, cluster.servers);
  const { fault } = watch;
  await fault('full', () => fillOne(cluster, number(options, 'full'), number(options, 'more')));
  await fault('drained', () => drainOne(cluster, number(options, 'drainSeconds')));
  if (sentinels !== undefined) {
    await fault('redis-failover', () => failOver(cluster, sentinels));
  }
  await fault('redis-away', () => loseRedis(cluster, number(options, 'outageSeconds')));
  await fault('s3-away', () => loseFiles(cluster, number(options, 's3Seconds')));
  if (number(options, 'busySeconds') > 0) {
    await fault('busy-neighbour', () => takeCores(cluster, number(options, 'busySeconds')));
  }
  if (number(options, 'browser') === 1) {
    await cluster.openPage();
    await cluster.connect(cluster.balancer, 1);
  }
  const victim = await serverToKill(cluster);
  await fault('killed', () => killOne(cluster, victim));
  const { found } = cluster;
  const lostElsewhere = found.reduce((sum, { lost, lostOfServer }) => sum + lost - lostOfServer, 0);
  const killed = found.at(-1)!;
  return {
    figures: {
      lostElsewhere,
      lostOfKilled: killed.lostOfServer,
      backMs: killed.backMs,
      longestPauseMs: Math.max(...found.map(({ pauseMs }) => pauseMs)),
    },
    bounds: [
      atMost('sessions lost on servers that did not fail', lostElsewhere, 0),
      atMost('back with the same token after a kill', killed.backMs, BACK_WITHIN_MS, 'ms'),
      atLeast('faults that were made', found.length, 5),
    ],
    tables: [
      {
        title: 'Who lost what: three servers, Redis behind Sentinels, one S3 server, one balancer',
        columns: [
          'fault',
          'sessions',
          'lost, of the killed server',
          'lost elsewhere',
          'longest pause of the others, ms',
          'back with the same token, s',
          'besides',
        ],
        rows: found.map(({ fault, sessions, lost, lostOfServer, pauseMs, backMs, note }) => [
          fault,
          sessions,
          lostOfServer,
          lost - lostOfServer,
          pauseMs.toFixed(0),
          Number.isNaN(backMs) ? '-' : (backMs / 1000).toFixed(1),
          note,
        ]),
      },
    ],
    plots: [],
    notes: ['Servers, balancer, Redis and all clients share the machine.'],
  };
}

export const clusterFaults: Scenario = {
  name: 'cluster-faults',
  about:
    'servers behind a balancer: one full, one drained, Redis fails over or is gone, S3 is gone, ' +
    'cores are taken, one is killed; who loses what, and how the dashboards show it',
  options: {
    full: 2,
    more: 2,
    drainSeconds: 8,
    outageSeconds: 10,
    s3Seconds: 60,
    busySeconds: 15,
    browser: 1,
    sentinels: 1,
    pictures: 'bench/out/faults',
  },
  small: {
    full: 1,
    more: 1,
    drainSeconds: 2,
    outageSeconds: 1,
    s3Seconds: 1,
    busySeconds: 0,
    browser: 0,
    sentinels: 0,
    pictures: '',
  },
  run,
};
