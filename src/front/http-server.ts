// The HTTP server: REST routes, the demo page and the WebSockets of sessions on one port.
import path from 'node:path';
import { ServiceError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Config } from '../config.ts';
import { ROOT } from '../version.ts';
import type { ApiKeys } from './accounts/api-keys.ts';
import { clientRoutes } from './api/client-files.ts';
import { docsFileRoutes } from './api/docs.ts';
import { pageRoutes } from './api/page.ts';
import type { BodyBudget } from './http/body-budget.ts';
import { BODY_PACE } from './http/body-reader.ts';
import { AuditLog } from './http/audit-log.ts';
import { ClientLimits, type ClientLimitSettings, type Refusal } from './http/client-limits.ts';
import { listen } from './http/listener.ts';
import type { Caller, Route } from './http/route.ts';
import { Router } from './http/router.ts';
import type { HttpContext } from './http/http-context.ts';
import { type SocketHandlers, SocketRoutes } from './http/socket.ts';
import { REMOVED_PATHS } from './routes.ts';

/** What the HTTP server serves, and whom it asks. */
export interface HttpServerOptions {
  readonly config: Config;
  readonly routes: readonly Route[];
  /** Of the sessions' WebSockets; undefined: there are none. */
  readonly sessionSockets: SessionSockets | undefined;
  readonly apiKeys: ApiKeys;
  readonly bodyBudget: BodyBudget;
  /** Asked for each new TCP connection; false closes it. */
  readonly admit: () => boolean;
  /** Called for each answered request. */
  readonly onRequest: HttpContext['onRequest'];
  readonly tracing?: HttpContext['tracing'];
  /** Called when something is refused to protect the server. */
  readonly onRefused: (reason: Refusal) => void;
  readonly log: Logger;
}

/** The handlers of the sessions' WebSockets. */
export interface SessionSockets {
  /** Of sessions with a peer connection of their own. */
  readonly p2p: SocketHandlers;
  /** Of sessions in a LiveKit room. */
  readonly livekit: SocketHandlers;
  /** Of the servers of agents, in sessions of POST /sessions. */
  readonly agents: SocketHandlers;
  /** The signalling of the rooms that this server serves itself. */
  readonly rooms: SocketHandlers;
}

/** The settings of the limits by client address. */
export type LimitConfig = Pick<
  Config,
  | 'TRUSTED_PROXIES'
  | 'MAX_REQUESTS_PER_ADDRESS'
  | 'OPEN_RPS_PER_ADDRESS'
  | 'WRONG_KEYS_PER_MINUTE'
  | 'CONNECTION_RPS_PER_ADDRESS'
>;

/** A listening HTTP server. */
export interface HttpServer {
  readonly port: number;
  /** Where clients on this machine reach the server: scheme, host and port. */
  readonly url: string;
  /** HTTP requests being answered. */
  readonly requestsInFlight: number;
  /** Open TCP connections, WebSockets among them. */
  readonly connections: number;
  /** Open WebSockets. */
  readonly webSockets: number;
  /**
   * Reads the certificate files again, for new connections.
   * @throws Error when they cannot be used
   */
  reloadCertificate(): Promise<void>;
  /** Changes the limits by client address. */
  setLimits(config: LimitConfig): void;
  close(): Promise<void>;
}

/** WebSockets that any server takes: those of sessions that other servers run count, too. */
const LEAST_SOCKETS = 1024;
const PAGE_DIRECTORY = path.join(ROOT, 'src/page');
const CLIENT_DIRECTORY = path.join(ROOT, 'clients/js/src');
const SESSION_PATH = '/compose/webrtc/p2p';
const LIVEKIT_PATH = '/compose/webrtc/livekit';
const AGENT_PATH = '/sessions/agent';
/** Where LiveKit clients look for the signalling of a server. */
const ROOM_SIGNAL_PATH = '/rtc/v1';

