// The service of static videos on a real Redis: limits, expiry, failures and restarts.
import assert from 'node:assert/strict';
import { access, readFile, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../src/base/errors.ts';
import {
  StaticVideoService,
  type StaticVideoOptions,
} from '../../../src/front/videos/static-video-service.ts';
import type { SessionStart } from '../../../src/front/history/session-recorder.ts';
import { JobQueue } from '../../../src/front/queue/job-queue.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { ROOT } from '../../harness/server.ts';
import { startTestFront, type TestFront, type VideoParts } from '../harness.ts';

const SWEEP_MS = 100;
const SECOND = Buffer.alloc(32_000); // of silence, 16 kHz mono

let server: TestFront;
let parts: VideoParts;
let videos: StaticVideoService;
let metrics: Metrics;
let asset: SharedArrayBuffer;
/** Loads the face; a test may replace it by one that fails. */
let loadFace: () => Promise<SharedArrayBuffer>;
const recorded: SessionStart[] = [];

/** Listings of all videos in the storage. */
let listings = 0;
const countingBlobs = (): VideoParts['services']['blobs'] =>
  new Proxy(parts.services.blobs, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      return typeof value !== 'function'
        ? value
        : (...args: unknown[]): unknown => {
            listings += name === 'list' && args[0] === 'static' ? 1 : 0;
            return value.apply(target, args);
          };
    },
  });

const open = (change: Partial<StaticVideoOptions> = {}): Promise<StaticVideoService> =>
  StaticVideoService.open({
    store: parts.store,
    blobs: countingBlobs(),
    serverId: parts.serverId,
    log: parts.log,
    faces: { load: () => loadFace() },
    recorder: {
      record: (start) => {
        recorded.push(start);
        return Promise.resolve();
      },
    },
    metrics,
    threads: 1,
    cpus: [0],
    motion: 'natural',
    maxQueued: 2,
    ttlSeconds: 3600,
    sweepEveryMs: SWEEP_MS,
    ...change,
  });

beforeAll(async () => {
  const bytes = await readFile(path.join(ROOT, 'models/build/faces/ava.face'));
  asset = new SharedArrayBuffer(bytes.length);
  new Uint8Array(asset).set(bytes);
  loadFace = () => Promise.resolve(asset);
  metrics = new Metrics();
  server = await startTestFront({
    videos: async (lent) => {
      parts = lent;
      videos = await open();
      return videos;
    },
  });
});
afterAll(async () => {
  await videos.close();
  await server.close();
});

/** Requests a video of `seconds` of silence. */
const post = (seconds = 1): Promise<Response> =>
  server.call('/static/audio', {
    json: {
      faceId: 'ava',
      audioBase64: Buffer.alloc(Math.round(seconds * 32_000)).toString('base64'),
    },
  });

async function created(seconds = 1): Promise<string> {
  const response = await post(seconds);
  assert.equal(response.status, 200);
  return ((await response.json()) as { id: string }).id;
}

const status = async (
  id: string,
): Promise<{ status: string; error?: string; queue_position?: number } | undefined> => {
  const response = await server.call(`/static/status?id=${id}`);
  return response.status === 404 ? undefined : ((await response.json()) as { status: string });
};

async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) {
      return found;
    }
    await delay(25);
  }
}

const over = (id: string): Promise<{ status: string; error?: string }> =>
  until(async () => {
    const found = await status(id);
    return found !== undefined && ['completed', 'failed'].includes(found.status) && found;
  });

const folder = (id: string): string => path.join(server.dataDir, 'static', id);
const metric = async (line: string): Promise<number> =>
  Number(
    (await metrics.render()).body
      .split('\n')
      .find((found) => found.startsWith(`${line} `))
      ?.split(' ')[1] ?? Number.NaN,
  );

