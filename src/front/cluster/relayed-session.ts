// One session of a client of this server that another server runs: passes messages both ways.
import { WebSocket } from 'ws';
import { after, guarded } from '../../base/guard.ts';
import type { SocketErrorCode } from '../../base/socket-errors.ts';
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { Socket } from '../http/socket.ts';
import { type EarlyMessageMemory, EarlyMessages } from '../sessions/early-messages.ts';
import {
  endMessage,
  type MessageWriter,
  type RateMessage,
  type ServerMessage,
} from '../sessions/server-messages.ts';
import type { SocketSession } from '../sessions/session-ports.ts';

/** What a relayed session needs. */
export interface RelayedSessionOptions {
  readonly socket: Socket;
  /** The form in which the client wants its messages. */
  readonly write: MessageWriter;
  /** It is one connection of a session that goes on without it. */
  readonly isLeg: boolean;
  /** Connects to another server after a refusal; undefined: there is none. */
  readonly next: () => Promise<WebSocket | undefined>;
  /** Of messages that may have to be sent again. */
  readonly memory: EarlyMessageMemory;
  /** Counts the bytes of a message. */
  readonly onMessage: (direction: 'in' | 'out', bytes: number) => void;
  /** Called once. @param lost why the other server was given up; undefined: it was not */
  readonly onEnd: (session: RelayedSession, lost: string | undefined) => void;
}

/** What the other server has not read yet. Beyond this the session is given up. */
const MAX_UNSENT_BYTES = 4 << 20;
/** A server that says nothing for this long, no pong either, is lost. */
const SILENCE_MS = 7000;
/** How long the client may take for a pong that the other server waits for. */
const PONG_DEADLINE_MS = 2000;
/** A server that does not answer a close frame is not waited for. */
const CLOSE_WAIT_MS = 2000;

