// A storage that accepts requests and never answers: every operation ends in words within its limit,
// readiness knows earlier, and nobody waits for it afterwards.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test, vi } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import { createLogger } from '../../../src/base/log.ts';
import { S3Blobs } from '../../../src/front/store/s3-blobs.ts';
import { WatchedBlobs } from '../../../src/front/store/watched-blobs.ts';
import { patience } from '../../harness/machine.ts';
import { S3_BUCKET, S3_CREDENTIALS, S3TestServer } from '../../harness/s3-server.ts';
import { until } from '../../harness/until.ts';

const KEY = 'faces/a/asset.face';
const BYTES = 100_000;
const closers: (() => unknown)[] = [];
let directory: string;
beforeAll(async () => {
  for (const [name, value] of Object.entries(S3_CREDENTIALS)) {
    vi.stubEnv(name, value);
  }
  directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-storage-hangs-'));
});
afterAll(async () => {
  await Promise.all(closers.map((close) => close()));
  await rm(directory, { recursive: true, force: true });
  vi.unstubAllEnvs();
});

/** An S3 server with one object, and a server's view of it. */
async function open(name: string): Promise<{ s3: S3TestServer; watched: WatchedBlobs }> {
  const s3 = await S3TestServer.start();
  const blobs = await S3Blobs.open({
    bucket: S3_BUCKET,
    endpoint: s3.url,
    region: 'us-east-1',
    isPathStyle: true,
    prefix: '',
    links: undefined,
    draftDir: path.join(directory, name),
  });
  const watched = new WatchedBlobs(blobs, { observe: () => {}, log: createLogger('silent') });
  closers.push(() => {
    watched.close();
    blobs.close();
    return s3.stop();
  });
  await watched.put(KEY, Buffer.alloc(BYTES, 1));
  return { s3, watched };
}

/** How long an operation takes to be refused in words. */
async function refusedAfter(operation: Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await assert.rejects(
    operation,
    (error) => error instanceof ServiceError && error.code === 'STORAGE_UNAVAILABLE',
  );
  return performance.now() - startMs;
}

test.concurrent('S3 that never answers: operations end, and readiness says so', async () => {
  const { s3, watched } = await open('hangs');
  const reader = (await watched.open(KEY))!;
  const startMs = performance.now();
  s3.mood = 'hangs';
  let knownMs = Infinity;
  const [known, ...tookMs] = await Promise.all([
    until(() => !watched.isUp, 12_000 * patience(), 'readiness says so').then(() => {
      knownMs = performance.now() - startMs;
      return refusedAfter(watched.stat(KEY));
    }),
    refusedAfter(watched.stat(KEY)),
    refusedAfter(watched.get(KEY)),
    refusedAfter(watched.put('faces/b/upload', Buffer.alloc(3 << 20))),
    refusedAfter(reader.read(new Uint8Array(1000), 0)),
  ]);
  const figures = [knownMs, ...tookMs].map(Math.round).join(', ');
  assert.ok(knownMs < 9000 * patience(), `ms: ${figures}`);
  assert.ok(Math.max(...tookMs) < 35_000 * patience(), `ms: ${figures}`);
  assert.ok(known < 500 * patience(), 'it is refused at once');
  console.info(`S3 hangs: known, stat, get, put, read after ${figures} ms`);
  s3.mood = 'answers';
  await until(() => watched.isUp, 12_000 * patience(), 'it works again');
  assert.equal((await watched.get(KEY))?.length, BYTES);
});

test.concurrent('S3 that stops amid an answer ends the reading in words', async () => {
  const { s3, watched } = await open('stalls');
  s3.mood = 'stalls';
  const tookMs = await refusedAfter(watched.get(KEY));
  s3.mood = 'answers';
  assert.ok(tookMs < 30_000 * patience(), `${Math.round(tookMs)} ms`);
});
