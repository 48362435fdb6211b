// Assembles the front: stores, REST routes, WebSocket routes and the listener. The one place where its parts meet.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { type ErrorCode, ServiceError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { createJobPool, type JobPool } from '../jobs/job-pool.ts';
import { autoRoutes, type AgentFields } from './api/auto.ts';
import { composeRoutes, type IceServer } from './api/compose.ts';
import { faceRoutes } from './api/faces.ts';
import { historyRoutes } from './api/history.ts';
import { integrationRoutes } from './api/integrations.ts';
import { documentRoutes } from './api/openapi.ts';
import { pageRoutes } from './api/page.ts';
import { rateLimiterRoutes } from './api/ratelimiter.ts';
import { sessionRoutes } from './api/sessions.ts';
import { staticRoutes, type StaticVideos } from './api/static.ts';
import { systemRoutes } from './api/system.ts';
import { FaceCatalog } from './faces/face-catalog.ts';
import { loadDefaultFaces } from './faces/default-faces.ts';
import { Faces, type FaceJob } from './faces/faces.ts';
import { BodyBudget, type BodyBudgetOptions } from './http/body-budget.ts';
import { BODY_PACE } from './http/body-reader.ts';
import {
  CLIENT_LIMITS,
  ClientLimits,
  type ClientLimitSettings,
  type Refusal,
} from './http/client-limits.ts';
import type { AnsweredRequest } from './http/http-context.ts';
import { listen, type Listener } from './http/listener.ts';
import type { Route } from './http/route.ts';
import { Router } from './http/router.ts';
import { SocketRoutes } from './http/socket.ts';
import { SessionQuota } from './sessions/session-quota.ts';
import { SessionTokens } from './sessions/session-tokens.ts';
import { Agents } from './accounts/agents.ts';
import { startStunServer, type StunCount, type StunServer } from '../webrtc/ice/stun-server.ts';
import { ApiKeys } from './accounts/api-keys.ts';
import { AutoTokens } from './accounts/auto-tokens.ts';
import { FileBlobs } from './store/blobs.ts';
import { FACE_SERVICE_VERSION, FaceRecords } from './faces/face-records.ts';
import type { History } from './history/history.ts';
import { JobQueue } from './queue/job-queue.ts';
import type { RedisStore } from './store/redis.ts';
import { SecretBox } from './accounts/secret-box.ts';

export interface FrontConfig {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly dataDir: string;
  readonly apiKeyHeaders: readonly string[];
  readonly tokenTtlSeconds: number;
  readonly requestsPerSecond: number;
  readonly sessionsPerKey: number;
  /** Handed to clients. Undefined: a STUN server of our own, on UDP at the number of the HTTP port. */
  readonly iceServers: readonly IceServer[] | undefined;
  /** The address of this host as clients know it, and the one on which our STUN server is found under it; unset: `host`. */
  readonly publicHost: string;
  readonly stunHost?: string;
  readonly turnSecret: string | undefined;
  /** Under which clients reach this server, without a path; unset: as each request says (Host, X-Forwarded-Proto). */
  readonly publicUrl?: string | undefined;
  /** Of WebSockets; empty: any. */
  readonly allowedOrigins: readonly string[];
  readonly maxConnections: number;
  /** Of all kinds. */
  readonly maxTcpConnections?: number;
  readonly clientLimits?: ClientLimitSettings;
  readonly bodyBudget?: BodyBudgetOptions;
  /** 64 hex digits; undefined: made on first start and kept in `dataDir`. */
  readonly secretsKey: string | undefined;
  readonly jobThreads: number;
  /** CPUs for offline work; empty: any. */
  readonly jobCpus: readonly number[];
  readonly maxQueuedJobs: number;
  /** The list of default faces, and where the set-up has put their assets. */
  readonly defaultFaces: { readonly manifestFile: string; readonly builtDir: string };
  /** Of the program, for the API document. */
  readonly version: string;
}

