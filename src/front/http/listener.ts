// The uWebSockets.js application: binds the port, hands requests to the exchange and upgrades to the socket routes, and closes in order.
import {
  App,
  SSLApp,
  us_listen_socket_close,
  us_socket_local_port,
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
} from 'uWebSockets.js';
import { guarded } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { sleep } from '../../base/time.ts';
import { peerOf } from './addresses.ts';
import type { ClientLimits } from './client-limits.ts';
import { preflight, serveRequest, type HttpContext } from './serve-request.ts';
import { errorReply, writeReply, type Reply } from './reply.ts';
import type { SocketRoutes } from './socket.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  readonly sockets: SocketRoutes;
  readonly exchange: HttpContext;
  /** TCP connections in all, WebSockets among them. */
  readonly maxConnections: number;
  /** Asked once for each new connection, before anything is read from it; false closes it. */
  readonly admit?: () => boolean;
}

export interface Listener {
  readonly port: number;
  /** Requests being answered. */
  readonly inFlight: number;
  /**
   * Reads the certificate files again: new connections get the new certificate, those that are open go on.
   * @throws Error when the files cannot be used; the old certificate then stays in use
   */
  reload(): Promise<void>;
  /** Open TCP connections, WebSockets among them. */
  readonly connections: number;
  /** Takes no new connections, waits for requests in progress up to `graceMs`, then drops what is left. */
  close(graceMs?: number): Promise<void>;
}

export async function listen(options: ListenOptions): Promise<Listener> {
  const { tls, sockets, exchange, maxConnections } = options;
  const inFlight = { count: 0 };
  const serve = guarded(
    'an HTTP request',
    async (res: HttpResponse, req: HttpRequest): Promise<void> => {
      inFlight.count++;
      try {
        await serveRequest(exchange, res, req);
      } finally {
        inFlight.count--;
      }
    },
  );
  // Those that became WebSockets leave this count without being closed.
  let http = 0;
  const upgraded = (): void => {
    http--;
  };
  const create = (): TemplatedApp => {
    const app = createApp(tls);
    app.filter(
      guarded('the admission of a connection', (res: HttpResponse, change: unknown) => {
        http += Number(change);
        if (Number(change) < 0) {
          return;
        }
        const total = http + sockets.connections;
        if (options.admit?.() === false || !hasRoom(maxConnections, exchange.limits, total, res)) {
          res.close();
        }
      }),
    );
    app.ws(
      '/*',
      sockets.behavior((...refused) => refuseUpgrade(exchange, ...refused), upgraded),
    );
    app.any('/*', (res, req) => {
      if (req.getMethod() === 'options') {
        answerPreflight(exchange, res, req);
      } else if (sockets.has(req.getUrl())) {
        refuseUpgrade(exchange, res, req, new ServiceError('UPGRADE_REQUIRED'));
      } else {
        serve(res, req);
      }
    });
    return app;
  };
  // The last one listens. An application keeps its certificate: each reload makes one, the earlier ones hold their open connections.
  const apps = [create()];
  let socket: us_listen_socket | undefined = await bind(apps[0]!, options.host, options.port);
  const port = us_socket_local_port(socket);
  const stopListening = (): void => {
    if (socket !== undefined) {
      us_listen_socket_close(socket);
    }
    socket = undefined;
  };
  return {
    port,
    async reload() {
      if (!tls) {
        return;
      }
      const next = create();
      stopListening();
      try {
        socket = await bind(next, options.host, port);
        apps.push(next);
      } catch (error) {
        socket = await bind(apps.at(-1)!, options.host, port);
        throw error;
      }
    },
    get inFlight() {
      return inFlight.count;
    },
    get connections() {
      return http + sockets.connections;
    },
    async close(graceMs = 2000) {
      stopListening();
      sockets.closeAll(1001, 'SERVER_DRAINING');
      for (let waitedMs = 0; inFlight.count > 0 && waitedMs < graceMs; waitedMs += 10) {
        await sleep(10);
      }
      for (const app of apps) {
        app.close();
      }
    },
  };
}

function hasRoom(
  most: number,
  limits: ClientLimits,
  connections: number,
  res: HttpResponse,
): boolean {
  if (connections <= most) {
    return limits.connect(peerOf(res));
  }
  limits.refuse('all_connections');
  return false;
}