test('the queue is bounded; a waiting video knows its position; all accepted are rendered', async () => {
  // Four take turns on the thread: they are taken from the queue, and held before they are drawn.
  const gate = Promise.withResolvers<SharedArrayBuffer>();
  let calls = 0;
  // The first call of each video looks whether the face exists, the second one is to draw it.
  loadFace = () => (++calls % 2 === 1 ? Promise.resolve(asset) : gate.promise);
  const rendering: string[] = [];
  for (let count = 1; count <= 4; count++) {
    rendering.push(await created());
    await until(() => Promise.resolve(calls === 2 * count));
  }
  loadFace = () => Promise.resolve(asset);
  const replies = await Promise.all([post(), post(), post()]);
  const refused = replies.find(({ status: code }) => code !== 200)!;
  const waiting = await Promise.all(
    replies
      .filter((reply) => reply !== refused)
      .map(async (reply) => ((await reply.json()) as { id: string }).id),
  );
  const ids = [...rendering, ...waiting];
  const positions = await Promise.all(
    waiting.map(async (id) => (await status(id))?.queue_position),
  );
  assert.deepEqual(new Set(positions), new Set([1, 2]));
  assert.equal(refused.status, 429);
  assert.equal(((await refused.json()) as { code: string }).code, 'QUEUE_FULL');
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  assert.equal(await metric('mouthpiece_jobs_refused_total{kind="static"}'), 1);
  gate.resolve(asset);
  assert.deepEqual(
    (await readdir(path.join(server.dataDir, 'static'))).sort(),
    [...ids].sort(),
    'the refused video left files',
  );
  for (const id of ids) {
    assert.equal((await over(id)).status, 'completed');
  }
  // The last steps of a video come after its record says that it is completed.
  await until(
    async () =>
      (await metric('mouthpiece_jobs_finished_total{kind="static",result="completed"}')) === 6,
  );
  assert.deepEqual(
    (await readdir(folder(ids[1]!))).sort(),
    ['hls', 'output.mp4'],
    'the upload or a draft was left',
  );
  assert.deepEqual(
    recorded.map(({ id, kind }) => `${id} ${kind}`).sort(),
    ids.map((id) => `${id} static`).sort(),
  );
  for (const id of ids) {
    assert.match(
      id,
      /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
      'history promises UUIDs',
    );
  }
});

test('a short video does not wait for a long one that came first, on a single thread', async () => {
  const long = await created(12);
  await until(async () => (await status(long))?.status === 'rendering');
  const short = await created(1);
  assert.equal((await over(short)).status, 'completed');
  assert.equal((await status(long))?.status, 'rendering');
  assert.equal((await over(long)).status, 'completed');
});

test('however many wait for one playlist, the database is asked 20 times a second', async () => {
  const id = '00000000-0000-4000-8000-000000000000';
  const reads = async (): Promise<number> => {
    const info = await parts.store.use((client) => client.info('commandstats'));
    return Number(/cmdstat_hgetall:calls=(\d+)/.exec(info)?.[1] ?? 0);
  };
  await parts.store.use((client) =>
    client.hset(keys.staticVideo(id), { ownerId: 'o', status: 'queued', segments: 0 }),
  );
  const before = await reads();
  const waiting = Promise.allSettled(
    Array.from({ length: 100 }, () => videos.openHls(id, 'output.m3u8')),
  );
  await delay(1000);
  await parts.store.use((client) => client.hset(keys.staticVideo(id), { status: 'failed' }));
  const ends = await waiting;
  assert.ok(ends.every(({ status: end }) => end === 'rejected'));
  const asked = (await reads()) - before;
  // One for each request, and the shared ones: without these it were 2000.
  assert.ok(asked >= 100 && asked <= 250, `${asked} reads`);
  await parts.store.use((client) => client.del(keys.staticVideo(id)));
});

test('records and files are deleted when they expire', async () => {
  const id = await created();
  await over(id);
  await videos.close();
  videos = await open({ ttlSeconds: 1 });
  await access(folder(id)); // the longer time that it was made under still counts
  await parts.store.use((client) => client.expire(keys.staticVideo(id), 1));
  await until(() =>
    access(folder(id)).then(
      () => false,
      () => true,
    ),
  );
  assert.equal(await videos.status(id), undefined);
  assert.equal(await videos.openMp4(id), undefined);
  assert.equal(await videos.openHls(id, 'output.m3u8'), undefined);
  const short = await videos.create({
    ownerId: 'o',
    keyId: 'k',
    keyName: 'n',
    faceId: 'ava',
    emotion: 'neutral',
    audio: SECOND,
    audioFormat: 'pcm16',
    sampleRate: 16_000,
    channelCount: 1,
    startFrame: 0,
  });
  await until(async () => (await videos.status(short.id))?.status === 'completed');
  await until(async () => (await videos.status(short.id)) === undefined);
  await videos.close();
  videos = await open();
});

