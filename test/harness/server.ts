// Starts the real server as a child process, on a free port and with a data directory of its own.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** The first start makes keys and default faces; other tests may use both cores meanwhile. */
const READY_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 10_000;
const LOG_LIMIT_LINES = 5_000;

/** Servers that run: none outlives the tests, also when a test ended before its clean-up. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) {
    child.kill('SIGKILL');
  }
});

export interface TestServer {
  /** http://127.0.0.1:PORT, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
  readonly process: ChildProcess;
  readonly dataDir: string;
  /** Where its inspector listens, when it was asked for one. */
  readonly inspectorUrl: string | undefined;
  /** What it wrote to stdout and stderr, the last 5000 lines. */
  readonly logs: readonly string[];
  /**
   * SIGTERM, then SIGKILL; removes the data directory unless it was given.
   * @returns the exit code, undefined if it had to be killed.
   */
  stop(): Promise<number | undefined>;
}

export interface ServerOptions {
  /** Settings on top of the defaults of tests: one worker, no draining, warnings only. */
  readonly env?: Readonly<Record<string, string>>;
  /** Kept at stop when given: for tests that start again on the same data. */
  readonly dataDir?: string;
  /** Another checkout to start; this one by default. */
  readonly root?: string;
  /** Lets the test look into its threads (loopback, a free port). */
  readonly inspect?: boolean;
  /** A command that runs the server's: in a network of its own, say. It must become the server. */
  readonly launcher?: readonly string[];
}

/** The settings of Node that tests run under: what they compile and count is kept in one place. */
const ofNode = (): Record<string, string> =>
  Object.fromEntries(
    ['NODE_V8_COVERAGE', 'NODE_COMPILE_CACHE'].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** @throws Error with the server's last lines when it does not come up. */
export async function startServer({
  env = {},
  dataDir,
  root = ROOT,
  inspect = false,
  launcher = [],
}: ServerOptions = {}): Promise<TestServer> {
  const directory = dataDir ?? (await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-test-')));
  const [program, ...args] = [
    ...launcher,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    ...(inspect ? ['--inspect=127.0.0.1:0'] : []),
    path.join(root, 'src/main.ts'),
  ];
  const child = spawn(program, args, {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      ...ofNode(),
      HOME: process.env['HOME'],
      HOST: '127.0.0.1',
      MEDIA_HOST: '127.0.0.1',
      PORT: '0',
      DATA_DIR: directory,
      READY_JSON: '1',
      WORKERS: '1',
      DRAIN_SECONDS: '0',
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const logs: string[] = [];
  const keep = (line: string): void => {
    logs.push(line);
    if (logs.length > LOG_LIMIT_LINES) {
      logs.shift();
    }
    if (process.env['TEST_VERBOSE']) {
      process.stderr.write(`  server: ${line}\n`);
    }
  };
  running.add(child);
  const exited = new Promise<number | undefined>((resolve) => {
    child.once('exit', (code) => {
      running.delete(child);
      resolve(code ?? undefined);
    });
  });
  createInterface({ input: child.stderr }).on('line', keep);

  const stop = async (): Promise<number | undefined> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    const code = await exited;
    clearTimeout(timer);
    if (dataDir === undefined) {
      await rm(directory, { recursive: true, force: true });
    }
    return code;
  };

  const ready = new Promise<{ url: string; apiKey: string }>((resolve, reject) => {
    const fail = (why: string): void =>
      reject(new Error(`the server ${why}; its last lines:\n${logs.slice(-20).join('\n')}`));
    const timer = setTimeout(() => fail('was not ready in time'), READY_LIMIT_MS);
    createInterface({ input: child.stdout }).on('line', (line) => {
      keep(line);
      if (!line.startsWith('{"ready"')) {
        return;
      }
      clearTimeout(timer);
      resolve(JSON.parse(line) as { url: string; apiKey: string });
    });
    void exited.then((code) => {
      clearTimeout(timer);
      fail(`exited with ${code}`);
    });
  });

  try {
    const { url, apiKey } = await ready;
    const address = new URL(url);
    // The inspector listens before the first line of the program runs, and says so on stderr.
    const inspectorUrl =
      logs
        .map((line) => /^Debugger listening on (ws:\S+)/.exec(line)?.[1])
        .find((found) => found !== undefined) ?? undefined;
    return {
      inspectorUrl,
      url: address.origin,
      port: Number(address.port),
      apiKey,
      process: child,
      dataDir: directory,
      logs,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * One call of the REST interface as the server's owner.
 * @returns the status and the parsed body.
 */
export async function call(
  server: Pick<TestServer, 'url' | 'apiKey'>,
  route: string,
  json?: unknown,
  init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {},
): Promise<{ status: number; body: any; headers: Headers }> {
  const response = await fetch(server.url + route, {
    method: json === undefined ? 'GET' : 'POST',
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...init,
    headers: {
      'x-service-api-key': server.apiKey,
      'content-type': 'application/json',
      ...init.headers,
    },
  });
  const text = await response.text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    /* left as text */
  }
  return { status: response.status, body, headers: response.headers };
}

export async function firstFace(server: Pick<TestServer, 'url' | 'apiKey'>): Promise<string> {
  const { status, body } = await call(server, '/faces');
  if (status !== 200 || body.length === 0) {
    throw new Error(`GET /faces answered ${status}: ${JSON.stringify(body)}`);
  }
  return body[0].id;
}

/** A session token for `options`, with the first listed face unless `faceId` is given. */
export async function createToken(
  server: Pick<TestServer, 'url' | 'apiKey'>,
  options: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const faceId = options['faceId'] ?? (await firstFace(server));
  const { status, body } = await call(server, '/compose/token', { ...options, faceId });
  if (status !== 200) {
    throw new Error(`POST /compose/token answered ${status}: ${JSON.stringify(body)}`);
  }
  return body.session_token;
}
