// WebSocket routes: handshake, origin check, limits, keep-alive pings, and a socket that is safe to
// use after its close.
import './header-size.ts';
import {
  DISABLED,
  type HttpRequest,
  type HttpResponse,
  type us_socket_context_t,
  type WebSocket,
  type WebSocketBehavior,
} from 'uWebSockets.js';
import { after, soon } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { type Query, queryOf } from '../../base/query.ts';
import type { SocketErrorCode } from '../../base/socket-errors.ts';
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import { peerOf } from './addresses.ts';
import type { ClientLimits } from './client-limits.ts';
import { requestOrigin } from './request-context.ts';
import { DEPRECATED_SINCE } from './route.ts';

/** A copy of the handshake request: that of uWebSockets.js is valid only during the upgrade. */
export interface SocketRequest {
  readonly path: string;
  readonly query: Query;
  /** The query as it was sent; undefined: the request did not open a WebSocket. */
  readonly rawQuery?: string;
  /** A request header by its lower-case name, '' when absent. */
  header(name: string): string;
  /** Address of the client, or of its proxy when the client is unknown. */
  readonly ip: string;
  /** Scheme and host under which clients reach this server: https://media.example. */
  readonly serverOrigin: string;
  /** TCP port of this server that the client connected to. */
  readonly localPort: number;
}

/** One WebSocket connection. After the close, every method does nothing. */
export interface Socket<Data = unknown> {
  /** Data of the handlers, for use in `message` and `close`. */
  data: Data | undefined;
  readonly open: boolean;
  /**
   * Sends a text frame (string) or a binary frame (bytes). Returns false when the socket is closed,
   * or when the client reads too slowly: the message is then dropped and the socket closed.
   */
  send(message: string | Uint8Array): boolean;
  /**
   * Pings the client. Resolves with false when no pong arrives in time or the socket closes. Every
   * WebSocket implementation answers a ping (RFC 6455 section 5.5.2).
   */
  isAlive(timeoutMs: number): Promise<boolean>;
  /**
   * The client sent a valid token: the socket no longer counts against the limit of its address.
   */
  trust(): void;
  /** The client sent a wrong token: count it for its address. */
  distrust(): void;
  /** Sends a close frame, after all messages that were sent before. */
  end(code?: number, reason?: string): void;
}

/** The handlers of a WebSocket route. */
export interface SocketHandlers<Data = unknown> {
  /** Called before the handshake is answered. @throws ServiceError to refuse it */
  admit?(request: SocketRequest): void;
  open(socket: Socket<Data>, request: SocketRequest): void;
  /** `message` is valid only during the call: copy what you keep. */
  message(socket: Socket<Data>, message: ArrayBuffer, isBinary: boolean): void;
  /** The message of an error of this file; default: `ERROR` and its code. */
  errorText?(code: SocketErrorCode, request: SocketRequest): string;
  /** Called once for each socket. `code` is 1006 when there was no close frame. */
  close(socket: Socket<Data>, code: number): void;
}

/** Options of SocketRoutes. */
export interface SocketOptions {
  /**
   * Origins of web pages that may connect; empty: all. Clients without an Origin header may always.
   */
  readonly allowedOrigins: readonly string[];
  /** Limit of open WebSockets. */
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  /** As clients reach this server; undefined: the headers of each request tell. */
  readonly publicUrl?: string | undefined;
  /** Whether this server speaks TLS itself. */
  readonly isSecure?: boolean;
  readonly log: Logger;
}

/** A larger message ends the socket with MESSAGE_TOO_LARGE. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Beyond this size uWebSockets.js closes the socket without an error message. */
const HARD_MESSAGE_BYTES = 4 * MAX_MESSAGE_BYTES;
/** Bytes sent that the client has not read yet. Beyond this the socket is closed. */
const MAX_UNREAD_BYTES = 256 * 1024;
/**
 * uWebSockets.js pings an idle client, and closes the socket when nothing arrives for this long.
 */
const IDLE_TIMEOUT_SECONDS = 32;
/**
 * Limit of pongs. Unsolicited pongs are allowed (RFC 6455 section 5.5.3), but each one costs 0.5 us
 * of the main thread (measured).
 */
const PONGS_PER_SECOND = 10;
/** Pongs that may arrive at once. */
const PONG_BURST = 1000;
/** Share of all sockets that one address may hold without a valid token. */
const UNPROVEN_SHARE = 1 / 2;

