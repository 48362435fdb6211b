// A Redis with a replica, watched by three Sentinels, on loopback.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { sleep } from '../../src/base/time.ts';
import { type TestRedis, end, freePort, launch, untilAnswers } from './redis-servers.ts';

export const SENTINEL_MASTER = 'mouthpiece';
/** Of the servers; the Sentinels ask for none. */
export const SENTINEL_PASSWORD = 'of the servers';

/** `stop` ends both servers, not the Sentinels; `start` starts those that were ended or killed. */
export interface TestSentinels extends TestRedis {
  /** redis-sentinel://, comma-separated. */
  readonly url: string;
  /** Kills the server that is the master now; the Sentinels make the other one master. */
  killMaster(): Promise<void>;
  /** What the Sentinels logged. */
  logged(): Promise<string>;
  close(): Promise<void>;
}

export async function startSentinels(): Promise<TestSentinels> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-sentinels-'));
  const [first, second, ...sentinels] = await freePorts(5);
  const children = new Map<number, ChildProcess>();
  const options = [
    ...['--requirepass', SENTINEL_PASSWORD, '--masterauth', SENTINEL_PASSWORD],
    ...['--repl-diskless-sync-delay', '0'],
  ];
  const startServer = async (port: number, master: number): Promise<void> => {
    const own = port === master ? [] : ['--replicaof', '127.0.0.1', String(master)];
    const files = ['--appendfilename', `${port}.aof`, '--dbfilename', `${port}.rdb`];
    children.set(port, launch(directory, port, [...files, ...options, ...own]));
    await untilAnswers(port);
  };
  await startServer(first!, first!);
  await startServer(second!, first!);
  await untilReplicated(second!);
  for (const port of sentinels) {
    const file = path.join(directory, `sentinel-${port}.conf`);
    await writeFile(
      file,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${directory}`,
        'logfile sentinel.log',
        `sentinel monitor ${SENTINEL_MASTER} 127.0.0.1 ${first} 2`,
        `sentinel auth-pass ${SENTINEL_MASTER} "${SENTINEL_PASSWORD}"`,
        `sentinel down-after-milliseconds ${SENTINEL_MASTER} 500`,
        `sentinel failover-timeout ${SENTINEL_MASTER} 3000`,
        '',
      ].join('\n'),
    );
    children.set(port, spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' }));
  }
  await Promise.all(sentinels.map(untilAnswers));
  await untilWatched(sentinels);
  return {
    url: sentinels.map((port) => `redis-sentinel://127.0.0.1:${port}`).join(','),
    async killMaster() {
      await end(children.get(await masterOf(sentinels[0]!)));
    },
    async stop() {
      await Promise.all([end(children.get(first!)), end(children.get(second!))]);
    },
    async start() {
      const master = await masterOf(sentinels[0]!);
      const replica = master === first ? second! : first!;
      for (const port of [master, replica]) {
        if (hasEnded(children.get(port)!)) {
          await startServer(port, master);
        }
      }
      await untilReplicated(replica);
    },
    logged: () => readFile(path.join(directory, 'sentinel.log'), 'utf8'),
    async close() {
      await Promise.all([...children.values()].map(end));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    ports.add(await freePort());
  }
  return [...ports];
}

async function ask<T>(
  port: number,
  work: (client: Redis) => Promise<T>,
  options: Pick<RedisOptions, 'password'> = {},
): Promise<T> {
  const client = new Redis({ ...options, host: '127.0.0.1', port, disableClientInfo: true });
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}

const masterOf = (sentinel: number): Promise<number> =>
  ask(sentinel, async (client) => {
    const [, port] = (await client.call(
      'SENTINEL',
      'GET-MASTER-ADDR-BY-NAME',
      SENTINEL_MASTER,
    )) as [string, string];
    return Number(port);
  });

const untilReplicated = (replica: number): Promise<void> =>
  ask(
    replica,
    async (client) => {
      for (let tries = 0; !(await client.info('replication')).includes('link_status:up'); tries++) {
        assert.ok(tries < 400, 'the replica does not reach its master');
        await sleep(50);
      }
    },
    { password: SENTINEL_PASSWORD },
  );

/** Until every Sentinel knows the two others and the replica, so that they can fail over. */
async function untilWatched(sentinels: readonly number[]): Promise<void> {
  for (const port of sentinels) {
    await ask(port, async (client) => {
      for (let tries = 0; ; tries++) {
        const fields = (await client.call('SENTINEL', 'MASTER', SENTINEL_MASTER)) as string[];
        const value = (name: string) => fields[fields.indexOf(name) + 1];
        if (value('num-slaves') === '1' && value('num-other-sentinels') === '2') {
          return;
        }
        assert.ok(tries < 400, `the Sentinels do not find one another: ${fields.join(' ')}`);
        await sleep(50);
      }
    });
  }
}
