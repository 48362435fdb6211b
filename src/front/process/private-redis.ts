// A Redis of our own for single machines: a redis-server child on a unix socket under the data directory, which lives and dies with us.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';

export interface PrivateRedis {
  /** `unix://...` */
  readonly url: string;
  /** Of the supervising shell; it ends with its redis-server. */
  readonly pid: () => number | undefined;
  /** Ends it after its last write is on disk. */
  close(): Promise<void>;
}

/** sun_path of a unix socket holds 108 bytes, with the final zero (unix(7)). */
const MAX_SOCKET_PATH = 107;

/**
 * The shell ends Redis when our end of its stdin closes, which the kernel does for us even after kill -9; a child alone would outlive us.
 */
const KEEPER = `exec 3<&0
"$@" </dev/null 3<&- & server=$!
(cat <&3 >/dev/null; kill -TERM "$server") 2>/dev/null & watcher=$!
exec 3<&-
wait "$server"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"`;

/** Starts redis-server with append-only persistence under `dataDir`, and starts it again whenever it dies. */
export async function startPrivateRedis(dataDir: string, log: Logger): Promise<PrivateRedis> {
  const directory = path.join(dataDir, 'redis');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const socketPath = await socketPathIn(directory);
  const binary = await findBinary();
  await waitUntilUnused(socketPath, dataDir);

  let child: ChildProcess;
  let closing = false;
  let restart: NodeJS.Timeout | undefined;
  let quickDeaths = 0;
  const launch = (): void => {
    const bornMs = monotonicMs();
    child = spawn(
      'sh',
      ['-c', KEEPER, 'redis-keeper', binary, ...serverArguments(directory, socketPath)],
      { stdio: ['pipe', 'ignore', 'pipe'], detached: true },
    );
    let lastWords = '';
    child.stderr?.on('data', (data: Buffer) => {
      lastWords = (lastWords + data.toString()).slice(-500);
    });
    const restartLater = (code: number | undefined, signal: NodeJS.Signals | undefined): void => {
      if (closing) {
        return;
      }
      quickDeaths = monotonicMs() - bornMs < 5000 ? quickDeaths + 1 : 0;
      log.error({ code, signal, stderr: lastWords.trim() }, 'redis-server died; starting it again');
      restart = after(
        Math.min(5000, 50 * 2 ** Math.min(quickDeaths, 7)),
        'the start of redis-server',
        launch,
      );
    };
    child.on('error', (error) => {
      lastWords = error.message;
      // A process that could not be made (no file descriptor or memory left) has no exit.
      if (child.pid === undefined) {
        restartLater(undefined, undefined);
      }
    });
    child.once('exit', restartLater);
  };
  launch();
  await answers(socketPath, () => child.exitCode, 20_000, directory);
  return {
    url: `unix://${socketPath}`,
    pid: () => child.pid,
    async close() {
      closing = true;
      clearTimeout(restart);
      if (child.exitCode === null && child.signalCode === null) {
        const gone = new Promise((resolve) => {
          child.once('exit', resolve);
        });
        const last = after(10_000, 'the end of redis-server', () => {
          child.kill('SIGKILL');
        });
        child.stdin?.end();
        await gone;
        clearTimeout(last);
      }
      child.stderr?.destroy();
      await rm(socketPath, { force: true });
    },
  };
}

/** The URL of the private Redis of a server that runs on `dataDir` now; undefined when none does. For tools beside the server. */
export async function runningPrivateRedis(dataDir: string): Promise<string | undefined> {
  const socketPath = await socketPathIn(path.join(dataDir, 'redis'));
  return (await isListening(socketPath)) ? `unix://${socketPath}` : undefined;
}

const serverArguments = (directory: string, socketPath: string): string[] => [
  '--port',
  '0',
  '--unixsocket',
  socketPath,
  '--unixsocketperm',
  '700',
  '--dir',
  directory,
  '--daemonize',
  'no',
  '--appendonly',
  'yes',
  '--appendfsync',
  'everysec',
  '--save',
  '',
  '--maxmemory-policy',
  'noeviction',
  '--loglevel',
  'warning',
  '--logfile',
  'redis.log',
];

async function socketPathIn(directory: string): Promise<string> {
  const preferred = path.join(directory, 'redis.sock');
  if (Buffer.byteLength(preferred) <= MAX_SOCKET_PATH) {
    return preferred;
  }
  const digest = createHash('sha256').update(directory).digest('hex').slice(0, 16);
  const elsewhere = path.join(os.tmpdir(), `mouthpiece-${process.getuid?.() ?? 0}-${digest}`);
  await mkdir(elsewhere, { recursive: true, mode: 0o700 });
  return path.join(elsewhere, 'redis.sock');
}

function findBinary(): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      'sh',
      ['-c', 'command -v redis-server || command -v valkey-server'],
      (_error, stdout) => {
        const found = stdout.trim();
        if (found) {
          resolve(found);
        } else {
          reject(
            new Error(
              'redis-server was not found. Install it (Debian: apt-get install redis-server), or set REDIS_URL to a Redis that runs elsewhere.',
            ),
          );
        }
      },
    );
  });
}

function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** After a kill -9 of the last server, its Redis needs a moment to end; one that stays belongs to a server that runs. */
async function waitUntilUnused(socketPath: string, dataDir: string): Promise<void> {
  for (let attempt = 0; attempt < 60; attempt++) {
    if (!(await isListening(socketPath))) {
      await rm(socketPath, { force: true });
      return;
    }
    await sleep(50);
  }
  throw new Error(
    `Another server is using ${dataDir}. Stop it, or set DATA_DIR to another directory.`,
  );
}

async function answers(
  socketPath: string,
  exitCode: () => number | null,
  timeoutMs: number,
  directory: string,
): Promise<void> {
  for (const endMs = monotonicMs() + timeoutMs; monotonicMs() < endMs; await sleep(10)) {
    if (await isListening(socketPath)) {
      return;
    }
    if (exitCode() !== null) {
      throw new Error(`redis-server did not start: see ${path.join(directory, 'redis.log')}.`);
    }
  }
  throw new Error(
    `redis-server did not answer within ${timeoutMs / 1000} s: see ${path.join(directory, 'redis.log')}.`,
  );
}
