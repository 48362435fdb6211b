// How a server is reached: REST routes, the WebSockets of sessions, STUN, and the port of operators.
import { debugRoutes } from '../front/api/debug.ts';
import { observeCores } from '../front/core-figures.ts';
import { DescriptorReserve } from '../front/descriptor-reserve.ts';
import {
  observeHttp,
  observeRefusals,
  observeServer,
  observeStun,
  observeTokenRefusals,
} from '../front/front-metrics.ts';
import {
  type HttpServer,
  type SessionSockets,
  startAdminServer,
  startHttpServer,
} from '../front/http-server.ts';
import { BodyBudget } from '../front/http/body-budget.ts';
import type { Route } from '../front/http/route.ts';
import { openIceServers } from '../front/ice-servers.ts';
import { AgentRooms } from '../front/rooms/agent-rooms.ts';
import { OperatorRooms } from '../front/rooms/operator-rooms.ts';
import { createRoomMeter } from '../front/rooms/room-meter.ts';
import type { OperatorServer } from '../front/rooms/room-service.ts';
import { Rooms } from '../front/rooms/rooms.ts';
import { buildRoutes } from '../front/routes.ts';
import { type IceServer, withCredentials } from '../front/sessions/ice-credentials.ts';
import { PeerToPeerLink } from '../front/sessions/session-link.ts';
import { checkProviders } from '../front/talk/provider-check.ts';
import { isLoopback } from '../media-config.ts';
import type { ServerCore } from './core.ts';
import type { ServerSessions } from './sessions.ts';

/** The rooms that sessions may be in, and how they are counted. */
interface ServerRooms {
  readonly meter: ReturnType<typeof createRoomMeter>;
  /** Of this server. */
  readonly own: Rooms;
  /** Of the operator's LiveKit server; undefined: there is none. */
  readonly operator: OperatorRooms | undefined;
}

/** Opens the ports. Requests are answered from now on. */
export async function openListener(core: ServerCore, parts: ServerSessions): Promise<HttpServer> {
  const { config, log, closers, metrics, tracing, store, storage, pool } = core;
  const { services, sessions, recorder } = parts;
  const iceServers = await openStun(core);
  const rooms = createRooms(core, parts, iceServers);
  const bodyBudget = new BodyBudget();
  const routes = createRoutes(core, parts, { iceServers, rooms, bodyBudget });
  const descriptors = new DescriptorReserve(metrics, log);
  const shared = {
    config,
    apiKeys: services.apiKeys,
    bodyBudget,
    onRequest: observeHttp(metrics),
    onRefused: observeRefusals(metrics, log),
    tracing,
    log,
  };
  if (config.ADMIN_PORT !== undefined) {
    const threads = () => [
      ...[...pool.handles.flatMap((handle) => handle.threads), ...parts.conversations.threads].map(
        (worker) => ({ name: worker.threadName, worker }),
      ),
      ...services.jobThreads,
      ...parts.videos.jobThreads,
    ];
    const admin = await startAdminServer({
      ...shared,
      port: config.ADMIN_PORT,
      routes: [...routes.filter(isOnAdminPort), ...debugRoutes(threads)],
    });
    closers.add(() => admin.close());
    log.info({ url: admin.url }, 'metrics, cluster and debugging for operators');
  }
  const http = await startHttpServer({
    ...shared,
    routes:
      config.ADMIN_PORT === undefined ? routes : routes.filter((route) => !isForOperators(route)),
    sessionSockets: createSessionSockets(parts, rooms),
    admit: () => descriptors.admit(),
  });
  closers.add(() => http.close());
  observeCores(metrics, () => pool.handles);
  observeServer(metrics, { store, storage, pool, sessions, recorder, bodyBudget, http });
  return http;
}

const isForOperators = ({ path }: Route): boolean =>
  path === '/metrics' || path.startsWith('/cluster/');

const isOnAdminPort = (route: Route): boolean =>
  isForOperators(route) || /^\/(healthz|readyz)$/.test(route.path);

/** The ICE servers that clients are told, one of this server's own among them. */
async function openStun({
  config,
  log,
  closers,
  metrics,
  media,
}: ServerCore): Promise<readonly IceServer[]> {
  const publicHost = media.announcedAddresses[0] ?? config.HOST;
  const ice = await openIceServers({
    config,
    publicHost,
    stunHost: isLoopback(publicHost) ? publicHost : media.bindAddress,
    log,
    onStunRequest: observeStun(metrics),
  });
  closers.add(() => ice.close());
  return ice.iceServers;
}

function createRooms(
  { config, metrics }: ServerCore,
  { sessions, services, relay }: ServerSessions,
  iceServers: readonly IceServer[],
): ServerRooms {
  const meter = createRoomMeter(metrics);
  const server = operatorServer(config);
  return {
    meter,
    own: new Rooms({
      secret: services.secrets.derive('tokens of rooms'),
      elsewhere: relay,
      iceServers: () => iceServers.map((one) => withCredentials(one, config.TURN_SECRET, 'room')),
      meter,
      budget: sessions.messageBudget,
    }),
    operator: server && new OperatorRooms(server, config.LIVEKIT_VIDEO_CODEC, meter),
  };
}

/** The LiveKit server of the settings; undefined: there is none. */
function operatorServer(config: ServerCore['config']): OperatorServer | undefined {
  const { LIVEKIT_URL: url, LIVEKIT_API_KEY: key, LIVEKIT_API_SECRET: secret } = config;
  return url === undefined || key === undefined || secret === undefined
    ? undefined
    : { url, key, secret };
}

function createRoutes(
  { config, log, metrics, store, storage, pool, version }: ServerCore,
  parts: ServerSessions,
  {
    iceServers,
    rooms,
    bodyBudget,
  }: {
    readonly iceServers: readonly IceServer[];
    readonly rooms: ServerRooms;
    readonly bodyBudget: BodyBudget;
  },
): Route[] {
  const { services, videos, sessions, cluster, otherNodes, relay, forwarder } = parts;
  const { splits, conversations } = parts;
  return buildRoutes({
    config,
    store,
    services,
    videos,
    sessions,
    cluster,
    forwarder,
    canPlace: async () => sessions.canPlace || (await otherNodes.haveRoom()),
    splits,
    models: pool.renderers,
    iceServers,
    agents: new AgentRooms({
      tokens: services.tokens,
      sessions,
      hosts: config.LIVEKIT_HOSTS ?? [],
      videoCodec: config.LIVEKIT_VIDEO_CODEC,
      meter: rooms.meter,
    }),
    isRoomToken: async (token) => {
      const name = rooms.own.nameOf(token);
      return name !== undefined && (rooms.own.has(name) || (await relay.runsElsewhere(name)));
    },
    bodyBudget,
    prepareConversations: () => conversations.prepare(),
    checkProviders,
    storage,
    readiness: { workers: () => pool.size > 0 },
    renderMetrics: (accept) => metrics.render(accept),
    onTokenRefused: observeTokenRefusals(metrics),
    version,
    log,
  });
}

const createSessionSockets = (
  { relay, sessions, splits }: ServerSessions,
  { own, operator }: ServerRooms,
): SessionSockets => ({
  p2p: splits.withViewers(
    relay.accepting(
      sessions.handlers((_id, _request, destination) => new PeerToPeerLink(destination)),
    ),
  ),
  agents: relay.accepting(splits.agentHandlers()),
  livekit: relay.accepting(
    sessions.handlers((id, request, destination, log) =>
      operator === undefined
        ? own.create(id, request, destination, log)
        : operator.create(id, destination, log),
    ),
  ),
  rooms: relay.accepting(own.handlers()),
});
