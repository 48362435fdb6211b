// Puts the server together: store, workers, sessions, front. What `main.ts` starts, and what tests start in their own process.
import { createSocket } from 'node:dgram';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { ERRORS } from './base/errors.ts';
import type { Logger } from './base/log.ts';
import type { Config } from './config.ts';
import { createFront, type Front } from './front/front.ts';
import { DescriptorReserve } from './front/descriptor-reserve.ts';
import { observeHttp, observeRedis, observeRefusals, observeStun } from './front/front-metrics.ts';
import { claimCores } from './front/placement/core-claims.ts';
import { WorkerPool } from './front/placement/worker-pool.ts';
import { SessionService } from './front/sessions/session-service.ts';
import { StaticVideoService } from './front/videos/static-video-service.ts';
import { newSecret } from './base/ids.ts';
import { connectStore, type OpenStore } from './front/process/open-store.ts';
import { History } from './front/history/history.ts';
import { prepareDataDir, readOrCreate, serverIdentity } from './front/store/data-dir.ts';
import { SessionRecorder } from './front/history/session-recorder.ts';
import type { MediaConfig } from './link/worker-init.ts';
import { Metrics } from './metrics/metrics.ts';
import { watchMainThread } from './metrics/threads.ts';
import { native } from './native/addon.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const API_KEY_NAME = 'api-key';
export const DEFAULT_FACES_DIR = path.join(ROOT, 'models/build/faces');

export interface RunningServer {
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
  /** Where the key lies; undefined when it came from the settings. */
  readonly apiKeyFile: string | undefined;
  /** Whether this start made the key. */
  readonly isKeyNew: boolean;
  readonly front: Front;
  readonly pool: WorkerPool;
  readonly sessions: SessionService;
  readonly metrics: Metrics;
  /**
   * Reads the certificate files again, for new connections. @returns which; undefined where the server does not speak TLS itself.
   * @throws Error when they cannot be used: then the old certificate stays in use
   */
  reloadCertificate(): Promise<{ readonly certificate: string; readonly key: string } | undefined>;
  /** Refuses new sessions, lets running ones finish up to the drain time or until `hurry`, then stops everything. */
  stop(drainMs: number, isHurried?: () => boolean): Promise<void>;
}

/** @throws Error with one line to act on */
export async function startServer(config: Config, log: Logger): Promise<RunningServer> {
  await prepareDataDir(config.DATA_DIR);
  const metrics = new Metrics();
  const stopVitals = watchMainThread(metrics, () => native.threadCpuMs(), {
    version: packageVersion(),
    commit: commitHash(),
  });
  const opened = await connectStore({ redisUrl: config.REDIS_URL, dataDir: config.DATA_DIR }, log);
  const closers: (() => Promise<void>)[] = [
    () => Promise.resolve(stopVitals()),
    () => opened.close(),
  ];
  try {
    return await assemble(config, log, metrics, opened, closers);
  } catch (error) {
    for (const close of closers) {
      await close();
    }
    throw error;
  }
}