/** What one socket counts for in the limits of its address. */
interface LimitEntry {
  readonly ip: string;
  leave(): void;
  distrust(): void;
}

interface Connection {
  readonly socket: UwsSocket;
  readonly handlers: SocketHandlers;
  readonly request: SocketRequest;
}

class UwsSocket implements Socket {
  data: unknown = undefined;
  ws: WebSocket<Connection> | undefined;
  readonly #limitEntry: LimitEntry;
  readonly #pongWaiters = new Set<(alive: boolean) => void>();
  readonly #pongs = new TokenBucket(PONGS_PER_SECOND, PONG_BURST, monotonicMs());

  constructor(limitEntry: LimitEntry) {
    this.#limitEntry = limitEntry;
  }

  trust(): void {
    this.#limitEntry.leave();
  }

  distrust(): void {
    this.#limitEntry.distrust();
  }

  get open(): boolean {
    return this.ws !== undefined;
  }

  send(message: string | Uint8Array): boolean {
    return this.ws !== undefined && this.ws.send(message, typeof message !== 'string') !== 2;
  }

  async isAlive(timeoutMs: number): Promise<boolean> {
    if (this.ws === undefined || this.ws.ping() === 2) {
      return false;
    }
    return await new Promise((resolve) => {
      const settle = (alive: boolean): void => {
        clearTimeout(timer);
        this.#pongWaiters.delete(settle);
        resolve(alive);
      };
      // After a stall of this thread, timers run before the sockets are read. Wait one turn for the
      // pong.
      const timer = after(timeoutMs, 'the wait for a pong', () => {
        soon('the wait for a pong', () => {
          settle(false);
        });
      });
      this.#pongWaiters.add(settle);
    });
  }

  /** Handles a pong, solicited or not. @returns false when there are too many */
  onPong(): boolean {
    this.settlePongs(true);
    return this.#pongs.take(1, monotonicMs());
  }

  /** Resolves every pending `isAlive`: a pong arrived, or the socket closed. */
  settlePongs(alive: boolean): void {
    for (const waiter of this.#pongWaiters) {
      waiter(alive);
    }
  }

  end(code = 1000, reason = ''): void {
    // RFC 6455 section 5.5: a control frame carries at most 125 bytes, two of them for the code.
    this.ws?.end(code, Buffer.from(reason).subarray(0, 123));
  }
}

/** Tells the client an error, and closes its socket. */
function endWithError(connection: Connection, closeCode: number, code: SocketErrorCode): void {
  const { socket, handlers, request } = connection;
  socket.send(handlers.errorText?.(code, request) ?? `ERROR ${code}`);
  socket.end(closeCode, code);
}

/** All WebSocket routes of one listener. */
export class SocketRoutes {
  readonly #routes = new Map<
    string,
    { readonly handlers: SocketHandlers; readonly successor: string | undefined }
  >();
  readonly #options: SocketOptions;
  readonly #open = new Set<UwsSocket>();
  /** TCP port of the listener, which sets it before the first connection. */
  localPort = 0;

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  /**
   * Adds a path. It is matched case-insensitively, because deprecated names of these paths have
   * mixed case. The handshake reply of a deprecated path names its `successor`.
   */
  add<Data>(path: string, handlers: SocketHandlers<Data>, successor?: string): void {
    this.#routes.set(path.toLowerCase(), { handlers, successor });
  }

  has(path: string): boolean {
    return this.#routes.has(path.toLowerCase());
  }

  /** Open WebSockets. */
  get connections(): number {
    return this.#open.size;
  }

  /** Sends a close frame to every socket. */
  closeAll(code: number, reason: string): void {
    for (const socket of this.#open) {
      socket.end(code, reason);
    }
  }

