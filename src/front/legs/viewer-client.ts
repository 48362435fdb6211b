// A viewer who watches a session over a socket of /compose/webrtc/p2p: it negotiates its peer
// connection there, and is told what the face does. It cannot speak.
import { monotonicMs } from '../../base/time.ts';
import { type ClientPort, SocketClient } from '../sessions/client-port.ts';
import { type MessageBudget, costOf } from '../sessions/message-budget.ts';
import type { MessageWriter, ServerMessage } from '../sessions/server-messages.ts';
import type { SocketTally } from '../sessions/session-meter.ts';
import type { ClientSocket } from '../sessions/session-ports.ts';
import { parseClientMessage } from '../sessions/wire-protocol.ts';
import type { ViewerLeg, ViewerSocket } from './viewer-leg.ts';

/** What a viewer is built from. */
export interface ViewerClientOptions {
  readonly socket: ClientSocket;
  readonly write: MessageWriter;
  readonly leg: ViewerLeg;
  readonly budget: MessageBudget;
  readonly tally: SocketTally;
}

/** One viewer with a socket. */
export class ViewerClient implements ViewerSocket {
  readonly #options: ViewerClientOptions;
  readonly #client: ClientPort;

  constructor(options: ViewerClientOptions) {
    this.#options = options;
    this.#client = new SocketClient(options.socket, options.write, options.tally);
  }

  /** @param message valid only during the call */
  message(message: ArrayBuffer, isBinary: boolean): void {
    const { budget, tally, leg } = this.#options;
    const verdict = budget.take(costOf(message.byteLength, isBinary), monotonicMs());
    if (verdict !== 'taken') {
      tally.dropped(verdict, message.byteLength);
      if (verdict === 'exhausted') {
        this.send({ type: 'error', code: 'RATE_LIMITED' });
        this.end();
      }
      return;
    }
    const parsed = parseClientMessage(message, isBinary);
    tally.received(parsed.kind, message.byteLength);
    if (parsed.kind === 'offer') {
      void leg.offer(this, parsed.sdp);
    } else if (parsed.kind === 'ping') {
      this.send({ type: 'pong', payload: parsed.payload });
    } else if (parsed.kind === 'done') {
      this.send({ type: 'stopped', reason: '' });
      this.end();
    }
  }

  send(message: ServerMessage): void {
    this.#client.send(message);
  }

  end(): void {
    this.#client.end();
  }

  /** The socket closed. */
  closed(): void {
    this.#options.budget.close();
    this.#options.leg.left(this);
  }
}
