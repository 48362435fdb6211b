// The connection of an agent's server to its session: one socket at a time, which may be lost and
// come back.
import { after } from '../../base/guard.ts';
import type { ClientSocket } from '../sessions/session-ports.ts';
import type { ClientPort } from '../sessions/client-port.ts';
import { type ServerMessage, writeEvent } from '../sessions/server-messages.ts';
import type { SocketTally } from '../sessions/session-meter.ts';

/** What the leg is built from. */
export interface AgentLegOptions {
  readonly tally: SocketTally;
  /** How long the agent may be away. */
  readonly graceMs: number;
  /** The agent was away for longer. */
  readonly onLost: () => void;
}

/** The agent of one session. It speaks events only. */
export class AgentLeg implements ClientPort {
  readonly #options: AgentLegOptions;
  #socket: ClientSocket | undefined = undefined;
  #timer: NodeJS.Timeout | undefined = undefined;

  constructor(options: AgentLegOptions) {
    this.#options = options;
    this.#wait();
  }

  #wait(): void {
    this.#timer = after(this.#options.graceMs, 'the wait for an agent', () => {
      this.#options.onLost();
    });
  }

  /** A socket of the agent opened. It takes the place of the one before it. */
  attach(socket: ClientSocket): void {
    clearTimeout(this.#timer);
    this.send({ type: 'stopped', reason: 'taken_over' });
    const previous = this.#socket;
    // Before the end, which calls `detach`: the agent is not away.
    this.#socket = socket;
    previous?.end(1000, '');
  }

  /** A socket closed. */
  detach(socket: ClientSocket): void {
    if (this.#socket === socket) {
      this.#socket = undefined;
      this.#wait();
    }
  }

  /** What is told while the agent is away is lost: it is told the state when it comes back. */
  send(message: ServerMessage): void {
    const text = writeEvent(message)!;
    if (this.#socket?.send(text) === true) {
      this.#options.tally.sent(message.type, text.length);
    }
  }

  end(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.end(1000, '');
  }
}
