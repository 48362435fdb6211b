// Real redis-servers for tests: one on a free port, or a cluster of three on loopback.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { sleep } from '../../src/base/time.ts';

export interface TestRedis {
  readonly url: string;
  /** Ends the server (or all of the cluster), keeping its data. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

export async function startRedis(): Promise<TestRedis> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const server: TestRedis = {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      child = launch(directory, port, []);
      await untilAnswers(port);
    },
    async stop() {
      await end(child);
      child = undefined;
    },
    async close() {
      await end(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

const NODES = 3;
const SLOTS = 16_384;

export async function startCluster(): Promise<TestRedis> {
  const directories = await Promise.all(
    Array.from({ length: NODES }, () => mkdtemp(path.join(os.tmpdir(), 'mouthpiece-cluster-'))),
  );
  const ports: number[] = [];
  while (ports.length < NODES) {
    const port = await freePort(true);
    if (!ports.includes(port)) {
      ports.push(port);
    }
  }
  let children: ChildProcess[] = [];
  const cluster: TestRedis = {
    url: ports.map((port) => `redis://127.0.0.1:${port}`).join(','),
    async start() {
      children = ports.map((port, index) =>
        launch(directories[index] as string, port, [
          '--cluster-enabled',
          'yes',
          '--cluster-node-timeout',
          '2000',
        ]),
      );
      await Promise.all(ports.map(untilAnswers));
    },
    async stop() {
      await Promise.all(children.map(end));
    },
    async close() {
      await Promise.all(children.map(end));
      await Promise.all(
        directories.map((directory) => rm(directory, { recursive: true, force: true })),
      );
    },
  };
  await cluster.start();
  await form(ports);
  return cluster;
}

/**
 * Shares the slots out and introduces the nodes to each other, as `redis-cli --cluster create`
 * does.
 */
async function form(ports: readonly number[]): Promise<void> {
  const clients = ports.map(
    (port) => new Redis({ host: '127.0.0.1', port, disableClientInfo: true }),
  );
  const share = Math.ceil(SLOTS / ports.length);
  try {
    for (const [index, client] of clients.entries()) {
      await client.cluster('SET-CONFIG-EPOCH', index + 1);
      await client.cluster(
        'ADDSLOTS',
        ...Array.from(
          { length: Math.min(share, SLOTS - index * share) },
          (_slot, i) => index * share + i,
        ),
      );
      if (index > 0) {
        await client.cluster('MEET', '127.0.0.1', ports[0] as number);
      }
    }
    for (const client of clients) {
      for (let tries = 0; ; tries++) {
        const info = await client.cluster('INFO');
        if (
          info.includes('cluster_state:ok') &&
          info.includes(`cluster_known_nodes:${NODES}`) &&
          info.includes(`cluster_size:${NODES}`)
        ) {
          break;
        }
        if (tries > 400) {
          throw new Error(`the cluster does not form: ${info}`);
        }
        await sleep(25);
      }
    }
  } finally {
    for (const client of clients) {
      client.disconnect();
    }
  }
}

export function launch(directory: string, port: number, more: string[]): ChildProcess {
  return spawn(
    'redis-server',
    [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      directory,
      '--appendonly',
      'yes',
      '--appendfsync',
      'always',
      '--save',
      '',
      '--logfile',
      'log',
      ...more,
    ],
    { stdio: 'ignore' },
  );
}

export function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

export async function untilAnswers(port: number): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
    if (open) {
      return;
    }
    await sleep(10);
  }
  throw new Error(`redis-server on port ${port} does not answer`);
}

/** A cluster node also needs its port + 10000, for the bus. */
export async function freePort(withBus = false): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    if ((await canBind(port)) && (!withBus || (await canBind(port + 10_000)))) {
      return port;
    }
  }
}

function canBind(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => {
      server.close(() => resolve(true));
    });
  });
}