/** What the rest of the server does for the front. */
export interface FrontDeps {
  readonly history: History;
  /** Names this server, across restarts. */
  readonly serverId: string;
  readonly canPlace: () => boolean;
  /** Sessions that may still come; unset: 1 while `canPlace`. */
  readonly room?: () => number;
  readonly draining: () => boolean;
  readonly models: readonly string[];
  /** Beside those of the front itself (redis, accepting). */
  readonly readiness: Readonly<Record<string, () => boolean | Promise<boolean>>>;
  readonly metrics: (
    accept: string,
  ) => Promise<{ readonly contentType: string; readonly body: string }>;
  /** Called once for each answered request. */
  readonly onRequest: (request: AnsweredRequest) => void;
  /** Something was refused to protect the server. */
  readonly onRefused?: (reason: Refusal) => void;
  readonly onTokenRefused?: (code: ErrorCode) => void;
  /** Hears of each datagram that reached our own STUN server. */
  readonly onStunRequest?: StunCount;
  /** The ledger of a live session; null when it is not on this server or not this owner's. */
  readonly sessionStats?: (ownerId: string, sessionId: string) => Promise<object | null>;
  /** Asked for each new connection; false refuses it. */
  readonly admit?: () => boolean;
  /** Makes the renderer of static videos; without it those paths answer 501. */
  readonly staticVideos?: (parts: StaticParts) => StaticVideos | Promise<StaticVideos>;
}

/** What the front lends to the renderer of static videos. */
export interface StaticParts {
  readonly store: RedisStore;
  readonly blobs: FileBlobs;
  readonly jobPool: JobPool;
  readonly faces: FaceCatalog;
  readonly serverId: string;
  readonly config: FrontConfig;
  readonly log: Logger;
}

export interface Front {
  readonly apiKeys: ApiKeys;
  readonly tokens: SessionTokens;
  readonly quota: SessionQuota;
  readonly faces: Faces;
  readonly faceCatalog: FaceCatalog;
  readonly jobPool: JobPool;
  readonly staticVideos: StaticVideos | undefined;
  /** The table that is served, for tests that hold the document to it. */
  readonly routes: readonly Route[];
  /** Add WebSocket routes here, before or after `listen`. */
  readonly sockets: SocketRoutes;
  /** HTTP requests being answered. */
  readonly requestsInFlight: number;
  /** TCP connections, WebSockets among them. */
  readonly connections: number;
  /** Bytes of request bodies in memory. */
  readonly bodyBytes: number;
  /** Whether there is memory for more of them. */
  readonly takesUploads: boolean;
  listen(): Promise<{ port: number }>;
  /** Reads the certificate files again, for new connections. @throws Error when they cannot be used */
  reloadCertificate(): Promise<void>;
  close(): Promise<void>;
}

export interface FrontParts {
  readonly config: FrontConfig;
  readonly store: RedisStore;
  readonly log: Logger;
  readonly deps: FrontDeps;
}

const PAGE_DIRECTORY = path.join(import.meta.dirname, '../page');

const REMOVED = [
  {
    path: '/textToVideoStream',
    reason:
      'POST /textToVideoStream was removed. Generate the speech audio separately and send it to POST /static/audio.',
  },
];

