// What a session tells its client, in the form that the client asked for.
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { MessageWriter, RateMessage, ServerMessage } from './server-messages.ts';
import type { SocketTally } from './session-meter.ts';
import type { ClientSocket } from './session-ports.ts';

/** The client of a session. Every method may be called after the client has left. */
export interface ClientPort {
  send(message: ServerMessage): void;
  /** No message follows. */
  end(): void;
}

/** A client with one socket. */
export class SocketClient implements ClientPort {
  readonly #socket: ClientSocket;
  readonly #write: MessageWriter;
  readonly #tally: SocketTally;

  constructor(socket: ClientSocket, write: MessageWriter, tally: SocketTally) {
    this.#socket = socket;
    this.#write = write;
    this.#tally = tally;
  }

  send(message: ServerMessage): void {
    const text = this.#write(message);
    if (text !== undefined && this.#socket.send(text)) {
      this.#tally.sent(message.type, text.length);
    }
  }

  end(): void {
    this.#socket.end(1000, '');
  }
}

/** Tells a client that some of its messages or audio are dropped, at most once a second. */
export class RateNotices {
  readonly #client: ClientPort;
  readonly #bucket = new TokenBucket(1, 1, monotonicMs());

  constructor(client: ClientPort) {
    this.#client = client;
  }

  tell(message: RateMessage, nowMs: number): void {
    if (this.#bucket.take(1, nowMs)) {
      this.#client.send(message);
    }
  }
}
