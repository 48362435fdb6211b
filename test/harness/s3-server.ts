// S3 for tests, on loopback: s3rver, a server from npm that checks signatures, which can go away,
// hang and come back on the same port; and versitygw, where it is at hand.
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
// @ts-expect-error -- the package has no types
import S3rver from '@20minutes/s3rver';
import { findGoProgram } from '../../scripts/go-program.mjs';
import { sleep } from '../../src/base/time.ts';
import { patience } from './machine.ts';
import { until } from './until.ts';

/** What the server does with requests. */
type Mood = 'answers' | 'fails' | 'hangs' | 'stalls';

export const S3_BUCKET = 'faces';
/** The credentials that s3rver knows, as the environment names them. */
export const S3_CREDENTIALS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };

interface S3rverInstance {
  callback(): http.RequestListener;
  configureBuckets(): Promise<unknown>;
}

export class S3TestServer {
  mood: Mood = 'answers';
  /** Method and path of each request. */
  readonly requests: string[] = [];
  readonly #directory: string;
  readonly #strict: S3rverInstance;
  /** For listings: s3rver leaves out the slash at the end of their path when it checks signatures. */
  readonly #lenient: S3rverInstance;
  #http: http.Server | undefined;
  #port = 0;

  private constructor(directory: string) {
    this.#directory = directory;
    const options = { directory, silent: true, vhostBuckets: false };
    this.#strict = new S3rver({
      ...options,
      configureBuckets: [{ name: S3_BUCKET, configs: [] }],
    });
    this.#lenient = new S3rver({ ...options, allowMismatchedSignatures: true });
  }

  static async start(): Promise<S3TestServer> {
    const server = new S3TestServer(await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-s3-')));
    await server.#strict.configureBuckets();
    await server.comeBack();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The settings and the credentials of a server that keeps its files here. */
  get env(): Record<string, string> {
    return { S3_BUCKET, S3_ENDPOINT: this.url, ...S3_CREDENTIALS };
  }

  /** Refuses connections, and ends those that are open. */
  async goAway(): Promise<void> {
    const server = this.#http!;
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  }

  async comeBack(): Promise<void> {
    const [strict, lenient] = [this.#strict.callback(), this.#lenient.callback()];
    this.#http = http.createServer((request, response) => {
      this.requests.push(`${request.method} ${request.url}`);
      if (this.mood === 'answers') {
        (request.url?.startsWith(`/${S3_BUCKET}/?`) ? lenient : strict)(request, response);
      } else if (this.mood === 'fails') {
        request.resume();
        response.writeHead(503, { 'content-length': '0' }).end();
      } else if (this.mood === 'stalls' && request.method === 'GET') {
        response.writeHead(200, { 'content-length': '100000', etag: '"a"' }).write('a few bytes');
      }
    });
    await new Promise<void>((resolve, reject) => {
      this.#http!.once('error', reject).listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (this.#http.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    await this.goAway();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** The program; undefined: there is none on this machine (`npm run setup -- --s3` builds it). */
export const VERSITYGW_PROGRAM = findGoProgram('versitygw');

/** Runs versitygw over an empty bucket, with the credentials of s3rver. */
export async function startVersitygw(): Promise<{
  readonly url: string;
  stop(): Promise<void>;
}> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-versitygw-'));
  await mkdir(path.join(directory, S3_BUCKET));
  const port = await freePort();
  const child = spawn(
    VERSITYGW_PROGRAM!,
    ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', directory],
    {
      stdio: 'ignore',
      env: {
        ...process.env,
        ROOT_ACCESS_KEY: S3_CREDENTIALS.AWS_ACCESS_KEY_ID,
        ROOT_SECRET_KEY: S3_CREDENTIALS.AWS_SECRET_ACCESS_KEY,
      },
    },
  );
  const exited = new Promise((resolve) => {
    child.once('exit', resolve);
  });
  const url = `http://127.0.0.1:${port}`;
  await until(
    () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    10_000 * patience(),
    'versitygw answers',
  );
  return {
    url,
    async stop() {
      child.kill();
      await Promise.race([exited, sleep(5000).then(() => child.kill('SIGKILL'))]);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
