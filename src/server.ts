// Composes the server: store, workers, services, sessions, routes, listener. `main.ts` starts it,
// and so do tests.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { CloseStack } from './base/close-stack.ts';
import { newSecret } from './base/ids.ts';
import { type Logger, setLogLevel } from './base/log.ts';
import type { Config } from './config.ts';
import type { ReloadableConfig } from './settings-file.ts';
import { Cluster } from './front/cluster/cluster.ts';
import { Relay } from './front/cluster/relay.ts';
import { RelayTickets } from './front/cluster/relay-tickets.ts';
import { RoomiestNodes } from './front/cluster/roomiest-nodes.ts';
import { DescriptorReserve } from './front/descriptor-reserve.ts';
import { debugRoutes } from './front/api/debug.ts';
import { DEFAULT_FACES, readAnyDefaultFace } from './front/faces/default-faces.ts';
import {
  observeHttp,
  observeRedis,
  observeRefusals,
  observeServer,
  observeStun,
  observeTokenRefusals,
} from './front/front-metrics.ts';
import { SessionRecorder } from './front/history/session-recorder.ts';
import { BodyBudget } from './front/http/body-budget.ts';
import { startAdminServer, startHttpServer, tlsFiles } from './front/http-server.ts';
import { openIceServers } from './front/ice-servers.ts';
import { nodeFacts, nodeFigures } from './front/node-facts.ts';
import { type CoreClaims, claimCores } from './front/placement/core-claims.ts';
import { WorkerPool } from './front/placement/worker-pool.ts';
import { connectStore } from './front/process/open-store.ts';
import { createRoomMeter } from './front/rooms/room-meter.ts';
import type { OperatorServer } from './front/rooms/room-service.ts';
import { AgentRooms } from './front/rooms/agent-rooms.ts';
import { OperatorRooms } from './front/rooms/operator-rooms.ts';
import { Rooms } from './front/rooms/rooms.ts';
import { buildRoutes } from './front/routes.ts';
import { openServices } from './front/services.ts';
import { withCredentials } from './front/sessions/ice-credentials.ts';
import { PeerToPeerLink } from './front/sessions/session-link.ts';
import { SplitSessions } from './front/legs/split-sessions.ts';
import { SessionService } from './front/sessions/session-service.ts';
import { prepareDataDir, readOrCreate, serverIdentity } from './front/store/data-dir.ts';
import { createConversationMeter } from './front/talk/conversation-meter.ts';
import { Conversations } from './front/talk/conversations.ts';
import { checkProviders } from './front/talk/provider-check.ts';
import { TalkLibraryInstaller } from './front/talk/library-installer.ts';
import { StaticVideoService } from './front/videos/static-video-service.ts';
import { isLoopback, mediaConfig, wav2lipOptions } from './media-config.ts';
import { Metrics } from './metrics/metrics.ts';
import { watchMainThread } from './metrics/threads.ts';
import { native } from './native/addon.ts';
import { ROOT, commitHash, packageVersion } from './version.ts';

/** A started server. */
export interface RunningServer {
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
  /** The file of the key; undefined when it came from the settings. */
  readonly apiKeyFile: string | undefined;
  /** Whether this start made the key. */
  readonly isKeyNew: boolean;
  readonly pool: WorkerPool;
  readonly sessions: SessionService;
  /**
   * Reads the certificate files again, for new connections. @returns which; undefined where the
   * server does not speak TLS itself.
   * @throws Error when they cannot be used: the old certificate then stays in use
   */
  reloadCertificate(): Promise<{ readonly certificate: string; readonly key: string } | undefined>;
  /** Takes over the settings that can change while the server runs. */
  reconfigure(config: ReloadableConfig): void;
  /**
   * Refuses new sessions, lets running ones finish for `drainMs` or until `isHurried`, then stops
   * everything.
   */
  stop(drainMs: number, isHurried?: () => boolean): Promise<void>;
}

/** Starts a server. @throws Error with one line to act on; nothing is left running then */
export async function startServer(config: Config, log: Logger): Promise<RunningServer> {
  const closers = new CloseStack();
  try {
    return await compose(config, log, closers);
  } catch (error) {
    await closers.close().catch((closeError: unknown) => {
      log.error({ err: closeError }, 'the server did not start, and did not stop cleanly');
    });
    throw error;
  }
}