/** Builds everything; nothing is served until `listen`. */
export async function createFront({ config, store, log, deps }: FrontParts): Promise<Front> {
  await mkdir(config.dataDir, { recursive: true });
  const apiKeys = new ApiKeys(store, config.requestsPerSecond);
  const tokens = new SessionTokens(store, config.tokenTtlSeconds);
  const quota = new SessionQuota(store, config.sessionsPerKey);
  const onRefused = (reason: Refusal): void => {
    deps.onRefused?.(reason);
  };
  const limits = new ClientLimits(config.clientLimits ?? CLIENT_LIMITS, onRefused);
  const bodyBudget = new BodyBudget(config.bodyBudget);
  const { allowedOrigins, maxConnections } = config;
  const sockets = new SocketRoutes({ allowedOrigins, maxConnections, limits, log });
  const apiKeyHeaders = config.apiKeyHeaders.map((name) => name.toLowerCase());
  const jobPool = createJobPool(config.jobThreads, config.jobCpus);
  const bodyPool = createJobPool(1, config.jobCpus);
  const blobs = new FileBlobs(config.dataDir);
  const faces = await openFaces(config, store, deps.serverId, jobPool, blobs, log);
  const faceCatalog = new FaceCatalog(faces);
  const staticVideos = await deps.staticVideos?.({
    store,
    blobs,
    jobPool,
    faces: faceCatalog,
    serverId: deps.serverId,
    config,
    log,
  });
  const faceExists = async (ownerId: string, faceId: string): Promise<boolean> => {
    const face = await faces.find(ownerId, faceId);
    return face !== undefined && face.status !== 'failed';
  };

  const iceServers: IceServer[] = [...(config.iceServers ?? [])];

  const api: Route[] = [
    ...composeRoutes({
      tokens,
      quota,
      faceExists,
      models: deps.models,
      canPlace: deps.canPlace,
      draining: deps.draining,
      iceServers,
      turnSecret: config.turnSecret,
      onRefused: deps.onTokenRefused,
      log,
    }),
    ...staticRoutes({ videos: staticVideos, faceExists, bodyPool }),
    ...faceRoutes(faces),
    ...historyRoutes(deps.history),
    ...rateLimiterRoutes(quota),
    ...sessionRoutes(deps.sessionStats ?? (() => Promise.resolve(null))),
    ...autoRoutes({
      agents: new Agents<AgentFields>(store),
      tokens: new AutoTokens(store, await SecretBox.open(config.secretsKey, config.dataDir, store)),
      serviceVersion: FACE_SERVICE_VERSION,
    }),
    ...integrationRoutes(),
    ...systemRoutes({
      readiness: {
        redis: () => store.ping(),
        accepting: () => !deps.draining(),
        uploads: () => !bodyBudget.isFull,
        ...deps.readiness,
      },
      room: deps.room ?? (() => (deps.canPlace() ? 1 : 0)),
      metrics: deps.metrics,
    }),
  ];
  const routes = [
    ...api,
    ...documentRoutes(api, {
      version: config.version,
      apiKeyHeader: apiKeyHeaders[0] ?? 'x-service-api-key',
    }),
  ];
  const context = {
    router: new Router([...routes, ...(await pageRoutes(PAGE_DIRECTORY))], REMOVED),
    log,
    apiKeyHeaders,
    secure: config.tls !== undefined,
    publicUrl: config.publicUrl,
    onRequest: deps.onRequest,
    authenticate: (key: string) => authenticate(apiKeys, apiKeyHeaders, key),
    limits,
    bodyBudget,
    bodyPace: BODY_PACE,
  };
  sockets.add('/compose/webrtc/livekit', notServed);
  sockets.add('/StartWebRTCSessionLivekit', notServed, '/compose/webrtc/livekit');

  let listener: Listener | undefined;
  let stun: StunServer | undefined;
  return {
    apiKeys,
    tokens,
    quota,
    faces,
    faceCatalog,
    jobPool,
    staticVideos,
    routes,
    sockets,
    get requestsInFlight() {
      return listener?.inFlight ?? 0;
    },
    get connections() {
      return listener?.connections ?? 0;
    },
    get bodyBytes() {
      return bodyBudget.held;
    },
    get takesUploads() {
      return !bodyBudget.isFull;
    },
    async listen() {
      listener = await listen({
        host: config.host,
        port: config.port,
        ...(config.tls ? { tls: config.tls } : {}),
        ...(deps.admit ? { admit: deps.admit } : {}),
        maxConnections: config.maxTcpConnections ?? 10_000,
        sockets,
        context,
      });
      if (iceServers.length === 0) {
        const stunHost = config.stunHost ?? config.host;
        stun = await startStunServer(stunHost, listener.port, log, deps.onStunRequest);
        const host = config.publicHost.includes(':') ? `[${config.publicHost}]` : config.publicHost;
        iceServers.push({ urls: `stun:${host}:${stun?.port ?? 3478}` });
      }
      return { port: listener.port };
    },
    async reloadCertificate() {
      await listener?.reload();
    },
    async close() {
      await listener?.close();
      await stun?.close();
      await faces.close();
      await Promise.all([jobPool.close(), bodyPool.close()]);
    },
  };
}

async function openFaces(
  config: FrontConfig,
  store: RedisStore,
  serverId: string,
  pool: JobPool,
  blobs: FileBlobs,
  log: Logger,
): Promise<Faces> {
  const queue = new JobQueue<FaceJob>({
    store,
    name: 'face',
    serverId,
    capacity: config.maxQueuedJobs,
  });
  await queue.reclaim();
  const { manifestFile, builtDir } = config.defaultFaces;
  return new Faces({
    records: new FaceRecords(store),
    blobs,
    queue,
    pool,
    threads: config.jobThreads,
    log,
    defaultFaces: await loadDefaultFaces(manifestFile, builtDir),
  });
}

/** A WebSocket of the interface whose running comes later: opened, told why, closed, as clients expect it. */
const notServed = {
  open(socket: { send(message: string): boolean; end(code?: number, reason?: string): void }) {
    socket.send('ERROR NOT_IMPLEMENTED');
    socket.end(1000, 'NOT_IMPLEMENTED');
  },
  message() {},
  close() {},
};

async function authenticate(apiKeys: ApiKeys, headers: readonly string[], key: string) {
  try {
    return await apiKeys.authenticate(key);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'INVALID_API_KEY') {
      throw error;
    }
    throw new ServiceError(
      'INVALID_API_KEY',
      `The API key is missing or not valid. Send it in the ${headers.join(' or ')} header.`,
    );
  }
}
