// WebSocket routes: upgrade, origin check, message size, keep-alive pings, and a socket that cannot be used after it closed.
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
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import { peerOf } from './addresses.ts';
import type { ClientLimits } from './client-limits.ts';
import { DEPRECATED_SINCE } from './reply.ts';

/** The handshake's request, copied: uWebSockets.js keeps its own only during the upgrade. */
export interface SocketRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  /** Any header by its lower-case name, '' when absent. */
  header(name: string): string;
  readonly ip: string;
}

/** One WebSocket connection. Every method is safe after the close: it then does nothing. */
export interface Socket<Data = unknown> {
  /** Whatever the owner of the connection wants to find again in `message` and `close`. */
  data: Data | undefined;
  readonly open: boolean;
  /** A text frame from a string, a binary frame from bytes. False when closed, or dropped because the client reads too slowly (it is then closed). */
  send(message: string | Uint8Array): boolean;
  /** Bytes the client has not read yet. */
  bufferedBytes(): number;
  /** Pings the client: false when it gives no pong in time, as every client does by itself (RFC 6455 section 5.5.3), or the socket closes. */
  isAlive(timeoutMs: number): Promise<boolean>;
  /** Several sends in one packet. */
  cork(send: () => void): void;
  /** The client has shown a good token: the socket no longer counts for the limit of its address. */
  trust(): void;
  /** The client has shown a wrong token. */
  distrust(): void;
  /** Sends a close frame after what was sent before. */
  end(code?: number, reason?: string): void;
  /** Drops the connection without a close frame. */
  terminate(): void;
}

export interface SocketHandlers<Data = unknown> {
  open(socket: Socket<Data>, request: SocketRequest): void;
  /** `message` is valid only during the call: copy what outlives it. */
  message(socket: Socket<Data>, message: ArrayBuffer, isBinary: boolean): void;
  /** Called once, whoever closed. 1006 when there was no close frame. */
  close(socket: Socket<Data>, code: number): void;
  drain?(socket: Socket<Data>): void;
}

export interface SocketOptions {
  /** Origins of web pages that may connect; empty: all of them. Clients that are no browsers send none and may always. */
  readonly allowedOrigins: readonly string[];
  readonly maxConnections: number;
  readonly limits: ClientLimits;
  readonly log: Logger;
}

export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Beyond this uWebSockets.js itself closes without a word; up to it we can say why. */
const HARD_MESSAGE_BYTES = 4 * MAX_MESSAGE_BYTES;
const MAX_UNREAD_BYTES = 256 * 1024;
const IDLE_TIMEOUT_SECONDS = 32;
/** Pongs nobody asked for are allowed (RFC 6455 section 5.5.3); each costs half a microsecond of the main thread. */
const PONGS_PER_SECOND = 10;
const PONG_BURST = 1000;
/** What sockets of one address without a good token may take of all sockets. */
const UNPROVEN_SHARE = 1 / 2;

/** A socket's place in the limits of its address. */
interface Place {
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
  readonly #place: Place;
  readonly #pongWaiters = new Set<(alive: boolean) => void>();
  readonly #pongs = new TokenBucket(PONGS_PER_SECOND, PONG_BURST, monotonicMs());

  constructor(place: Place) {
    this.#place = place;
  }

  trust(): void {
    this.#place.leave();
  }

  distrust(): void {
    this.#place.distrust();
  }

  get open(): boolean {
    return this.ws !== undefined;
  }

  send(message: string | Uint8Array): boolean {
    return this.ws !== undefined && this.ws.send(message, typeof message !== 'string') !== 2;
  }

  bufferedBytes(): number {
    return this.ws?.getBufferedAmount() ?? 0;
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
      // After a stall of this thread the timer runs before what came in meanwhile is read, the pong too.
      const timer = after(timeoutMs, 'the wait for a pong', () => {
        soon('the wait for a pong', () => {
          settle(false);
        });
      });
      this.#pongWaiters.add(settle);
    });
  }

  /** A pong came, asked for or not. @returns false when there are too many of them */
  pong(): boolean {
    this.settle(true);
    return this.#pongs.take(1, monotonicMs());
  }

  /** A pong came, or the socket closed. */
  settle(alive: boolean): void {
    for (const waiter of this.#pongWaiters) {
      waiter(alive);
    }
  }

  cork(send: () => void): void {
    if (this.ws) {
      this.ws.cork(send);
    }
  }

  end(code = 1000, reason = ''): void {
    this.ws?.end(code, Buffer.from(reason).subarray(0, 123)); // RFC 6455 section 5.5: a control frame carries at most 125 bytes
  }

  terminate(): void {
    this.ws?.close();
  }
}