async function compose(config: Config, log: Logger, closers: CloseStack): Promise<RunningServer> {
  const version = packageVersion();
  await prepareDataDir(config.DATA_DIR);
  const metrics = new Metrics();
  closers.add(
    watchMainThread(metrics, () => native.threadCpuMs(), { version, commit: commitHash() }),
  );

  // Stores
  const opened = await connectStore({ redisUrl: config.REDIS_URL, dataDir: config.DATA_DIR }, log);
  closers.add(() => opened.close());
  const { store } = opened;
  observeRedis(metrics, store.client, () => store.ready);
  const serverId = await serverIdentity(config.DATA_DIR);

  // Workers
  const media = await mediaConfig(config);
  const wav2lip = wav2lipOptions(config);
  const cores = await claimWorkerCores(config.WORKERS, log);
  closers.add(() => cores.release());
  const pool = await WorkerPool.start({
    cpus: cores.cpus,
    isRealtime: config.REALTIME_WORKERS && cores.free.length > 0,
    media,
    calibrationFace: readAnyDefaultFace(DEFAULT_FACES),
    wav2lip,
    metrics,
    log,
  });
  closers.add(() => pool.stop());

  // Services
  const jobCpus = cores.free.length > 0 ? cores.free : native.allowedCpus();
  const services = await openServices({
    config,
    store,
    serverId,
    jobCpus,
    defaultFaces: DEFAULT_FACES,
    log,
  });
  closers.add(() => services.close());
  const recorder = await SessionRecorder.open({
    store,
    history: services.history,
    serverId,
    dataDir: config.DATA_DIR,
    log,
  });
  closers.add(() => recorder.close());
  const videos = await StaticVideoService.open({
    store,
    blobs: services.blobs,
    faces: services.faceCatalog,
    recorder,
    metrics,
    log,
    serverId,
    threads: config.JOB_THREADS,
    cpus: jobCpus,
    motion: config.MOTION,
    maxQueued: config.MAX_QUEUED_JOBS,
    ttlSeconds: config.STATIC_TTL_SECONDS,
  });
  closers.add(() => videos.close());
  const conversations = new Conversations({
    store: services.conversationStore,
    maxConversations: config.MAX_CONVERSATIONS,
    isPreemptive: config.PREEMPTIVE_REPLIES,
    library: new TalkLibraryInstaller(ROOT, log),
    meter: createConversationMeter(metrics),
    log,
  });
  closers.add(() => conversations.close());
  const cluster = new Cluster(serverId, {
    store,
    tokens: services.tokens,
    quota: services.quota,
    metrics,
    log,
  });
  await cluster.clearOwn();
  const otherNodes = new RoomiestNodes(cluster.registry, serverId, config.REGION ?? '');
  const relay = new Relay({
    nodes: otherNodes,
    tickets: new RelayTickets(services.secrets.derive('relay tickets'), serverId),
    tokens: services.tokens,
    // A room of this server's own is joined at the server that serves it.
    canPassOn: (path) => config.LIVEKIT_URL !== undefined || !/livekit/i.test(path),
    metrics,
    log,
  });
  closers.add(() => {
    relay.close();
  });
  const sessions = new SessionService({
    tokens: services.tokens,
    quota: services.quota,
    faces: services.faceCatalog,
    journal: cluster.journal(recorder),
    pool,
    conversations,
    elsewhere: relay,
    metrics,
    log,
    serverId,
    host: config.HOST,
  });
  const splits = new SplitSessions(sessions);
  const apiKey = await registerFirstKey(config, (key) =>
    services.apiKeys.register(key, 'bootstrap', 'bootstrap', true),
  );

  // Routes
  const publicHost = media.announcedAddresses[0] ?? config.HOST;
  const ice = await openIceServers({
    config,
    publicHost,
    stunHost: isLoopback(publicHost) ? publicHost : media.bindAddress,
    log,
    onStunRequest: observeStun(metrics),
  });
  closers.add(() => ice.close());
  const roomMeter = createRoomMeter(metrics);
  const operator = operatorServer(config);
  const operatorRooms =
    operator && new OperatorRooms(operator, config.LIVEKIT_VIDEO_CODEC, roomMeter);
  const rooms = new Rooms({
    iceServers: () =>
      ice.iceServers.map((server) => withCredentials(server, config.TURN_SECRET, 'room')),
    meter: roomMeter,
    budget: sessions.messageBudget,
  });
  const bodyBudget = new BodyBudget();
  const routes = buildRoutes({
    config,
    store,
    services,
    videos,
    sessions,
    cluster,
    canPlace: async () => sessions.canPlace || (await otherNodes.haveRoom()),
    splits,
    models: pool.renderers,
    iceServers: ice.iceServers,
    agents: new AgentRooms({
      tokens: services.tokens,
      sessions,
      hosts: config.LIVEKIT_HOSTS ?? [],
      videoCodec: config.LIVEKIT_VIDEO_CODEC,
      meter: roomMeter,
    }),
    isRoomToken: (token) => rooms.find(token) !== undefined,
    bodyBudget,
    prepareConversations: () => conversations.prepare(),
    checkProviders,
    readiness: { workers: () => pool.size > 0 },
    renderMetrics: (accept) => metrics.render(accept),
    onTokenRefused: observeTokenRefusals(metrics),
    version,
    log,
  });

  // Listener
  const descriptors = new DescriptorReserve(metrics, log);
  const isForOperators = (path: string): boolean =>
    path === '/metrics' || path.startsWith('/cluster/');
  if (config.ADMIN_PORT !== undefined) {
    const admin = await startAdminServer({
      config,
      port: config.ADMIN_PORT,
      routes: [
        ...routes.filter(({ path }) => isForOperators(path) || /^\/(healthz|readyz)$/.test(path)),
        ...debugRoutes(),
      ],
      apiKeys: services.apiKeys,
      bodyBudget,
      onRequest: observeHttp(metrics),
      onRefused: observeRefusals(metrics, log),
      log,
    });
    closers.add(() => admin.close());
    log.info({ url: admin.url }, 'metrics, cluster and debugging for operators');
  }
  const http = await startHttpServer({
    config,
    routes:
      config.ADMIN_PORT === undefined ? routes : routes.filter(({ path }) => !isForOperators(path)),
    sessionSockets: {
      p2p: splits.withViewers(
        relay.accepting(
          sessions.handlers((_id, _request, destination) => new PeerToPeerLink(destination)),
        ),
      ),
      agents: splits.agentHandlers(),
      livekit: relay.accepting(
        sessions.handlers((id, request, destination, sessionLog) =>
          operatorRooms === undefined
            ? rooms.create(id, request, destination, sessionLog)
            : operatorRooms.create(id, destination, sessionLog),
        ),
      ),
      rooms: rooms.handlers(),
    },
    apiKeys: services.apiKeys,
    bodyBudget,
    admit: () => descriptors.admit(),
    onRequest: observeHttp(metrics),
    onRefused: observeRefusals(metrics, log),
    log,
  });
  closers.add(() => http.close());
  observeServer(metrics, { store, pool, sessions, recorder, bodyBudget, http });
  await cluster.join(
    nodeFacts({ id: serverId, config, media, pool, version, localUrl: http.url }),
    () => nodeFigures(pool, sessions),
  );
  closers.add(() => cluster.close());

  return {
    url: http.url,
    port: http.port,
    ...apiKey,
    pool,
    sessions,
    async reloadCertificate() {
      const files = tlsFiles(config);
      if (files === undefined) {
        return undefined;
      }
      await http.reloadCertificate();
      return { certificate: files.certFile, key: files.keyFile };
    },
    reconfigure(next) {
      setLogLevel(log, next.LOG_LEVEL);
      services.apiKeys.requestsPerSecond = next.RATE_LIMIT_RPS;
      services.quota.limit = next.MAX_SESSIONS_PER_KEY;
      http.setLimits({ ...next, TRUSTED_PROXIES: config.TRUSTED_PROXIES });
    },
    async stop(drainMs, isHurried = () => false) {
      await Promise.all([sessions.drain(drainMs, isHurried), relay.drain(drainMs, isHurried)]);
      await closers.close();
    },
  };
}