/**
 * Binds the port and serves.
 * @throws Error that says what to set, when the port or the certificate cannot be used
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { config, routes, log } = options;
  const tls = tlsFiles(config);
  const limits = createLimits(options);
  const sockets = new SocketRoutes({
    allowedOrigins: config.ALLOWED_ORIGINS ?? [],
    // Twice the sessions: a client that reconnects holds its old socket and its new one.
    // In a room of ours a session has two: its own, and that of the viewer's signalling.
    maxConnections: Math.max(LEAST_SOCKETS, config.WORKERS * config.MAX_SESSIONS_PER_WORKER * 4),
    limits,
    publicUrl: config.PUBLIC_URL,
    isSecure: tls !== undefined,
    log,
  });
  if (options.sessionSockets !== undefined) {
    const { p2p, livekit, rooms, agents } = options.sessionSockets;
    sockets.add(SESSION_PATH, p2p);
    sockets.add('/compose/webrtc/peer_to_peer', p2p);
    sockets.add('/StartWebRTCSession', p2p, SESSION_PATH);
    sockets.add(LIVEKIT_PATH, livekit);
    sockets.add('/StartWebRTCSessionLivekit', livekit, LIVEKIT_PATH);
    sockets.add(ROOM_SIGNAL_PATH, rooms);
    sockets.add(AGENT_PATH, agents);
  }
  const listener = await listen({
    host: config.HOST,
    port: config.PORT,
    settings: 'HOST and PORT',
    ...(tls === undefined ? {} : { tls }),
    admit: options.admit,
    maxConnections: config.MAX_CONNECTIONS,
    sockets,
    context: createContext(
      options,
      new Router(
        [
          ...routes,
          ...docsFileRoutes(),
          ...(await pageRoutes(PAGE_DIRECTORY, config.FRAME_ORIGINS)),
          ...(await clientRoutes(CLIENT_DIRECTORY)),
        ],
        REMOVED_PATHS,
      ),
      limits,
    ),
  });
  return {
    port: listener.port,
    url: localUrl(config.HOST, listener.port, tls !== undefined),
    get requestsInFlight() {
      return listener.inFlight;
    },
    get connections() {
      return listener.connections;
    },
    get webSockets() {
      return sockets.connections;
    },
    reloadCertificate: () => listener.reload(),
    setLimits: (next) => {
      limits.configure(limitSettings(next));
    },
    close: () => listener.close(),
  };
}

/** What the admin server serves, and whom it asks. */
export type AdminServerOptions = Pick<
  HttpServerOptions,
  'config' | 'routes' | 'apiKeys' | 'bodyBudget' | 'onRequest' | 'onRefused' | 'tracing' | 'log'
> & { readonly port: number };

/**
 * Serves routes for operators on a port of their own, without TLS and without WebSockets.
 * @throws Error that says what to set, when the port cannot be used
 */
export async function startAdminServer(
  options: AdminServerOptions,
): Promise<Pick<HttpServer, 'port' | 'url' | 'close'>> {
  const { config, routes, log } = options;
  const limits = createLimits(options);
  const sockets = new SocketRoutes({ allowedOrigins: [], maxConnections: 0, limits, log });
  const listener = await listen({
    host: config.ADMIN_HOST,
    port: options.port,
    settings: 'ADMIN_HOST and ADMIN_PORT',
    maxConnections: config.MAX_CONNECTIONS,
    sockets,
    context: { ...createContext(options, new Router(routes, []), limits), secure: false },
  });
  return {
    port: listener.port,
    url: localUrl(config.ADMIN_HOST, listener.port, false),
    close: () => listener.close(),
  };
}

const createLimits = ({
  config,
  onRefused,
}: Pick<HttpServerOptions, 'config' | 'onRefused'>): ClientLimits =>
  new ClientLimits(limitSettings(config), onRefused);

const limitSettings = (config: LimitConfig): ClientLimitSettings => ({
  trustedProxies: config.TRUSTED_PROXIES,
  requestsAtOnce: config.MAX_REQUESTS_PER_ADDRESS,
  openRequestsPerSecond: config.OPEN_RPS_PER_ADDRESS,
  wrongKeysPerMinute: config.WRONG_KEYS_PER_MINUTE,
  connectionsPerSecond: config.CONNECTION_RPS_PER_ADDRESS,
});

function createContext(
  options: Pick<
    HttpServerOptions,
    'config' | 'apiKeys' | 'bodyBudget' | 'onRequest' | 'tracing' | 'log'
  >,
  router: Router,
  limits: ClientLimits,
): HttpContext {
  const { config, apiKeys, bodyBudget, onRequest, tracing, log } = options;
  const apiKeyHeaders = config.API_KEY_HEADERS.map((name) => name.toLowerCase());
  return {
    router,
    log,
    apiKeyHeaders,
    secure: tlsFiles(config) !== undefined,
    publicUrl: config.PUBLIC_URL,
    onRequest,
    tracing,
    authenticate: (key) => authenticate(apiKeys, apiKeyHeaders, key),
    limits,
    audit: new AuditLog(log),
    bodyBudget,
    bodyPace: BODY_PACE,
  };
}

/** The certificate and key files; undefined when the server does not speak TLS itself. */
export const tlsFiles = (
  config: Pick<Config, 'TLS_CERT_FILE' | 'TLS_KEY_FILE'>,
): { readonly certFile: string; readonly keyFile: string } | undefined =>
  config.TLS_CERT_FILE === undefined
    ? undefined
    : { certFile: config.TLS_CERT_FILE, keyFile: config.TLS_KEY_FILE! };

function localUrl(bindHost: string, port: number, isSecure: boolean): string {
  const host = bindHost === '0.0.0.0' || bindHost === '::' ? '127.0.0.1' : bindHost;
  return `${isSecure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Who holds the key. @throws ServiceError as ApiKeys does; INVALID_API_KEY names the headers */
async function authenticate(
  apiKeys: ApiKeys,
  headers: readonly string[],
  key: string,
): Promise<Caller> {
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
