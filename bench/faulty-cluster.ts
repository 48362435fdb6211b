// Three servers on one Redis and one S3 server behind a balancer, with clients: what can be done to
// them, and what became of the clients.
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'puppeteer-core';
import { SENTINEL_MASTER, SENTINEL_PASSWORD } from '../test/front/redis-sentinels.ts';
import type { TestRedis } from '../test/front/redis-servers.ts';
import { launchChromium } from '../test/harness/browser.ts';
import type { S3TestServer } from '../test/harness/s3-server.ts';
import { call, createToken } from '../test/harness/server.ts';
import { until } from '../test/harness/until.ts';
import { startBalancer } from './balancer.ts';
import { ReturningClient } from './peers/returning-client.ts';
import { type Context, type Server, type Target, number } from './scenario.ts';

const KEY = 'the key of the cluster bench';
export const SERVERS = 3;
/** Sessions of each server but the first, so that one of them can do without the other. */
const ROOM = 8;
/** How long anything may take. */
export const GIVE_UP_MS = 30_000;

/** What a fault did. */
export interface Found {
  readonly fault: string;
  readonly sessions: number;
  /** Sessions that ended before they had to. */
  readonly lost: number;
  /** Of these, the ones that ran on the server which failed. */
  readonly lostOfServer: number;
  /** Longest time without a picture, of those who lost nothing. */
  readonly pauseMs: number;
  /** When the last one who had to come back was there, with the same token; NaN: nobody had to. */
  readonly backMs: number;
  readonly note: string;
}

/** The servers, their Redis and their clients. */
export class Cluster {
  readonly clients: ReturningClient[] = [];
  readonly found: Found[] = [];
  readonly servers: Server[] = [];
  readonly #context: Context;
  readonly #redis: TestRedis;
  readonly #files: S3TestServer;
  readonly #ports: readonly number[];
  #balancer: Target | undefined = undefined;
  page: Page | undefined = undefined;

  constructor(context: Context, redis: TestRedis, files: S3TestServer, ports: readonly number[]) {
    this.#context = context;
    this.#redis = redis;
    this.#files = files;
    this.#ports = ports;
  }

  get balancer(): Target {
    return this.#balancer!;
  }

  async start(): Promise<void> {
    const context = this.#context;
    for (let i = 0; i < SERVERS; i++) {
      await this.startServer(i);
    }
    const [port, ...ports] = this.#ports as [number, ...number[]];
    const balancer = await startBalancer(
      port,
      ports.map((one) => `127.0.0.1:${one}`),
    );
    context.defer(() => balancer.stop());
    this.#balancer = { url: balancer.url, apiKey: KEY };
    context.defer(async () => {
      await Promise.all(this.clients.map((client) => client.close()));
    });
  }

  /** @param tree source tree of the server; the one that the bench measures by default */
  async startServer(index: number, tree?: string): Promise<void> {
    const { options } = this.#context;
    const settings = {
      PORT: String(this.#ports[index + 1]),
      REDIS_URL: this.#redis.url,
      ...(this.#redis.url.includes('sentinel') && {
        REDIS_PASSWORD: SENTINEL_PASSWORD,
        REDIS_SENTINEL_MASTER: SENTINEL_MASTER,
      }),
      ...this.#files.env,
      SECRETS_KEY: 'be'.repeat(32),
      BOOTSTRAP_API_KEY: KEY,
      WORKERS: '1',
      MAX_WORKER_LOAD: '1',
      MAX_SESSIONS_PER_WORKER: String(index === 0 ? number(options, 'full') : ROOM),
      DRAIN_SECONDS: String(number(options, 'drainSeconds')),
    };
    this.servers[index] = await this.#context.server(settings, { tree });
  }