/** All WebSocket routes of one listener. */
export class SocketRoutes {
  readonly #routes = new Map<
    string,
    { readonly handlers: SocketHandlers; readonly successor: string | undefined }
  >();
  readonly #options: SocketOptions;
  readonly #open = new Set<UwsSocket>();

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  /**
   * Adds a path, matched without regard to case (the earlier names of these paths were in mixed case). An earlier name gives its
   * `successor`, which the handshake then names.
   */
  add<Data>(path: string, handlers: SocketHandlers<Data>, successor?: string): void {
    this.#routes.set(path.toLowerCase(), { handlers, successor });
  }

  has(path: string): boolean {
    return this.#routes.has(path.toLowerCase());
  }

  get connections(): number {
    return this.#open.size;
  }

  closeAll(code: number, reason: string): void {
    for (const socket of this.#open) {
      socket.end(code, reason);
    }
  }

  /** @param upgraded called for each connection that speaks WebSocket from now on */
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
        let place: Place;
        try {
          place = this.#admit(res, req);
        } catch (error) {
          refuse(
            res,
            req,
            error instanceof ServiceError ? error : new ServiceError('INTERNAL_ERROR'),
          );
          return;
        }
        this.#upgrade(res, req, context, place);
      },
      open: (ws) => {
        const { socket, handlers, request } = ws.getUserData();
        socket.ws = ws;
        this.#open.add(socket);
        upgraded();
        this.#guard(socket, () => handlers.open(socket, request));
      },
      message: (ws, message, isBinary) => {
        const { socket, handlers } = ws.getUserData();
        if (message.byteLength > MAX_MESSAGE_BYTES) {
          socket.send('ERROR MESSAGE_TOO_LARGE');
          socket.end(1009, 'MESSAGE_TOO_LARGE');
          return;
        }
        this.#guard(socket, () => handlers.message(socket, message, isBinary));
      },
      drain: (ws) => {
        const { socket, handlers } = ws.getUserData();
        this.#guard(socket, () => handlers.drain?.(socket));
      },
      pong: (ws) => {
        if (!ws.getUserData().socket.pong()) {
          ws.close();
        }
      },
      close: (ws, code) => {
        const { socket, handlers } = ws.getUserData();
        socket.ws = undefined;
        socket.settle(false);
        socket.trust();
        this.#open.delete(socket);
        this.#guard(socket, () => handlers.close(socket, code));
      },
    };
  }

  /** @throws ServiceError when the handshake is refused */
  #admit(res: HttpResponse, req: HttpRequest): Place {
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
    limits.tryKey(client);
    const leave = limits.enter(client, Math.max(1, maxConnections * UNPROVEN_SHARE));
    return {
      ip: client ?? peer,
      leave,
      distrust: () => {
        limits.wrongKey(client);
      },
    };
  }

  #upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t, place: Place): void {
    const headers = new Map<string, string>();
    req.forEach((name, value) => {
      headers.set(name, value);
    });
    const path = req.getUrl();
    const request: SocketRequest = {
      path,
      query: new URLSearchParams(req.getQuery() ?? ''),
      header: (name) => headers.get(name) ?? '',
      ip: place.ip,
    };
    const { handlers, successor } = this.#routes.get(path.toLowerCase()) ?? {};
    if (!handlers) {
      return;
    } // refused before
    if (successor) {
      res
        .writeStatus('101 Switching Protocols')
        .writeHeader('deprecation', DEPRECATED_SINCE)
        .writeHeader('link', `<${successor}>; rel="successor-version"`);
    }
    res.upgrade<Connection>(
      { socket: new UwsSocket(place), handlers, request },
      req.getHeader('sec-websocket-key'),
      req.getHeader('sec-websocket-protocol'),
      req.getHeader('sec-websocket-extensions'),
      context,
    );
  }

  /** An exception here would end the process: uWebSockets.js calls us from outside of any promise. */
  #guard(socket: UwsSocket, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.log.error({ err: error }, 'a WebSocket handler failed');
      socket.send('ERROR INTERNAL_ERROR');
      socket.end(1011, 'INTERNAL_ERROR');
    }
  }
}