test('a finished video whose files are missing is failed, until they are back', async () => {
  const id = await created(2);
  assert.equal((await over(id)).status, 'completed');
  const files = ['output.mp4', 'hls/output.m3u8', 'hls/init.mp4', 'hls/segment-0001.m4s'];
  for (const file of files) {
    await rename(path.join(folder(id), file), path.join(server.dataDir, 'aside'));
    const told = await status(id);
    assert.equal(told?.status, 'failed', file);
    assert.match(told?.error ?? '', /no longer in the storage.*Send the audio again/);
    const url =
      file === 'output.mp4' ? `/static/mp4/${id}/${file}` : `/static/hls/${id}/${file.slice(4)}`;
    assert.equal((await server.call(url)).status, 404);
    await rename(path.join(server.dataDir, 'aside'), path.join(folder(id), file));
    assert.equal((await status(id))?.status, 'completed');
    assert.equal((await server.call(url)).status, 200);
  }
  await rm(folder(id), { recursive: true });
  assert.equal((await status(id))?.status, 'failed');
});

/**
 * A video that a server accepted and did not begin: a closed service takes no jobs.
 */
async function left(): Promise<string> {
  await videos.close();
  const { id } = await videos.create({
    ownerId: 'owner-1',
    keyId: 'k',
    keyName: 'n',
    faceId: 'ava',
    emotion: 'calm',
    audio: SECOND,
    audioFormat: 'pcm16',
    sampleRate: 16_000,
    channelCount: 1,
    startFrame: 0,
  });
  return id;
}

async function resumed(id: string): Promise<{ status: string; error?: string } | undefined> {
  videos = await open();
  return await until(async () => {
    const found = await videos.status(id);
    return found !== undefined && ['completed', 'failed'].includes(found.status) && found;
  });
}

test('videos that an earlier server left are rendered, or failed with a reason', async () => {
  assert.equal((await resumed(await left()))?.status, 'completed');

  const faceless = await left();
  loadFace = () => Promise.reject(new ServiceError('INVALID_FACE_ID'));
  assert.match((await resumed(faceless))?.error ?? '', /face was deleted/);
  loadFace = () => Promise.resolve(asset);
  await assert.rejects(videos.openHls(faceless, 'output.m3u8'), /face was deleted/);

  const uploadless = await left();
  await rm(path.join(folder(uploadless), 'upload'));
  assert.match((await resumed(uploadless))?.error ?? '', /audio was lost/);

  const jobless = await left();
  await new JobQueue({
    store: parts.store,
    name: 'static',
    serverId: 'test',
    capacity: 1,
  }).cancel(jobless);
  await parts.store.use((client) =>
    client.hset(keys.staticVideo(jobless), { createdMs: Date.now() - 120_000 }),
  );
  assert.match((await resumed(jobless))?.error ?? '', /interrupted/);
});

test('an asset that cannot be rendered fails its job after all attempts, and not the server', async () => {
  const id = await left();
  loadFace = () => Promise.resolve(new SharedArrayBuffer(1000));
  // The next attempt waits until the lease of the failed one expires: let that happen at once.
  const queue = new JobQueue({
    store: parts.store,
    name: 'static',
    serverId: parts.serverId,
    capacity: 1,
  });
  let attempts = 0;
  const error = (): void => {
    attempts++;
    void queue.reclaim();
  };
  videos = await open({
    log: Object.create(parts.log, { error: { value: error } }) as typeof parts.log,
  });
  const failed = await until(async () => {
    const found = await videos.status(id);
    return found?.status === 'failed' && found;
  });
  assert.equal(attempts, 3);
  assert.match(failed.error ?? '', /could not be rendered/);
  loadFace = () => Promise.resolve(asset);
  assert.equal((await over(await created())).status, 'completed');
});

test('of servers that share a storage, one at a time looks for files of expired videos', async () => {
  const others = await Promise.all(
    ['second', 'third', 'fourth'].map((serverId) => open({ serverId })),
  );
  listings = 0;
  const startMs = performance.now();
  await until(() => Promise.resolve(listings > 8));
  const most = (performance.now() - startMs) / (SWEEP_MS * 0.9) + 2;
  assert.ok(listings <= most, `${listings} listings, ${most.toFixed(1)} at most`);
  await Promise.all(others.map((other) => other.close()));
});
