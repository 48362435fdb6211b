// A viewer of this server in a room that another server serves: its signalling is passed on to that
// server, and its media goes there directly.
import { DisconnectReason, LeaveRequest_Action } from '@livekit/protocol';
import { monotonicMs } from '../../base/time.ts';
import type { Socket, SocketRequest } from '../http/socket.ts';
import { type EarlyMessageMemory, EarlyMessages } from '../sessions/early-messages.ts';
import { costOf, MessageBudget, type SharedBudget } from '../sessions/message-budget.ts';
import type { Elsewhere, SocketSession } from '../sessions/session-ports.ts';
import { leaveResponse } from './signal-messages.ts';

/** LiveKit clients read binary messages only: what servers tell other clients is not for them. */
const tellNothing = (): undefined => undefined;

/** The signal WebSocket of one viewer. */
export class PassedOnViewer {
  readonly #socket: Socket;
  readonly #budget: MessageBudget;
  readonly #early: EarlyMessages;
  #session: SocketSession | undefined = undefined;
  #isClosed = false;

  /** @param memory of what such viewers send before the other server is reached */
  constructor(socket: Socket, budget: SharedBudget, memory: EarlyMessageMemory) {
    this.#socket = socket;
    this.#budget = new MessageBudget(budget, monotonicMs());
    this.#early = new EarlyMessages(memory);
  }

  /** Connects to the server that serves the room; sends the viewer away when none does. */
  async open(
    elsewhere: Pick<Elsewhere, 'openLeg'>,
    room: string,
    request: SocketRequest,
  ): Promise<void> {
    try {
      const session = await elsewhere.openLeg(room, this.#socket, request, tellNothing);
      if (session !== undefined) {
        this.#begin(session);
        return;
      }
      const { ROOM_DELETED } = DisconnectReason;
      this.#socket.send(leaveResponse(ROOM_DELETED, LeaveRequest_Action.DISCONNECT));
      this.#socket.end(1000, 'ROOM_CLOSED');
    } catch {
      // RFC 6455 section 7.4.1: 1013 is a server that cannot serve now. Clients come back.
      this.#socket.end(1013, 'NODE_UNREACHABLE');
    }
    this.#early.take();
  }

  /** @param message valid only during the call @returns false: it was dropped */
  message(message: ArrayBuffer, isBinary: boolean): boolean {
    const verdict = this.#budget.take(costOf(message.byteLength, isBinary), monotonicMs());
    const session = this.#session;
    if (verdict !== 'taken') {
      if (verdict === 'exhausted' || session === undefined) {
        this.#socket.end(1008, 'RATE_LIMITED');
      }
      return false;
    }
    if (session !== undefined) {
      session.message(message, isBinary);
      return true;
    }
    return this.#early.push(message, isBinary);
  }

  /** The socket closed. */
  closed(): void {
    this.#isClosed = true;
    this.#budget.close();
    this.#early.take();
    this.#session?.closed();
  }

  #begin(session: SocketSession): void {
    if (this.#isClosed) {
      session.closed();
      return;
    }
    this.#session = session;
    for (const { message, isBinary } of this.#early.take()) {
      session.message(message, isBinary);
    }
  }
}