/** The LiveKit server of the settings; undefined: there is none. */
function operatorServer(config: Config): OperatorServer | undefined {
  const { LIVEKIT_URL: url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret } = config;
  return url === undefined || key === undefined || secret === undefined
    ? undefined
    : { url, key, secret };
}

/** Claims a core for each worker, and warns where another server on this host has it already. */
async function claimWorkerCores(workers: number, log: Logger): Promise<CoreClaims> {
  const cores = await claimCores(native.allowedCpus(), workers);
  if (cores.shared.length > 0) {
    log.warn(
      { cpus: cores.shared, workers },
      'workers share cores with another server on this host: frames will be late on both. ' +
        'Lower WORKERS, or give each server its own cpuset',
    );
  }
  return cores;
}

const API_KEY_NAME = 'api-key';

/** Registers the key of the settings, or the one in DATA_DIR, which the first start makes. */
async function registerFirstKey(
  config: Config,
  register: (key: string) => Promise<unknown>,
): Promise<Pick<RunningServer, 'apiKey' | 'apiKeyFile' | 'isKeyNew'>> {
  const apiKeyFile =
    config.BOOTSTRAP_API_KEY === undefined ? path.join(config.DATA_DIR, API_KEY_NAME) : undefined;
  const isKeyNew = apiKeyFile !== undefined && !existsSync(apiKeyFile);
  const apiKey =
    config.BOOTSTRAP_API_KEY ??
    (await readOrCreate(config.DATA_DIR, API_KEY_NAME, () => newSecret('mp_')));
  await register(apiKey);
  return { apiKey, apiKeyFile, isKeyNew };
}
