// The HTTP listener on uWebSockets.js: binds the port, dispatches requests and WebSocket upgrades,
// and shuts down in order.
import './header-size.ts';
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
import type { HttpContext } from './http-context.ts';
import { answerPreflight, refuseUpgrade } from './immediate-replies.ts';
import { serveRequest } from './serve-request.ts';
import type { SocketRoutes } from './socket.ts';

/** Options of `listen`. */
export interface ListenOptions {
  readonly host: string;
  /** 0: the system picks a free port. */
  readonly port: number;
  /** The settings of both, for the error when the address cannot be bound. */
  readonly settings: 'HOST and PORT' | 'ADMIN_HOST and ADMIN_PORT';
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  readonly sockets: SocketRoutes;
  readonly context: HttpContext;
  /** Limit of open TCP connections, WebSockets included. */
  readonly maxConnections: number;
  /** Called for each new connection before anything is read from it. Returning false closes it. */
  readonly admit?: () => boolean;
}

/** A bound listener. */
export interface Listener {
  readonly port: number;
  /** Requests being answered. */
  readonly inFlight: number;
  /**
   * Reads the certificate files again. New connections get the new certificate; open ones continue.
   * @throws Error when the files cannot be used; the old certificate then stays in use
   */
  reload(): Promise<void>;
  /** Open TCP connections, WebSockets included. */
  readonly connections: number;
  /**
   * Stops accepting, waits up to `graceMs` for requests in progress, then closes all connections.
   */
  close(graceMs?: number): Promise<void>;
}

/** @throws Error when the address cannot be bound or the TLS files cannot be used */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { tls, sockets, context, maxConnections } = options;
  const inFlight = { count: 0 };
  const serve = guarded(
    'an HTTP request',
    async (res: HttpResponse, req: HttpRequest): Promise<void> => {
      inFlight.count++;
      try {
        await serveRequest(context, res, req);
      } finally {
        inFlight.count--;
      }
    },
  );
  // Open connections that are not WebSockets. An upgraded connection leaves this count without
  // closing.
  let httpConnections = 0;
  const upgraded = (): void => {
    httpConnections--;
  };
  const create = (): TemplatedApp => {
    const app = createApp(tls);
    app.filter(
      guarded('the admission of a connection', (res: HttpResponse, change: unknown) => {
        httpConnections += Number(change);
        if (Number(change) < 0) {
          return;
        }
        const total = httpConnections + sockets.connections;
        if (options.admit?.() === false || !hasRoom(maxConnections, context.limits, total, res)) {
          res.close();
        }
      }),
    );
    app.ws(
      '/*',
      sockets.behavior((...refused) => refuseUpgrade(context, ...refused), upgraded),
    );
    app.any('/*', (res, req) => {
      if (req.getMethod() === 'options') {
        answerPreflight(context, res, req);
      } else if (sockets.has(req.getUrl())) {
        refuseUpgrade(context, res, req, new ServiceError('UPGRADE_REQUIRED'));
      } else {
        serve(res, req);
      }
    });
    return app;
  };
  // An application keeps the certificate that it was made with. Each reload adds an application;
  // the last one listens, the earlier ones keep their open connections.
  const apps = [create()];
  let socket: us_listen_socket | undefined = await bind(apps[0]!, options);
  const port = us_socket_local_port(socket);
  sockets.localPort = port;
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
        socket = await bind(next, { ...options, port });
        apps.push(next);
      } catch (error) {
        socket = await bind(apps.at(-1)!, { ...options, port });
        throw error;
      }
    },
    get inFlight() {
      return inFlight.count;
    },
    get connections() {
      return httpConnections + sockets.connections;
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

/** Whether a new connection is within the limit of all connections and of its address. */
function hasRoom(
  most: number,
  limits: ClientLimits,
  connections: number,
  res: HttpResponse,
): boolean {
  if (connections <= most) {
    return limits.admitConnection(peerOf(res));
  }
  limits.countRefusal('all_connections');
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
      `TLS cannot be set up with TLS_CERT_FILE=${tls.certFile} and ` +
        `TLS_KEY_FILE=${tls.keyFile}. Set both to readable PEM files: the certificate and ` +
        'its private key.',
    );
  }
}

type Address = Pick<ListenOptions, 'host' | 'port' | 'settings'>;

async function bind(app: TemplatedApp, address: Address): Promise<us_listen_socket> {
  if (address.port !== 0) {
    return await bindTo(app, address);
  }
  // Bind a port chosen by the system again, by its number: only then does uSockets set
  // SO_REUSEADDR. Without it `reload` fails, because open connections still hold the port.
  for (let attempt = 1; ; attempt++) {
    const socket = await bindTo(app, address);
    const port = us_socket_local_port(socket);
    us_listen_socket_close(socket);
    try {
      return await bindTo(app, { ...address, port });
    } catch (error) {
      if (attempt === FREE_PORT_ATTEMPTS) {
        throw error; // another process took the port each time
      }
    }
  }
}

function bindTo(app: TemplatedApp, { host, port, settings }: Address): Promise<us_listen_socket> {
  return new Promise((resolve, reject) => {
    // Exclusive: otherwise uWebSockets.js silently shares the port with a server that already
    // listens. The type declaration lacks the overload with host and options; the binding has it.
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
            `Cannot listen on ${host}:${port}: the port is in use, or this machine does ` +
              `not have the address. Set ${settings}.`,
          ),
        );
      }
    });
  });
}

/** Attempts to bind the port that the system chose. */
const FREE_PORT_ATTEMPTS = 5;
/**
 * LIBUS_LISTEN_EXCLUSIVE_PORT of uSockets. The enum that declares it does not exist at run time.
 */
const EXCLUSIVE_PORT = 1;