  /**
   * The callbacks for uWebSockets.js.
   * @param refuse answers a refused handshake
   * @param upgraded called for each connection that became a WebSocket
   */
  behavior(
    refuse: (res: HttpResponse, req: HttpRequest, error: ServiceError) => void,
    upgraded: () => void,
  ): WebSocketBehavior<Connection> {
    return {
      maxPayloadLength: HARD_MESSAGE_BYTES,
      maxBackpressure: MAX_UNREAD_BYTES,
      closeOnBackpressureLimit: true,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      sendPingsAutomatically: true,
      compression: DISABLED,
      upgrade: (res, req, context) => {
        let limitEntry: LimitEntry | undefined;
        try {
          limitEntry = this.#admit(res, req);
          this.#upgrade(res, req, context, limitEntry);
        } catch (error) {
          limitEntry?.leave();
          refuse(
            res,
            req,
            error instanceof ServiceError ? error : new ServiceError('INTERNAL_ERROR'),
          );
        }
      },
      open: (ws) => {
        const connection = ws.getUserData();
        const { socket, handlers, request } = connection;
        socket.ws = ws;
        this.#open.add(socket);
        upgraded();
        this.#guard(connection, () => handlers.open(socket, request));
      },
      message: (ws, message, isBinary) => {
        const connection = ws.getUserData();
        const { socket, handlers } = connection;
        if (message.byteLength > MAX_MESSAGE_BYTES) {
          endWithError(connection, 1009, 'MESSAGE_TOO_LARGE');
          return;
        }
        this.#guard(connection, () => handlers.message(socket, message, isBinary));
      },
      pong: (ws) => {
        if (!ws.getUserData().socket.onPong()) {
          ws.close();
        }
      },
      close: (ws, code) => {
        const connection = ws.getUserData();
        const { socket, handlers } = connection;
        socket.ws = undefined;
        socket.settlePongs(false);
        socket.trust();
        this.#open.delete(socket);
        this.#guard(connection, () => handlers.close(socket, code));
      },
    };
  }

  /** @throws ServiceError when the handshake is refused */
  #admit(res: HttpResponse, req: HttpRequest): LimitEntry {
    const { allowedOrigins, maxConnections, limits } = this.#options;
    const origin = req.getHeader('origin');
    if (!this.has(req.getUrl())) {
      throw new ServiceError('NOT_FOUND');
    }
    if (origin && allowedOrigins.length > 0 && !allowedOrigins.includes(origin)) {
      throw new ServiceError('ORIGIN_NOT_ALLOWED');
    }
    if (this.#open.size >= maxConnections) {
      throw new ServiceError('TOO_MANY_CONNECTIONS');
    }
    const peer = peerOf(res);
    const client = limits.clientOf(peer, req.getHeader('x-forwarded-for'));
    limits.checkKeyAttempt(client);
    const leave = limits.enter(client, Math.max(1, maxConnections * UNPROVEN_SHARE));
    return {
      ip: client ?? peer,
      leave,
      distrust: () => {
        limits.reportWrongKey(client);
      },
    };
  }

  #upgrade(
    res: HttpResponse,
    req: HttpRequest,
    context: us_socket_context_t,
    limitEntry: LimitEntry,
  ): void {
    const headers = new Map<string, string>();
    req.forEach((name, value) => {
      headers.set(name, value);
    });
    const { publicUrl, isSecure } = this.#options;
    const serverOrigin = publicUrl ?? requestOrigin(headers, isSecure ?? false);
    if (serverOrigin === undefined) {
      throw new ServiceError('INVALID_HOST');
    }
    const path = req.getUrl();
    const rawQuery = req.getQuery() ?? '';
    const request: SocketRequest = {
      path,
      query: queryOf(rawQuery),
      rawQuery,
      header: (name) => headers.get(name) ?? '',
      ip: limitEntry.ip,
      serverOrigin,
      localPort: this.localPort,
    };
    const { handlers, successor } = this.#routes.get(path.toLowerCase()) ?? {};
    if (!handlers) {
      return; // not reached: #admit refuses unknown paths
    }
    try {
      handlers.admit?.(request);
    } catch (error) {
      limitEntry.distrust();
      throw error;
    }
    if (successor) {
      res
        .writeStatus('101 Switching Protocols')
        .writeHeader('deprecation', DEPRECATED_SINCE)
        .writeHeader('link', `<${successor}>; rel="successor-version"`);
    }
    res.upgrade<Connection>(
      { socket: new UwsSocket(limitEntry), handlers, request },
      req.getHeader('sec-websocket-key'),
      req.getHeader('sec-websocket-protocol'),
      req.getHeader('sec-websocket-extensions'),
      context,
    );
  }

  /**
   * Calls a handler. Uncaught, its exception would end the process: uWebSockets.js calls no
   * promise.
   */
  #guard(connection: Connection, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.log.error({ err: error }, 'a WebSocket handler failed');
      endWithError(connection, 1011, 'INTERNAL_ERROR');
    }
  }
}
