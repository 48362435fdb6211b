// A front on a free port of loopback with a redis-server of its own, for the tests of this folder.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createLogger } from '../../src/base/log.ts';
import {
  createFront,
  type Front,
  type FrontConfig,
  type FrontDeps,
} from '../../src/front/front.ts';
import type { StaticRequest, StaticVideos } from '../../src/front/api/static.ts';
import { AudioError } from '../../src/jobs/video/audio/pcm-stream.ts';
import { History } from '../../src/front/history/history.ts';
import { connectStore, type OpenStore } from '../../src/front/process/open-store.ts';

export interface TestFront {
  readonly front: Front;
  readonly history: History;
  readonly store: OpenStore;
  readonly url: string;
  readonly key: string;
  readonly dataDir: string;
  /** fetch with the key, relative to the server. `key: undefined` sends no key. */
  call(
    path: string,
    init?: RequestInit & { json?: unknown; key?: string | undefined },
  ): Promise<Response>;
  close(): Promise<void>;
}

export async function startTestFront(
  config: Partial<FrontConfig> = {},
  deps: Partial<FrontDeps> = {},
  redisUrl?: string,
): Promise<TestFront> {
  const dataDir = config.dataDir ?? (await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-test-')));
  const log = createLogger(process.env['TEST_LOG'] ?? 'silent');
  const store = await connectStore({ redisUrl, dataDir }, log);
  const history = new History(store.store, 30);
  const fixtures = path.join(dataDir, 'fixtures');
  await mkdir(fixtures, { recursive: true });
  await writeFile(
    path.join(fixtures, 'faces.json'),
    JSON.stringify({
      faces: [
        { id: 'ava', name: 'Ava' },
        { id: 'unmade', name: 'Not made' },
      ],
    }),
  );
  await writeFile(path.join(fixtures, 'ava.face'), 'not a real asset');
  await writeFile(path.join(fixtures, 'ava.jpg'), 'not a real picture');
  const front = await createFront({
    config: {
      host: '127.0.0.1',
      port: 0,
      tls: undefined,
      dataDir,
      apiKeyHeaders: ['x-service-api-key'],
      tokenTtlSeconds: 60,
      requestsPerSecond: 10_000,
      sessionsPerKey: 3,
      iceServers: [{ urls: 'stun:127.0.0.1:3478' }],
      publicHost: '127.0.0.1',
      turnSecret: undefined,
      allowedOrigins: [],
      maxConnections: 100,
      secretsKey: undefined,
      jobThreads: 1,
      jobCpus: [],
      maxQueuedJobs: 5,
      version: '0.0.0',
      defaultFaces: { manifestFile: path.join(fixtures, 'faces.json'), builtDir: fixtures },
      ...config,
    },
    store: store.store,
    log,
    deps: {
      history,
      serverId: 'test',
      canPlace: () => true,
      draining: () => false,
      models: ['rig'],
      readiness: {},
      metrics: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
      onRequest: () => {},
      ...deps,
    },
  });
  const { key } = await front.apiKeys.create('owner-1', 'test');
  const { port } = await front.listen().catch(async (error: unknown) => {
    await front.close();
    await store.close();
    throw error;
  });
  const url = `${config.tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  return {
    front,
    history,
    store,
    url,
    key,
    dataDir,
    call(target, options = {}) {
      const { json, ...init } = options;
      const chosen = 'key' in options ? options.key : key;
      const headers = new Headers(init.headers);
      if (chosen !== undefined) {
        headers.set('x-service-api-key', chosen);
      }
      if (json !== undefined) {
        headers.set('content-type', 'application/json');
      }
      return fetch(`${url}${target}`, {
        ...init,
        headers,
        ...(json === undefined
          ? {}
          : { method: init.method ?? 'POST', body: JSON.stringify(json) }),
      });
    },
    async close() {
      await front.close();
      await store.close();
      if (config.dataDir === undefined) {
        await rm(dataDir, { recursive: true, force: true });
      }
    },
  };
}

/** In place of the renderer: knows one video, serves the test's own face as each of its files, and refuses four bytes as no audio. */
export const stubVideos = (
  open: (name: string) => ReturnType<StaticVideos['openMp4']>,
  made: StaticRequest[] = [],
): StaticVideos => ({
  create(request) {
    if (request.audio.length === 4) {
      return Promise.reject(new AudioError('This is not an MP3 file'));
    }
    made.push(request);
    return Promise.resolve({ id: 'video-1', etaSeconds: 1.5 });
  },
  status: (id) =>
    Promise.resolve(
      id === 'video-1' ? { status: 'rendering', progress: 0.5, durationSeconds: 3 } : undefined,
    ),
  openHls: (id, name) =>
    id === 'video-1' && ['output.m3u8', 'segment-0.m4s'].includes(name)
      ? open('fixtures/ava.face')
      : Promise.resolve(undefined),
  openMp4: (id) => (id === 'video-1' ? open('fixtures/ava.face') : Promise.resolve(undefined)),
});
