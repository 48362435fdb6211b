// A private redis-server for a single machine: a child process on a unix socket in the data
// directory. It ends with this process.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';

/** A running private redis-server. */
export interface PrivateRedis {
  /** `unix://...` */
  readonly url: string;
  /** Process id of the supervising shell, which ends with its redis-server. */
  readonly pid: () => number | undefined;
  /** Stops it after its last write is on disk. */
  close(): Promise<void>;
}

/** sun_path of a unix socket has 108 bytes with the final zero (unix(7)). */
const MAX_SOCKET_PATH = 107;

/**
 * The shell stops Redis when its stdin closes. The kernel closes it even after kill -9 of this
 * process; a plain child process would go on running.
 */
const KEEPER = `exec 3<&0
"$@" </dev/null 3<&- & server=$!
(cat <&3 >/dev/null; kill -TERM "$server") 2>/dev/null & watcher=$!
exec 3<&-
wait "$server"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"`;

/**
 * Starts redis-server with append-only persistence under `dataDir`, and restarts it whenever it
 * exits.
 * @throws Error that says what to do when it cannot be started
 */
export async function startPrivateRedis(dataDir: string, log: Logger): Promise<PrivateRedis> {
  const directory = path.join(dataDir, 'redis');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const socketPath = await socketPathIn(directory);
  const binary = await findBinary();
  await waitUntilUnused(socketPath, dataDir);

  let child: ChildProcess;
  let closing = false;
  let restart: NodeJS.Timeout | undefined;
  let quickExits = 0;
  const launch = (): void => {
    const startedMs = monotonicMs();
    child = spawn(
      'sh',
      ['-c', KEEPER, 'redis-keeper', binary, ...serverArguments(directory, socketPath)],
      { stdio: ['pipe', 'ignore', 'pipe'], detached: true },
    );
    let lastOutput = '';
    child.stderr?.on('data', (data: Buffer) => {
      lastOutput = (lastOutput + data.toString()).slice(-500);
    });
    const restartLater = (code: number | undefined, signal: NodeJS.Signals | undefined): void => {
      if (closing) {
        return;
      }
      quickExits = monotonicMs() - startedMs < 5000 ? quickExits + 1 : 0;
      log.error(
        { code, signal, stderr: lastOutput.trim() },
        'redis-server exited; starting it again',
      );
      restart = after(
        Math.min(5000, 50 * 2 ** Math.min(quickExits, 7)),
        'the start of redis-server',
        launch,
      );
    };
    child.on('error', (error) => {
      lastOutput = error.message;
      // A process that could not be created (no file descriptor or memory left) emits no exit
      // event.
      if (child.pid === undefined) {
        restartLater(undefined, undefined);
      }
    });
    child.once('exit', restartLater);
  };
  launch();
  await becomesReachable(socketPath, () => child.exitCode, 20_000, directory);
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

/**
 * For command-line tools: the URL of the private Redis of a running server on `dataDir`; undefined
 * when none runs.
 */
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
              'redis-server was not found. Install it (Debian: apt-get install redis-server), or ' +
                'set REDIS_URL to a Redis that runs elsewhere.',
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

/**
 * After kill -9 of the last server, its Redis takes a moment to exit. One that stays belongs to a
 * running server.
 */
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

/** Waits until redis-server accepts connections. @throws Error when it exits or takes too long */
async function becomesReachable(
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
