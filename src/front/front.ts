// Assembles the front: stores, REST routes, WebSocket routes and the listener. The one place where its parts meet.
import { ServiceError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { composeRoutes, type IceServer } from './api/compose.ts';
import { systemRoutes } from './api/system.ts';
import { listen, type Listener } from './http/listener.ts';
import type { Route } from './http/route.ts';
import { Router } from './http/router.ts';
import { SocketRoutes } from './http/socket.ts';
import { SessionQuota } from './sessions/quota.ts';
import { SessionTokens } from './sessions/token.ts';
import { ApiKeys } from './store/api-keys.ts';
import type { RedisStore } from './store/redis.ts';

export interface FrontConfig {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly dataDir: string;
  readonly apiKeyHeaders: readonly string[];
  readonly tokenTtlSeconds: number;
  readonly requestsPerSecond: number;
  readonly sessionsPerKey: number;
  /** Never empty. */
  readonly iceServers: readonly IceServer[];
  readonly turnSecret: string | undefined;
  /** Of WebSockets; empty: any. */
  readonly allowedOrigins: readonly string[];
  readonly maxConnections: number;
}

/** What the rest of the server does for the front. */
export interface FrontDeps {
  readonly canPlace: () => boolean;
  readonly draining: () => boolean;
  readonly models: readonly string[];
  /** Beside those of the front itself (redis, draining). */
  readonly readiness: Readonly<Record<string, () => boolean | Promise<boolean>>>;
  readonly metrics: () => Promise<string>;
  readonly onRequest: (route: string, method: string, status: number, durationMs: number) => void;
}

export interface Front {
  readonly apiKeys: ApiKeys;
  readonly tokens: SessionTokens;
  readonly quota: SessionQuota;
  /** Add WebSocket routes here, before or after `listen`. */
  readonly sockets: SocketRoutes;
  listen(): Promise<{ port: number }>;
  close(): Promise<void>;
}

export interface FrontParts { readonly config: FrontConfig; readonly store: RedisStore; readonly log: Logger; readonly deps: FrontDeps }

/** Builds everything; nothing is served until `listen`. */
export async function createFront({ config, store, log, deps }: FrontParts): Promise<Front> {
  const apiKeys = new ApiKeys(store, config.requestsPerSecond);
  const tokens = new SessionTokens(store, config.tokenTtlSeconds);
  const quota = new SessionQuota(store, config.sessionsPerKey);
  const sockets = new SocketRoutes({ allowedOrigins: config.allowedOrigins, maxConnections: config.maxConnections, log });
  const apiKeyHeaders = config.apiKeyHeaders.map((name) => name.toLowerCase());

  const routes: Route[] = [
    ...composeRoutes({
      tokens, quota, models: deps.models, canPlace: deps.canPlace, draining: deps.draining, iceServers: config.iceServers, turnSecret: config.turnSecret,
      faceExists: () => Promise.resolve(true),
    }),
    ...systemRoutes({ readiness: { redis: () => store.ping(), accepting: () => !deps.draining(), ...deps.readiness }, metrics: deps.metrics }),
  ];
  const exchange = {
    router: new Router(routes), log, apiKeyHeaders, secure: config.tls !== undefined, onRequest: deps.onRequest,
    authenticate: (key: string) => authenticate(apiKeys, apiKeyHeaders, key),
  };

  let listener: Listener | undefined;
  return {
    apiKeys, tokens, quota, sockets,
    async listen() {
      listener = await listen({ host: config.host, port: config.port, ...(config.tls ? { tls: config.tls } : {}), sockets, exchange });
      return { port: listener.port };
    },
    async close() {
      await listener?.close();
    },
  };
}

async function authenticate(apiKeys: ApiKeys, headers: readonly string[], key: string) {
  try {
    return await apiKeys.authenticate(key);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'INVALID_API_KEY') throw error;
    throw new ServiceError('INVALID_API_KEY', `The API key is missing or not valid. Send it in the ${headers.join(' or ')} header.`);
  }
}
