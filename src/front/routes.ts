// The table of REST routes, in the order of the API document.
import type { Config } from '../config.ts';
import type { ErrorCode } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { autoRoutes } from './api/auto.ts';
import { autoStartRoutes } from './api/auto-start.ts';
import { clusterRoutes } from './api/cluster.ts';
import { composeRoutes } from './api/compose.ts';
import { faceRoutes } from './api/faces.ts';
import { historyRoutes } from './api/history.ts';
import { integrationRoutes, type IntegrationDeps } from './api/integrations.ts';
import { documentRoutes } from './api/openapi.ts';
import { ownFaceRoutes } from './api/own-faces.ts';
import { rateLimiterRoutes } from './api/ratelimiter.ts';
import { type LocalSessions, sessionRoutes } from './api/sessions.ts';
import { type SplitSessionDeps, splitSessionRoutes } from './api/split-sessions.ts';
import { staticRoutes } from './api/static.ts';
import { systemRoutes, type SystemDeps } from './api/system.ts';
import { type WhepDeps, whepRoutes } from './api/whep.ts';
import type { Cluster } from './cluster/cluster.ts';
import type { Forwarder } from './cluster/forwarder.ts';
import { FACE_SERVICE_VERSION } from './faces/face-records.ts';
import type { BodyBudget } from './http/body-budget.ts';
import type { Route } from './http/route.ts';
import type { Services } from './services.ts';
import { type IceServer, withCredentials } from './sessions/ice-credentials.ts';
import type { SessionService } from './sessions/session-service.ts';
import type { RedisStore } from './store/redis.ts';
import type { checkProviders } from './talk/provider-check.ts';
import type { ProviderSettings } from './talk/provider-choice.ts';
import type { StaticVideos } from './videos/static-videos.ts';

/** What the routes are built from. */
export interface RouteOptions {
  readonly config: Pick<Config, 'TURN_SECRET' | 'API_KEY_HEADERS'> & ProviderSettings;
  readonly store: RedisStore;
  readonly services: Services;
  /** Undefined: the paths of static videos answer 501. */
  readonly videos: StaticVideos | undefined;
  readonly splits: SplitSessionDeps['splits'] & WhepDeps['splits'];
  readonly sessions: Pick<SessionService, 'room' | 'isDraining'> & LocalSessions;
  /** Whether this server or another one has room for a session. */
  readonly canPlace: () => Promise<boolean>;
  readonly cluster: Pick<Cluster, 'id' | 'registry'>;
  /** Passes requests on to other servers. */
  readonly forwarder: Forwarder;
  /** Names of the renderers that a token may ask for. */
  readonly models: readonly string[];
  readonly iceServers: readonly IceServer[];
  /** Whether a LiveKit token opens a room that this server serves. */
  readonly isRoomToken: (token: string) => Promise<boolean>;
  readonly agents: IntegrationDeps['agents'];
  readonly bodyBudget: BodyBudget;
  /** Makes sure that conversations can be held. @throws ServiceError */
  readonly prepareConversations: () => Promise<void>;
  /** Asks the providers of a conversation. @throws ValidationError */
  readonly checkProviders: typeof checkProviders;
  readonly storage: { readonly isUp: boolean };
  /** Readiness checks of other parts of the server, by name. */
  readonly readiness: SystemDeps['readiness'];
  readonly renderMetrics: SystemDeps['metrics'];
  readonly onTokenRefused: (code: ErrorCode) => void;
  /** Version of the program, for the API document. */
  readonly version: string;
  readonly log: Logger;
}

/** Paths of earlier versions that are gone, and what to use instead. */
export const REMOVED_PATHS = [
  {
    path: '/textToVideoStream',
    reason:
      'POST /textToVideoStream was removed. Generate the speech audio separately and send ' +
      'it to POST /static/audio.',
  },
];

/** All REST routes and those of the API document. */
export function buildRoutes(options: RouteOptions): Route[] {
  const { config, store, services, sessions, bodyBudget } = options;
  const { tokens, quota, faces, bodyPool } = services;
  const requireFace = (ownerId: string, faceId: string): Promise<unknown> =>
    faces.require(ownerId, faceId);
  const watching = {
    splits: options.splits,
    forwarder: options.forwarder,
    iceServers: options.iceServers,
    turnSecret: config.TURN_SECRET,
  };
  const apiKeyHeaders = config.API_KEY_HEADERS.map((name) => name.toLowerCase());
  const api: Route[] = [
    ...composeRoutes({
      tokens,
      quota,
      requireFace,
      models: options.models,
      canPlace: options.canPlace,
      draining: () => sessions.isDraining,
      iceServers: options.iceServers,
      turnSecret: config.TURN_SECRET,
      onRefused: options.onTokenRefused,
      log: options.log,
    }),
    ...splitSessionRoutes({ ...watching, requireFace, apiKeyHeaders }),
    ...whepRoutes(watching),
    ...staticRoutes({ videos: options.videos, requireFace, bodyPool }),
    ...faceRoutes(faces),
    ...ownFaceRoutes(faces),
    ...historyRoutes(services.history),
    ...rateLimiterRoutes(quota),
    ...sessionRoutes({
      sessions,
      registry: options.cluster.registry,
      nodeId: options.cluster.id,
      apiKeyHeaders,
      log: options.log,
    }),
    ...clusterRoutes(options.cluster.registry),
    ...autoRoutes({
      agents: services.agents,
      tokens: services.autoTokens,
      serviceVersion: FACE_SERVICE_VERSION,
      apiKeyHeaders,
    }),
    ...autoStartRoutes({
      agents: services.agents,
      autoTokens: services.autoTokens,
      sessionTokens: tokens,
      conversations: services.conversationStore,
      prepare: options.prepareConversations,
      checkProviders: options.checkProviders,
      requireFace,
      canPlace: options.canPlace,
      iceServers: (keyId) =>
        options.iceServers.map((server) => withCredentials(server, config.TURN_SECRET, keyId)),
      settings: config,
      apiKeyHeaders,
    }),
    ...integrationRoutes(options),
    ...systemRoutes({
      readiness: {
        redis: () => store.ping(),
        accepting: () => !sessions.isDraining,
        uploads: () => !bodyBudget.isFull,
        ...options.readiness,
      },
      storage: () => options.storage.isUp,
      room: () => sessions.room,
      metrics: options.renderMetrics,
    }),
  ];
  const document = documentRoutes(api, {
    version: options.version,
    apiKeyHeader: config.API_KEY_HEADERS[0]?.toLowerCase() ?? 'x-service-api-key',
  });
  return [...api, ...document];
}
