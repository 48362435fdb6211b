// Four servers of one worker on one Redis, with clients that come and go, at any of the servers; one
// is drained and started again meanwhile. Who is turned away, who loses a session, what stays behind?
import { setTimeout as delay } from 'node:timers/promises';
import { startRedis } from '../../test/front/redis-servers.ts';
import { freePorts } from '../../test/harness/free-ports.ts';
import { call } from '../../test/harness/server.ts';
import { until } from '../../test/harness/until.ts';
import { ReturningClient } from '../peers/returning-client.ts';
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
import { scrape } from '../server-view.ts';

const SERVERS = 4;
/** Sessions of each server: with three of them left, there is room for all who are here at once. */
const ROOM = 4;
/** After the last client left, nothing may stay behind for longer. */
const EMPTY_WITHIN_MS = 15_000;

class ChurningCluster {
  readonly setUpsMs: number[] = [];
  readonly pausesMs: number[] = [];
  readonly failures: string[] = [];
  lostElsewhere = 0;
  lostAtDrained = 0;
  readonly #context: Context;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #ports: readonly number[];
  readonly #servers: Server[] = [];
  readonly #live = new Set<ReturningClient>();
  /** The one that is stopped and started again. */
  #drained: Server | undefined = undefined;
  /** Sessions that ran on it, or came by way of it. */
  readonly #doomed = new Set<ReturningClient>();
  #isStopped = false;
  #arrivals = 0;