async function assemble(
  config: Config,
  log: Logger,
  metrics: Metrics,
  opened: OpenStore,
  closers: (() => Promise<void>)[],
): Promise<RunningServer> {
  const { store } = opened;
  observeRedis(metrics, store.client, () => store.ready);
  const serverId = await serverIdentity(config.DATA_DIR);
  const history = new History(store, config.HISTORY_RETENTION_DAYS);
  const recorder = await SessionRecorder.open({
    store,
    history,
    serverId,
    dataDir: config.DATA_DIR,
    log,
  });
  const media = mediaAddresses(config);
  await checkMediaAddress(media.bound);
  if (config.WAV2LIP_MODEL !== undefined && !existsSync(config.WAV2LIP_MODEL)) {
    throw new Error(
      `WAV2LIP_MODEL=${config.WAV2LIP_MODEL} is not there. Correct the path, or unset it.`,
    );
  }
  const publicHost = media.announced[0] ?? config.HOST;
  const allowedCpus = native.allowedCpus();
  const cores = await claimCores(allowedCpus, config.WORKERS);
  closers.unshift(() => cores.release());
  if (cores.shared.length > 0) {
    log.warn(
      { cpus: cores.shared, workers: config.WORKERS },
      'workers share cores with another server on this host: frames will be late on both. Lower WORKERS, or give each server its own cpuset',
    );
  }
  const jobCpus = cores.free.length > 0 ? cores.free : allowedCpus;
  const pool = await WorkerPool.start({
    cpus: cores.cpus,
    realtime: config.REALTIME_WORKERS && cores.free.length > 0,
    media: mediaConfig(config, media),
    calibrationFace: anyDefaultFace(),
    metrics,
    log,
    wav2lip:
      config.WAV2LIP_MODEL === undefined
        ? undefined
        : {
            file: path.resolve(config.WAV2LIP_MODEL),
            providers: config.ORT_PROVIDERS,
            threads: config.WAV2LIP_THREADS,
          },
  });

  const descriptors = new DescriptorReserve(metrics, log);
  let sessions: SessionService | undefined;
  let videos: StaticVideoService | undefined;
  let boundPort = config.PORT;
  const front = await createFront({
    config: {
      host: config.HOST,
      port: config.PORT,
      publicUrl: config.PUBLIC_URL,
      dataDir: config.DATA_DIR,
      tls:
        config.TLS_CERT_FILE === undefined
          ? undefined
          : { certFile: config.TLS_CERT_FILE, keyFile: config.TLS_KEY_FILE! },
      apiKeyHeaders: config.API_KEY_HEADERS,
      tokenTtlSeconds: config.TOKEN_TTL_SECONDS,
      requestsPerSecond: config.RATE_LIMIT_RPS,
      sessionsPerKey: config.MAX_SESSIONS_PER_KEY,
      iceServers: config.ICE_SERVERS,
      publicHost,
      stunHost: isLoopback(publicHost) ? publicHost : media.bound,
      turnSecret: config.TURN_SECRET,
      allowedOrigins: config.ALLOWED_ORIGINS ?? [],
      maxConnections: config.WORKERS * config.MAX_SESSIONS_PER_WORKER * 2,
      maxTcpConnections: config.MAX_CONNECTIONS,
      clientLimits: {
        trustedProxies: config.TRUSTED_PROXIES,
        requestsAtOnce: config.MAX_REQUESTS_PER_ADDRESS,
        openRequestsPerSecond: config.OPEN_RPS_PER_ADDRESS,
        wrongKeysPerMinute: config.WRONG_KEYS_PER_MINUTE,
        connectionsPerSecond: config.CONNECTION_RPS_PER_ADDRESS,
      },
      secretsKey: config.SECRETS_KEY,
      jobThreads: config.JOB_THREADS,
      jobCpus,
      maxQueuedJobs: config.MAX_QUEUED_JOBS,
      defaultFaces: {
        manifestFile: path.join(ROOT, 'models/faces/faces.json'),
        builtDir: DEFAULT_FACES_DIR,
      },
      version: packageVersion(),
    },
    store,
    log,
    deps: {
      history,
      serverId,
      staticVideos: async (parts) =>
        (videos = await StaticVideoService.open({
          ...parts,
          recorder,
          metrics,
          threads: config.JOB_THREADS,
          cpus: jobCpus,
          maxQueued: config.MAX_QUEUED_JOBS,
          ttlSeconds: config.STATIC_TTL_SECONDS,
        })),
      admit: () => descriptors.admit(),
      canPlace: () => sessions?.canPlace ?? false,
      room: () => sessions?.room ?? 0,
      draining: () => sessions?.isDraining ?? false,
      models: pool.renderers,
      readiness: { workers: () => pool.size > 0 },
      metrics: (accept) => metrics.render(accept),
      onRequest: observeHttp(metrics),
      onRefused: observeRefusals(metrics, log),
      onStunRequest: observeStun(metrics),
      onTokenRefused: (code) => {
        metrics.counter('mouthpiece_tokens_refused_total', { code }).add();
        // Answered as 429 for the clients' sake, and our fault all the same.
        if (ERRORS[code].status >= 500) {
          metrics.counter('mouthpiece_errors_total', { code }).add();
        }
      },
      sessionStats: async (ownerId, sessionId) =>
        (await sessions?.stats(ownerId, sessionId)) ?? null,
    },
  });
  sessions = new SessionService({
    tokens: front.tokens,
    quota: front.quota,
    pool,
    metrics,
    log,
    serverId,
    destination: () => `${config.HOST}:${boundPort}`,
    faces: front.faceCatalog,
    journal: {
      started: ({ id, grant, kind, startMs }) => {
        void recorder.begin({
          id,
          kind,
          startMs,
          ownerId: grant.ownerId,
          tokenId: grant.tokenId,
          faceId: grant.faceId,
          aggregator: grant.sessionAggregator,
          keyName: grant.keyName,
        });
      },
      ended: (id) => {
        void recorder.end(id);
      },
    },
  });
  for (const route of ['/compose/webrtc/p2p', '/compose/webrtc/peer_to_peer']) {
    front.sockets.add(route, sessions.handlers());
  }
  front.sockets.add('/StartWebRTCSession', sessions.handlers(), '/compose/webrtc/p2p');

  const gauges = {
    ready: metrics.gauge('mouthpiece_ready'),
    draining: metrics.gauge('mouthpiece_draining'),
    room: metrics.gauge('mouthpiece_room_sessions'),
    sockets: metrics.gauge('mouthpiece_websocket_connections'),
    pending: metrics.gauge('mouthpiece_history_pending_records'),
    inFlight: metrics.gauge('mouthpiece_http_requests_in_flight'),
    connections: metrics.gauge('mouthpiece_http_connections'),
    bodies: metrics.gauge('mouthpiece_http_body_bytes'),
  };
  metrics.onScrape(() => {
    const isDraining = sessions?.isDraining ?? false;
    gauges.draining.set(isDraining ? 1 : 0);
    const isReady = store.ready && pool.size > 0 && front.takesUploads && !isDraining;
    gauges.ready.set(isReady ? 1 : 0);
    gauges.room.set(isReady ? (sessions?.room ?? 0) : 0);
    gauges.sockets.set(front.sockets.connections);
    gauges.pending.set(recorder.pendingCount);
    gauges.inFlight.set(front.requestsInFlight);
    gauges.connections.set(front.connections);
    gauges.bodies.set(front.bodyBytes);
  });

  const apiKeyFile =
    config.BOOTSTRAP_API_KEY === undefined ? path.join(config.DATA_DIR, API_KEY_NAME) : undefined;
  const isKeyNew = apiKeyFile !== undefined && !existsSync(apiKeyFile);
  const apiKey =
    config.BOOTSTRAP_API_KEY ??
    (await readOrCreate(config.DATA_DIR, API_KEY_NAME, () => newSecret('mp_')));
  await front.apiKeys.register(apiKey, 'bootstrap', 'bootstrap');
  const { port } = await front.listen();
  boundPort = port;
  const host = config.HOST === '0.0.0.0' || config.HOST === '::' ? '127.0.0.1' : config.HOST;
  const url = `${config.TLS_CERT_FILE === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const service = sessions;
  return {
    url,
    port,
    apiKey,
    apiKeyFile,
    isKeyNew,
    front,
    pool,
    sessions: service,
    metrics,
    async reloadCertificate() {
      if (config.TLS_CERT_FILE === undefined) {
        return undefined;
      }
      await front.reloadCertificate();
      return { certificate: config.TLS_CERT_FILE, key: config.TLS_KEY_FILE! };
    },
    async stop(drainMs, isHurried = () => false) {
      await service.drain(drainMs, isHurried);
      await videos?.close();
      await front.close();
      await pool.stop();
      await recorder.close();
      for (const close of closers) {
        await close();
      }
    },
  };
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host.startsWith('127.');
const isAny = (host: string): boolean => host === '0.0.0.0' || host === '::';

/** Where media is bound, and which addresses its ICE candidates name: those configured, else those of this machine that reach the socket. */
function mediaAddresses(config: Config): {
  readonly bound: string;
  readonly announced: readonly string[];
} {
  const host = config.HOST === 'localhost' ? '127.0.0.1' : config.HOST;
  const bound = config.MEDIA_HOST ?? (isLoopback(host) ? '0.0.0.0' : host);
  if (config.ANNOUNCED_IPS !== undefined) {
    return { bound, announced: config.ANNOUNCED_IPS };
  }
  if (!isAny(bound)) {
    return { bound, announced: [bound] };
  }
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => !internal && (family === 'IPv4' || bound === '::'))
    .map(({ address }) => address)
    .filter((address) => !address.startsWith('fe80:'));
  // Clients on this very machine come in over loopback, and must find it first.
  return { bound, announced: isLoopback(host) ? ['127.0.0.1', ...own] : own };
}

function mediaConfig(
  config: Config,
  { bound, announced }: ReturnType<typeof mediaAddresses>,
): MediaConfig {
  const maxVideoBitrateKbps = config.MAX_VIDEO_BITRATE_KBPS ?? config.VIDEO_BITRATE_KBPS;
  return {
    bindAddress: bound,
    announcedAddresses: announced,
    ports: config.UDP_PORTS,
    videoBitrateKbps: Math.min(config.VIDEO_BITRATE_KBPS, maxVideoBitrateKbps),
    maxVideoBitrateKbps,
    audioBitrateKbps: config.AUDIO_BITRATE_KBPS,
    maxSessionsPerWorker: config.MAX_SESSIONS_PER_WORKER,
    maxLoad: config.MAX_WORKER_LOAD,
  };
}

/** @throws Error with one line to act on, before any worker fails for it */
async function checkMediaAddress(address: string): Promise<void> {
  if (isIP(address) === 0) {
    throw new Error(`HOST=${address} is a name, and media needs an address: set MEDIA_HOST.`);
  }
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  await new Promise<void>((resolve, reject) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      socket.close();
      reject(
        new Error(
          `Media cannot be bound to ${address} (${code}): it is not an address of this machine. Set MEDIA_HOST or HOST; where clients see another address, name that in ANNOUNCED_IPS.`,
        ),
      );
    });
    socket.bind(0, address, () => {
      socket.close(() => {
        resolve();
      });
    });
  });
}

function readFace(file: string): SharedArrayBuffer {
  const bytes = readFileSync(file);
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}

/** @throws Error when the set-up has not made any face */
function anyDefaultFace(): SharedArrayBuffer {
  const face = existsSync(DEFAULT_FACES_DIR)
    ? readdirSync(DEFAULT_FACES_DIR)
        .filter((name) => name.endsWith('.face'))
        .sort()[0]
    : undefined;
  if (face === undefined) {
    throw new Error('There is no default face. Run: npm run setup');
  }
  return readFace(path.join(DEFAULT_FACES_DIR, face));
}

const packageVersion = (): string =>
  (JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string })
    .version;

/** The checkout's commit, without asking git. */
function commitHash(): string {
  try {
    const head = readFileSync(path.join(ROOT, '.git/HEAD'), 'utf8').trim();
    return (
      head.startsWith('ref: ')
        ? readFileSync(path.join(ROOT, '.git', head.slice(5)), 'utf8').trim()
        : head
    ).slice(0, 12);
  } catch {
    return 'unknown';
  }
}
