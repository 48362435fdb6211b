// A front on a free port of loopback with a redis-server of its own, for the tests of this folder:
// all but workers and sessions.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type ErrorCode, ServiceError } from '../../src/base/errors.ts';
import { CloseStack } from '../../src/base/close-stack.ts';
import { createLogger, type Logger } from '../../src/base/log.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import { AudioError } from '../../src/jobs/video/audio/pcm-stream.ts';
import type { StaticRequest, StaticVideos } from '../../src/front/videos/static-videos.ts';
import { Cluster } from '../../src/front/cluster/cluster.ts';
import { Forwarder } from '../../src/front/cluster/forwarder.ts';
import { RoomiestNodes } from '../../src/front/cluster/roomiest-nodes.ts';
import { BodyBudget, type BodyBudgetOptions } from '../../src/front/http/body-budget.ts';
import type { Route } from '../../src/front/http/route.ts';
import { type HttpServer, startHttpServer } from '../../src/front/http-server.ts';
import { openIceServers } from '../../src/front/ice-servers.ts';
import { connectStore, type OpenStore } from '../../src/front/process/open-store.ts';
import { type RouteOptions, buildRoutes } from '../../src/front/routes.ts';
import { type Services, openServices } from '../../src/front/services.ts';
import { Metrics } from '../../src/metrics/metrics.ts';
import { FileBlobs } from '../../src/front/store/blobs.ts';
import type { RedisStore } from '../../src/front/store/redis.ts';

export interface TestFront {
  readonly services: Services;
  readonly routes: readonly Route[];
  readonly http: HttpServer;
  readonly bodyBudget: BodyBudget;
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

/** What a service of static videos may be built from. */
export interface VideoParts {
  readonly store: RedisStore;
  readonly services: Services;
  readonly serverId: string;
  readonly log: Logger;
}

export interface TestFrontOptions {
  /** Settings other than SETTINGS below. */
  readonly config?: Partial<Config>;
  /** What placement says; by default there is always room. */
  readonly sessions?: RouteOptions['sessions'];
  readonly onTokenRefused?: (code: ErrorCode) => void;
  readonly prepareConversations?: () => Promise<void>;
  readonly checkProviders?: RouteOptions['checkProviders'];
  readonly videos?: (parts: VideoParts) => StaticVideos | Promise<StaticVideos>;
  readonly bodyBudget?: BodyBudgetOptions;
  /** Address of the STUN server, local and as clients are told it. */
  readonly stunHost?: string;
  readonly serverId?: string;
  /** Undefined: a redis-server of its own. */
  readonly redisUrl?: string;
}

const SETTINGS = {
  PORT: '0',
  TOKEN_TTL_SECONDS: '60',
  RATE_LIMIT_RPS: '10000',
  MAX_SESSIONS_PER_KEY: '3',
  ICE_SERVERS: '[{"urls":"stun:127.0.0.1:3478"}]',
  MAX_QUEUED_JOBS: '5',
  HISTORY_RETENTION_DAYS: '30',
};

/** No session is there, and one that is opened has no connections. */
const noSession = (): never => {
  throw new ServiceError('NOT_FOUND');
};
const noSplits = {
  open: () => Promise.resolve({ session: { id: 'split' }, tokens: { agent: 'a', viewer: 'v' } }),
  watched: noSession,
  find: noSession,
};

/** Opens and says nothing. */
const silent = { open() {}, message() {}, close() {} };

/** The services, routes and listener of a front, composed as src/server.ts does. */
export async function openFront(
  config: Config,
  opened: OpenStore,
  closers: CloseStack,
  options: TestFrontOptions = {},
): Promise<Pick<TestFront, 'services' | 'routes' | 'http' | 'bodyBudget'>> {
  const log = createLogger(process.env['TEST_LOG'] ?? 'silent');
  const { store } = opened;
  const serverId = options.serverId ?? 'test';
  const fixtures = path.join(config.DATA_DIR, 'fixtures');
  const services = await openServices({
    config,
    store,
    storage: { blobs: new FileBlobs(config.DATA_DIR), evict: () => Promise.resolve() },
    serverId,
    jobCpus: [],
    defaultFaces: { manifestFile: path.join(fixtures, 'faces.json'), builtDir: fixtures },
    log,
  });
  closers.add(() => services.close());
  const stunHost = options.stunHost ?? '127.0.0.1';
  const ice = await openIceServers({
    config,
    publicHost: stunHost,
    stunHost,
    log,
    onStunRequest: () => {},
  });
  closers.add(() => ice.close());
  const bodyBudget = new BodyBudget(options.bodyBudget);
  const sessions = options.sessions ?? { room: 1, isDraining: false, find: () => undefined };
  const cluster = new Cluster(serverId, {
    store,
    tokens: services.tokens,
    quota: services.quota,
    metrics: new Metrics(),
    log,
  });
  const { registry } = cluster;
  const nodes = new RoomiestNodes(registry, serverId, '');
  const routes = buildRoutes({
    config,
    store,
    services,
    videos: await options.videos?.({ store, services, serverId, log }),
    sessions,
    canPlace: () => Promise.resolve(!sessions.isDraining && sessions.room > 0),
    cluster,
    forwarder: new Forwarder({ registry, nodes, nodeId: serverId, log }),
    splits: noSplits,
    storage: { isUp: true },
    models: ['rig'],
    iceServers: ice.iceServers,
    bodyBudget,
    isRoomToken: () => Promise.resolve(false),
    agents: undefined,
    prepareConversations: options.prepareConversations ?? (() => Promise.resolve()),
    checkProviders: options.checkProviders ?? (() => Promise.resolve()),
    readiness: {},
    renderMetrics: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
    onTokenRefused: options.onTokenRefused ?? (() => {}),
    version: '0.0.0',
    log,
  });
  const http = await startHttpServer({
    config,
    routes,
    sessionSockets: { p2p: silent, livekit: silent, rooms: silent, agents: silent },
    apiKeys: services.apiKeys,
    bodyBudget,
    admit: () => true,
    onRequest: () => {},
    onRefused: () => {},
    log,
  });
  closers.add(() => http.close());
  return { services, routes, http, bodyBudget };
}

export async function startTestFront(options: TestFrontOptions = {}): Promise<TestFront> {
  const closers = new CloseStack();
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-test-'));
  closers.add(() => rm(dataDir, { recursive: true, force: true }));
  const log = createLogger(process.env['TEST_LOG'] ?? 'silent');
  const redis = options.redisUrl === undefined ? undefined : { urls: [options.redisUrl] };
  const store = await connectStore({ redis, dataDir }, log);
  closers.add(() => store.close());
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
  const config = { ...loadConfig({ ...SETTINGS, DATA_DIR: dataDir }), ...options.config };
  const front = await openFront(config, store, closers, options).catch(async (error: unknown) => {
    await closers.close();
    throw error;
  });
  const { key } = await front.services.apiKeys.create('owner-1', 'test');
  const { url } = front.http;
  return {
    ...front,
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
    close: () => closers.close(),
  };
}

/**
 * Static videos without a renderer: knows one video, serves a fixture as each of its files, and
 * refuses an upload of four bytes.
 */
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

/** A front with stubbed static videos, and the key of a second owner. */
export async function startFrontOfTwo(): Promise<{ front: TestFront; otherKey: string }> {
  const front = await startTestFront({
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name)),
  });
  const { key: otherKey } = await front.services.apiKeys.create('owner-2', 'other');
  return { front, otherKey };
}

/** The body of an answer that is a JSON object. */
export const jsonOf = async (reply: Response): Promise<Record<string, unknown>> =>
  (await reply.json()) as Record<string, unknown>;