  constructor(context: Context, redisUrl: string, ports: readonly number[]) {
    this.#context = context;
    this.#ports = ports;
    this.#settings = {
      REDIS_URL: redisUrl,
      SECRETS_KEY: 'be'.repeat(32),
      BOOTSTRAP_API_KEY: 'the key of the cluster bench',
      WORKERS: '1',
      MAX_WORKER_LOAD: '1',
      MAX_SESSIONS_PER_WORKER: String(ROOM),
      RATE_LIMIT_RPS: '10000',
      DRAIN_SECONDS: String(number(context.options, 'drainSeconds')),
    };
  }

  async start(): Promise<void> {
    for (let i = 0; i < SERVERS; i++) {
      await this.#startServer(i);
    }
  }

  async #startServer(index: number): Promise<void> {
    const PORT = String(this.#ports[index]);
    this.#servers[index] = await this.#context.server({ ...this.#settings, PORT });
  }

  /** What a balancer would choose from: servers that run. Each in turn. */
  #next(): Server {
    const running = this.#servers.filter((one) => one !== this.#drained || !this.#isStopped);
    return running[this.#arrivals++ % running.length]!;
  }

  /** Clients come, speak, stay for a while and leave, one after the other, until `endMs`. */
  async lane(endMs: number): Promise<void> {
    while (performance.now() < endMs) {
      const at = this.#next();
      try {
        await this.#visit(at, endMs);
      } catch (error) {
        this.failures.push(String(error));
        await delay(200);
      }
    }
  }

  async #visit(at: Server, endMs: number): Promise<void> {
    const sinceMs = performance.now();
    const client = await ReturningClient.open(at);
    const setUpMs = performance.now() - sinceMs;
    this.setUpsMs.push(setUpMs);
    this.#context.record('token to first picture', setUpMs, 'ms');
    this.#live.add(client);
    if (at === this.#drained) {
      this.#doomed.add(client);
    }
    client.startSpeaking();
    client.takeLongestPause();
    const stayMs = number(this.#context.options, 'staySeconds') * 1000 * (0.5 + Math.random());
    await delay(Math.max(0, Math.min(stayMs, endMs - performance.now())));
    if (client.isLive) {
      const pauseMs = client.takeLongestPause();
      this.pausesMs.push(pauseMs);
      this.#context.record('longest pause of a session', pauseMs, 'ms');
    } else if (this.#doomed.has(client)) {
      this.lostAtDrained++;
    } else {
      this.lostElsewhere++;
    }
    this.#live.delete(client);
    await client.close();
  }

  /** A server drains, and is started again. @returns milliseconds that it was away */
  async restartOne(): Promise<number> {
    const index = SERVERS - 1;
    const drained = this.#servers[index]!;
    const { sessions } = (await call(this.#servers[0]!, '/cluster/sessions')).body;
    const { nodes } = (await call(this.#servers[0]!, '/cluster/nodes')).body;
    const { id } = nodes.find(({ url }: { url: string }) => url === drained.url);
    const ids = new Set(
      sessions
        .filter(({ node }: { node: string }) => node === id)
        .map((session: { id: string }) => session.id),
    );
    for (const client of this.#live) {
      if (ids.has(client.sessionId) || client.target.url === drained.url) {
        this.#doomed.add(client);
      }
    }
    this.#drained = drained;
    this.#isStopped = true;
    const sinceMs = performance.now();
    await drained.stop();
    await this.#startServer(index);
    this.#drained = undefined;
    this.#isStopped = false;
    return performance.now() - sinceMs;
  }

  /** @returns sessions that were relayed so far, by the servers that run */
  async relays(): Promise<number> {
    const counts = await Promise.all(
      this.#servers.map(async ({ url }) =>
        (await scrape(url)).sum('mouthpiece_relays_total', { outcome: 'opened' }),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** @returns servers that know one another, and sessions that stay behind after all have left */
  async leftovers(): Promise<{ readonly nodes: number; readonly sessions: number }> {
    const look = async (): Promise<{ nodes: number; sessions: number }> => ({
      nodes: (await call(this.#servers[0]!, '/cluster/nodes')).body.nodes.length,
      sessions: (await call(this.#servers[0]!, '/cluster/sessions')).body.sessions.length,
    });
    await until(
      async () => {
        const { nodes, sessions } = await look();
        return nodes === SERVERS && sessions === 0;
      },
      EMPTY_WITHIN_MS,
      'nobody is left',
    ).catch(() => {});
    return await look();
  }
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const seconds = number(options, 'seconds');
  const redis = await startRedis();
  context.defer(() => redis.close());
  const cluster = new ChurningCluster(context, redis.url, await freePorts(SERVERS));
  await cluster.start();
  const endMs = performance.now() + seconds * 1000;
  const lanes = Array.from({ length: number(options, 'clients') }, () => cluster.lane(endMs));
  await delay((seconds * 1000) / 3);
  const awayMs = await cluster.restartOne();
  context.progress(`one server was away for ${(awayMs / 1000).toFixed(1)} s`);
  await Promise.all(lanes);
  const relays = await cluster.relays();
  const left = await cluster.leftovers();
  const { setUpsMs, pausesMs, failures, lostAtDrained, lostElsewhere } = cluster;
  for (const failure of new Set(failures)) {
    context.progress(`failed: ${failure}`);
  }
  const [setUpP50Ms, setUpP99Ms] = [0.5, 0.99].map((q) => quantile(setUpsMs, q));
  const [pauseP50Ms, pauseP99Ms] = [0.5, 0.99].map((q) => quantile(pausesMs, q));
  return {
    figures: {
      arrivals: setUpsMs.length,
      failed: failures.length,
      lostElsewhere,
      lostAtDrained,
      setUpP50Ms: setUpP50Ms!,
      setUpP99Ms: setUpP99Ms!,
      pauseP50Ms: pauseP50Ms!,
      pauseP99Ms: pauseP99Ms!,
      relays,
      sessionsLeft: left.sessions,
      nodesLeft: left.nodes,
      awayMs,
    },
    bounds: [
      atLeast('clients that came', setUpsMs.length, seconds / 3),
      atMost('clients that got no session', failures.length, 0),
      atMost('sessions lost on servers that were not restarted', lostElsewhere, 0),
      atMost('sessions that stay behind', left.sessions, 0),
      atLeast('servers at the end', left.nodes, SERVERS),
    ],
    tables: [
      {
        title:
          `${SERVERS} servers of one worker, ${number(options, 'clients')} clients at a time, ` +
          `${seconds} s`,
        columns: ['what', 'value'],
        rows: [
          ['clients that came', setUpsMs.length],
          ['of them refused for good', failures.length],
          ['lost on servers that were not restarted', lostElsewhere],
          ['ended with the drain of the restarted one', lostAtDrained],
          ['it was away for, s', (awayMs / 1000).toFixed(1)],
          ['passed on to another server', relays],
          [
            'to the first picture, p50 / p99, ms',
            `${setUpP50Ms!.toFixed(0)} / ${setUpP99Ms!.toFixed(0)}`,
          ],
          [
            'longest pause of a session, p50 / p99, ms',
            `${pauseP50Ms!.toFixed(0)} / ${pauseP99Ms!.toFixed(0)}`,
          ],
          ['sessions that stay behind in Redis', left.sessions],
          ['servers that know one another at the end', left.nodes],
        ],
      },
    ],
    plots: [],
    notes: ['Servers, Redis and all clients share the machine.'],
  };
}

export const clusterChurn: Scenario = {
  name: 'cluster-churn',
  about: 'four servers that share a Redis; clients come and go, one server is restarted meanwhile',
  options: { seconds: 60, clients: 8, staySeconds: 5, drainSeconds: 5 },
  small: { seconds: 9, clients: 2, staySeconds: 1.5, drainSeconds: 1 },
  run,
};