  async connect(target: Target, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const client = await ReturningClient.open(target);
      client.startSpeaking();
      this.clients.push(client);
    }
  }

  /** A page with the JavaScript client, as it is served, in Chromium. */
  async openPage(): Promise<void> {
    const { browser, close } = await launchChromium();
    this.#context.defer(close);
    const page = await browser.newPage();
    await page.goto(`${this.balancer.url}/auto/room/none`);
    const sessionToken = await createToken(this.balancer, { faceId: 'ava' });
    await page.evaluate(async (token: string) => {
      const scope = globalThis as any;
      const client = await import(`${location.origin}/client/index.js`);
      const video = document.body.appendChild(document.createElement('video'));
      scope.session = new client.Session({ sessionToken: token, video });
      await scope.session.started();
    }, sessionToken);
    this.page = page;
  }

  /** Session id → URL of its server, asked of a server that runs. */
  async whereabouts(asked: Server): Promise<Map<string, string>> {
    const urls = new Map<string, string>();
    for (const { id, url } of (await call(asked, '/cluster/nodes')).body.nodes) {
      urls.set(id, url);
    }
    const { sessions } = (await call(asked, '/cluster/sessions')).body;
    return new Map(
      sessions.map(({ id, node }: { id: string; node: string }) => [id, urls.get(node)]),
    );
  }

  /** @returns milliseconds until every server makes tokens */
  async untilTokens(): Promise<number> {
    const sinceMs = performance.now();
    await Promise.all(
      this.servers.map((server) =>
        until(
          async () => (await call(server, '/compose/token', { faceId: 'ava' })).status === 200,
          GIVE_UP_MS,
          'tokens are made again',
        ),
      ),
    );
    return performance.now() - sinceMs;
  }

  /** Waits until the servers know of one another what `isTrue` says. */
  async untilNodes(
    what: string,
    isTrue: (nodes: readonly { url: string; room: number; version: string }[]) => boolean,
  ): Promise<void> {
    await until(
      async () => isTrue((await call(this.servers[0]!, '/cluster/nodes')).body.nodes),
      GIVE_UP_MS,
      what,
    );
  }

  /** Keeps what a fault did to the clients who were live before. */
  note(
    fault: string,
    before: readonly ReturningClient[],
    lost: readonly ReturningClient[],
    lostOfServer: number,
    more: { readonly backMs?: number; readonly note?: string; readonly pages?: number } = {},
  ): void {
    const { pages = 0 } = more;
    const spared = before.filter((client) => !lost.includes(client));
    const found: Found = {
      fault,
      sessions: before.length + pages,
      lost: lost.length + pages,
      lostOfServer: lostOfServer + pages,
      pauseMs: Math.max(0, ...spared.map((client) => client.takeLongestPause())),
      backMs: more.backMs ?? Number.NaN,
      note: more.note ?? '',
    };
    this.found.push(found);
    this.#context.record('longest pause of those who lost nothing', found.pauseMs, 'ms');
    this.#context.progress(
      `${fault}: ${found.lost} of ${found.sessions} lost, longest pause of the others ` +
        `${found.pauseMs.toFixed(0)} ms`,
    );
  }

  /** Files are gone for a while, and clients come nevertheless. */
  async outageOfFiles(seconds: number): Promise<void> {
    const sinceMs = performance.now();
    await this.#files.goAway();
    await this.connect(this.balancer, 1);
    await delay(sinceMs + seconds * 1000 - performance.now());
    await this.#files.comeBack();
  }

  /** Begins to watch. @returns the clients that are live */
  watch(): ReturningClient[] {
    const live = this.clients.filter((client) => client.isLive);
    for (const client of live) {
      client.takeLongestPause();
    }
    return live;
  }

  async outage(seconds: number): Promise<void> {
    await this.#redis.stop();
    await delay(seconds * 1000);
    await this.#redis.start();
  }
}

/** What became of the sessions when a server drained. */
export interface Drained {
  /** Clients whose session ran on it. They are back with the same token, on another server. */
  readonly there: readonly ReturningClient[];
  readonly others: readonly ReturningClient[];
  /** Those who lost a session that ran elsewhere, or lost it before the end of the drain. */
  readonly lost: readonly ReturningClient[];
  /** From the end of the drain until the last of its clients is back with the same token; ms. */
  readonly backMs: number;
}

/** Stops a server amid its sessions; a client comes while it drains. Its process is gone afterwards. */
export async function drainServer(
  cluster: Cluster,
  index: number,
  drainSeconds: number,
): Promise<Drained> {
  const drained = cluster.servers[index]!;
  const before = cluster.watch();
  const where = await cluster.whereabouts(drained);
  const there = before.filter(({ sessionId }) => where.get(sessionId) === drained.url);
  const others = before.filter((client) => !there.includes(client));
  const stopped = drained.stop();
  await delay((drainSeconds - 1) * 1000);
  const early = lostOf(there);
  await cluster.connect(cluster.balancer, 1); // while it drains
  await stopped;
  await until(() => there.every((client) => !client.isLive), GIVE_UP_MS, 'their sessions end');
  const endedMs = performance.now();
  const backMs = await Promise.all(there.map((client) => client.comeBack(endedMs, GIVE_UP_MS)));
  return { there, others, lost: [...early, ...lostOf(others)], backMs: Math.max(0, ...backMs) };
}

/** Those whose session is over. */
export const lostOf = (clients: readonly ReturningClient[]): ReturningClient[] =>
  clients.filter((client) => !client.isLive);