function createApp(tls: ListenOptions['tls']): TemplatedApp {
  if (!tls) {
    return App();
  }
  try {
    return SSLApp({ cert_file_name: tls.certFile, key_file_name: tls.keyFile });
  } catch {
    throw new Error(
      `TLS cannot be set up with TLS_CERT_FILE=${tls.certFile} and TLS_KEY_FILE=${tls.keyFile}: both must be readable PEM files that belong together.`,
    );
  }
}

async function bind(app: TemplatedApp, host: string, port: number): Promise<us_listen_socket> {
  if (port !== 0) {
    return await bindTo(app, host, port);
  }
  // A port that the system chose is bound again by its number: only then does uSockets set SO_REUSEADDR, without which `reload` would find
  // the port taken by the connections that are open.
  for (let attempt = 1; ; attempt++) {
    const socket = await bindTo(app, host, 0);
    const chosen = us_socket_local_port(socket);
    us_listen_socket_close(socket);
    try {
      return await bindTo(app, host, chosen);
    } catch (error) {
      if (attempt === FREE_PORT_ATTEMPTS) {
        throw error;
      } // somebody took it in between, each time
    }
  }
}

function bindTo(app: TemplatedApp, host: string, port: number): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    // Exclusive, since uWebSockets.js would otherwise share the port in silence with a server that is already there. The declared
    // type lacks the form with both host and options; the binding takes it.
    const listenAt = app.listen.bind(app) as unknown as (
      host: string,
      port: number,
      options: number,
      listening: (socket: us_listen_socket | false) => void,
    ) => void;
    listenAt(host, port, EXCLUSIVE_PORT, (socket) => {
      if (socket) {
        resolve(socket);
      } else {
        reject(
          new Error(
            `Cannot listen on ${host}:${port}: the port is taken, or the address is not one of this machine. Set HOST and PORT.`,
          ),
        );
      }
    });
  });
}

const FREE_PORT_ATTEMPTS = 5;
const EXCLUSIVE_PORT = 1; // LIBUS_LISTEN_EXCLUSIVE_PORT; the enum that declares it does not exist at run time

/** Answers before anything asynchronous happens, so the response object cannot be gone. */
function answerNow(
  exchange: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
  wanted: Reply,
): void {
  const reply = withinLimits(exchange.limits, res, req) ?? wanted;
  const state = { aborted: false, signal: new AbortController().signal };
  const headers = { 'access-control-allow-origin': '*', 'x-content-type-options': 'nosniff' };
  const status = reply.status;
  const method = req.getMethod().toUpperCase();
  res.onAborted(() => {});
  void writeReply(res, reply, {
    state,
    head: false,
    headers,
    header: () => '',
    closeConnection: false,
  });
  exchange.onRequest('none', method, status, 0);
}

/** What is answered instead to a client over its limit. */
function withinLimits(
  limits: ClientLimits,
  res: HttpResponse,
  req: HttpRequest,
): Reply | undefined {
  try {
    limits.open(limits.clientOf(peerOf(res), req.getHeader('x-forwarded-for')));
    return undefined;
  } catch (error) {
    return errorReply(error as ServiceError);
  }
}

function refuseUpgrade(
  exchange: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
  error: ServiceError,
): void {
  const reply = errorReply(error);
  answerNow(
    exchange,
    res,
    req,
    error.code === 'UPGRADE_REQUIRED'
      ? { ...reply, headers: { ...reply.headers, upgrade: 'websocket' } }
      : reply,
  );
}

function answerPreflight(exchange: HttpContext, res: HttpResponse, req: HttpRequest): void {
  const found = exchange.router.find('OPTIONS', req.getUrl());
  if (found.kind === 'method') {
    answerNow(exchange, res, req, preflight(exchange, found.allow));
  }
  // A page may ask for what was removed, and then reads why.
  else if (found.kind === 'removed') {
    answerNow(exchange, res, req, preflight(exchange, ['GET', 'HEAD', 'POST', 'OPTIONS']));
  } else {
    answerNow(exchange, res, req, errorReply(new ServiceError('NOT_FOUND')));
  }
}