/** First words of a refusal that another server may not repeat. */
const REFUSAL = /^(?:ERROR |\{"type":"error".*"code":")(SERVER_OVERLOADED|SERVER_DRAINING)\b/;

/** Passes the messages of one session on. */
export class RelayedSession implements SocketSession {
  readonly #options: RelayedSessionOptions;
  /** Undefined while another server is asked. */
  #upstream: WebSocket | undefined = undefined;
  /** What the client sent until the other server first answered; undefined: it did. */
  #kept: EarlyMessages | undefined;
  readonly #rateNotices = new TokenBucket(1, 1, monotonicMs());
  #heardMs = monotonicMs();
  #isOver = false;

  constructor(options: RelayedSessionOptions, upstream: WebSocket) {
    this.#options = options;
    this.#kept = new EarlyMessages(options.memory);
    this.#attach(upstream);
  }

  message(message: ArrayBuffer, isBinary: boolean): void {
    if (this.#kept !== undefined && !this.#kept.push(message, isBinary)) {
      this.#forget(); // too much to be sent again: a refusal will be told
    }
    if (this.#upstream !== undefined) {
      this.#send(this.#upstream, message, isBinary);
    }
  }

  tellRate(message: RateMessage, nowMs: number): void {
    if (!this.#isOver && this.#rateNotices.take(1, nowMs)) {
      this.tell(message);
    }
  }

  /** Tells the client that this server stops. A leg is told nothing: its session goes on. */
  announceEnd(seconds: number): void {
    if (!this.#options.isLeg) {
      this.tell({ type: 'closing', reason: 'server_draining', seconds });
    }
  }

  /** Tells the client something of this server. */
  tell(message: ServerMessage): void {
    const text = this.#options.write(message);
    if (text !== undefined) {
      this.#options.socket.send(text);
    }
  }

  end(reason: 'rate_limited' | 'server_stopped'): void {
    if (this.#isOver) {
      return;
    }
    if (this.#options.isLeg && reason === 'server_stopped') {
      // RFC 6455 section 7.4.1: 1001 is an endpoint that goes away. The client comes back to another.
      this.#options.socket.end(1001, '');
      this.closed();
      return;
    }
    const message = endMessage(reason);
    if (message !== undefined) {
      this.tell(message);
    }
    this.#options.socket.end(1000, '');
    this.closed();
  }

  closed(): void {
    this.#over(undefined);
  }

  /** Pings the other server, unless it has been silent for too long. */
  check(nowMs: number): void {
    if (this.#upstream === undefined) {
      return;
    }
    if (nowMs - this.#heardMs > SILENCE_MS) {
      this.#lose(`it said nothing for ${SILENCE_MS / 1000} s`);
    } else {
      this.#upstream.ping(undefined, true, () => {});
    }
  }

  #attach(upstream: WebSocket): void {
    this.#upstream = upstream;
    this.#heardMs = monotonicMs();
    upstream.on(
      'message',
      guarded('a message of a relayed session', (data: Buffer, isBinary: boolean) => {
        this.#heardMs = monotonicMs();
        if (upstream === this.#upstream) {
          this.#receive(data, isBinary);
        }
      }),
    );
    upstream.on(
      'ping',
      guarded('a ping of a relayed session', (data: Buffer) => this.#ping(upstream, data)),
    );
    upstream.on('pong', () => {
      this.#heardMs = monotonicMs();
    });
    upstream.on(
      'close',
      guarded('the end of a relayed session', (code: number, reason: Buffer) => {
        if (upstream === this.#upstream) {
          this.#upstreamClosed(code, reason.toString());
        }
      }),
    );
    upstream.resume();
  }

  #send(upstream: WebSocket, message: ArrayBuffer, isBinary: boolean): void {
    if (upstream.readyState !== WebSocket.OPEN) {
      return;
    }
    if (upstream.bufferedAmount > MAX_UNSENT_BYTES) {
      this.#lose('it does not read what it is sent');
      return;
    }
    this.#options.onMessage('in', message.byteLength);
    upstream.send(message, { binary: isBinary }); // masked into a copy before it returns
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#kept !== undefined) {
      const refusal = isBinary ? null : REFUSAL.exec(data.toString());
      if (refusal !== null) {
        void this.#tryNext(data.toString(), refusal[1] as SocketErrorCode);
        return;
      }
      this.#forget();
    }
    this.#options.onMessage('out', data.length);
    this.#options.socket.send(isBinary ? data : data.toString());
  }

  /** Sends everything to the next server instead, or tells the refusal when there is none. */
  async #tryNext(refusal: string, code: SocketErrorCode): Promise<void> {
    this.#dropUpstream();
    const upstream = await this.#options.next().catch(() => undefined);
    if (upstream === undefined) {
      if (!this.#isOver) {
        this.#options.socket.send(refusal);
        this.#options.socket.end(1000, code);
        this.#over(undefined);
      }
      return;
    }
    if (this.#isOver || this.#kept === undefined) {
      upstream.terminate();
      if (!this.#isOver) {
        this.#lose('what the client sent is no longer kept for it');
      }
      return;
    }
    const kept = this.#kept.take();
    this.#kept = new EarlyMessages(this.#options.memory);
    this.#attach(upstream);
    for (const { message, isBinary } of kept) {
      this.message(message, isBinary);
    }
  }

  /** A ping of the other server asks whether the client is there, not whether this server is. */
  async #ping(upstream: WebSocket, data: Buffer): Promise<void> {
    this.#heardMs = monotonicMs();
    if (await this.#options.socket.isAlive(PONG_DEADLINE_MS)) {
      upstream.pong(data, true, () => {});
    }
  }

  #upstreamClosed(code: number, reason: string): void {
    // RFC 6455 section 7.4.1: 1006 is a connection that ended without a close frame.
    if (code === 1006) {
      this.#lose('the connection to it broke off');
      return;
    }
    this.#options.socket.end(code === 1005 ? 1000 : code, reason);
    this.#over(undefined);
  }

  /** The other server is lost. */
  #lose(why: string): void {
    this.tell({ type: 'error', code: 'WORKER_LOST' });
    this.#options.socket.end(1000, 'WORKER_LOST');
    this.#over(why);
  }

  #forget(): void {
    this.#kept?.take();
    this.#kept = undefined;
  }

  #dropUpstream(): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    if (upstream !== undefined && upstream.readyState !== WebSocket.CLOSED) {
      upstream.close(1000);
      after(CLOSE_WAIT_MS, 'the close of a relayed session', () => {
        upstream.terminate();
      }).unref();
    }
  }

  #over(lost: string | undefined): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#forget();
    this.#dropUpstream();
    this.#options.onEnd(this, lost);
  }
}
