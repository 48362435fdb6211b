// Three servers on one Redis behind a balancer, with clients that speak. Each server in turn is told
// to stop (SIGTERM), drains, and is replaced by one of the next version. Who loses a session before
// the drain is over, and can a client come at any time?
import { setTimeout as delay } from 'node:timers/promises';
import { startRedis } from '../../test/front/redis-servers.ts';
import { freePorts } from '../../test/harness/free-ports.ts';
import { S3TestServer } from '../../test/harness/s3-server.ts';
import { call } from '../../test/harness/server.ts';
import { hasBalancer } from '../balancer.ts';
import { Cluster, type Drained, SERVERS, drainServer, lostOf } from '../faulty-cluster.ts';
import { NEXT_VERSION, copyWithNextVersion } from '../next-version.ts';
import { type Context, type Outcome, type Scenario, atLeast, atMost, number } from '../scenario.ts';

/** How often a token is asked for, through the balancer. */
const ASK_EVERY_MS = 250;
const BACK_WITHIN_MS = 8000;

/** Asks for tokens until it is stopped. */
class Asker {
  asked = 0;
  readonly refused: string[] = [];
  #isOver = false;
  readonly #loop: Promise<void>;

  constructor(cluster: Cluster, context: Context) {
    this.#loop = this.#run(cluster, context);
  }

  async #run({ balancer }: Cluster, context: Context): Promise<void> {
    while (!this.#isOver) {
      this.asked++;
      const sinceMs = performance.now();
      try {
        const { status, body } = await call(balancer, '/compose/token', { faceId: 'ava' });
        context.record('a token through the balancer', performance.now() - sinceMs, 'ms');
        if (status !== 200) {
          this.refused.push(`${status} ${body.code}`);
        }
      } catch (error) {
        this.refused.push(String(error));
      }
      await delay(ASK_EVERY_MS);
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
  }
}

async function run(context: Context): Promise<Outcome> {
  if (!hasBalancer()) {
    throw new Error('HAProxy is needed (Debian: apt-get install haproxy).');
  }
  const { options } = context;
  const redis = await startRedis();
  context.defer(() => redis.close());
  const files = await S3TestServer.start();
  context.defer(() => files.stop());
  const next = await copyWithNextVersion();
  context.defer(() => next.remove());
  const cluster = new Cluster(context, redis, files, await freePorts(SERVERS + 1));
  await cluster.start();
  await cluster.connect(cluster.balancer, number(options, 'clients'));
  const asker = new Asker(cluster, context);
  context.defer(() => asker.stop());
  const rounds: (Drained & { readonly pauseMs: number })[] = [];
  for (let index = 0; index < SERVERS; index++) {
    const drained = await drainServer(cluster, index, number(options, 'drainSeconds'));
    const pauses = drained.others.map((client) => client.takeLongestPause());
    const pauseMs = Math.max(0, ...pauses);
    rounds.push({ ...drained, pauseMs });
    context.record('longest pause elsewhere', pauseMs, 'ms');
    context.record('back after the drain', drained.backMs, 'ms');
    context.progress(`${drained.there.length} ran there, ${drained.lost.length} lost`);
    await cluster.startServer(index, next.tree);
    await cluster.untilNodes(
      'the new server is there',
      (nodes) =>
        nodes.length === SERVERS &&
        nodes.filter(({ version }) => version === NEXT_VERSION).length === index + 1,
    );
  }
  await asker.stop();
  const lost = rounds.reduce((sum, round) => sum + round.lost.length, 0);
  const drained = rounds.reduce((sum, round) => sum + round.there.length, 0);
  const backMs = Math.max(...rounds.map((round) => round.backMs));
  const gone = lostOf(cluster.clients).length;
  return {
    figures: {
      drained,
      lost,
      gone,
      backMs,
      tokensAsked: asker.asked,
      tokensRefused: asker.refused.length,
      longestPauseMs: Math.max(...rounds.map(({ pauseMs }) => pauseMs)),
    },
    bounds: [
      atMost('sessions lost before the end of a drain, or elsewhere', lost, 0),
      atMost('clients without a session at the end', gone, 0),
      atMost('tokens refused meanwhile', asker.refused.length, 0),
      atMost('back with the same token after the drain', backMs, BACK_WITHIN_MS, 'ms'),
      atLeast('sessions on the servers that drained', drained, 1),
    ],
    tables: [
      {
        title: 'Each server in turn: it drains, and is replaced by the next version',
        columns: [
          'server',
          'sessions there',
          'sessions elsewhere',
          'lost',
          'longest pause elsewhere, ms',
          'back after the drain, s',
        ],
        rows: rounds.map((round, index) => [
          index + 1,
          round.there.length,
          round.others.length,
          round.lost.length,
          round.pauseMs.toFixed(0),
          (round.backMs / 1000).toFixed(1),
        ]),
      },
    ],
    plots: [],
    notes: [
      `${asker.asked} tokens asked for through the balancer, refused: ` +
        (asker.refused.length === 0 ? 'none.' : `${[...new Set(asker.refused)].join('; ')}.`),
      'Servers, balancer, Redis and all clients share the machine.',
    ],
  };
}

export const clusterUpgrade: Scenario = {
  name: 'cluster-upgrade',
  about: 'servers behind a balancer are upgraded one after the other, under sessions that speak',
  options: { clients: 6, full: 8, drainSeconds: 8 },
  small: { clients: 3, drainSeconds: 4 },
  run,
};
