// The WebSockets of sessions: what arrives is counted against budgets, and passed to the session of
// the socket; what cannot be opened is refused on the open socket.
import { ServiceError, toWireError } from '../../base/errors.ts';
import { socketErrorOf } from '../../base/socket-errors.ts';
import { monotonicMs } from '../../base/time.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../http/socket.ts';
import { Connection } from './connection.ts';
import { EarlyMessageMemory, EarlyMessages } from './early-messages.ts';
import { MessageBudget, SharedBudget, type Verdict, costOf } from './message-budget.ts';
import type { SocketTally } from './session-meter.ts';
import type { Elsewhere, LinkFactory, SocketSession } from './session-ports.ts';
import { type MessageWriter, plainText, writerFor } from './server-messages.ts';
import { isDone } from './wire-protocol.ts';

/** What the sockets are built from. */
export interface SocketIntakeOptions {
  /**
   * Opens the session of a socket, and sets it in the connection.
   * @throws ServiceError when the session is refused
   */
  readonly open: (
    socket: Socket<Connection>,
    request: SocketRequest,
    connection: Connection,
  ) => Promise<unknown>;
  readonly elsewhere: Elsewhere | undefined;
  readonly metrics: Metrics;
  readonly tally: SocketTally;
  /** Of the messages of all sockets; undefined: a new one. */
  readonly budget?: SharedBudget;
}

/** Refusals of one server: another one may have room. */
const OF_THIS_SERVER: ReadonlySet<string> = new Set(['SERVER_OVERLOADED', 'SERVER_DRAINING']);

/** The sockets of one server. */
export class SocketIntake {
  /** Of the messages of all sockets; those of rooms share it. */
  readonly messageBudget: SharedBudget;
  readonly #options: SocketIntakeOptions;
  readonly #earlyMemory = new EarlyMessageMemory();

  constructor(options: SocketIntakeOptions) {
    this.#options = options;
    this.messageBudget = options.budget ?? new SharedBudget(monotonicMs());
  }

  /** The handlers of a session WebSocket: its sessions are linked to their peers by `createLink`. */
  handlers(createLink: LinkFactory, writerOf = writerFor): SocketHandlers<Connection> {
    return {
      open: (socket, request) => {
        const connection = this.#connect(createLink, writerOf(request.query), false);
        socket.data = connection;
        void this.#admit(socket, request, connection);
      },
      message: (socket, message, isBinary) => {
        this.#receive(socket, socket.data!, message, isBinary);
      },
      errorText: (code, request) => writerOf(request.query)({ type: 'error', code })!,
      close: (socket) => {
        const connection = socket.data!;
        connection.isClosed = true;
        connection.close();
        connection.session?.closed();
      },
    };
  }

  /** The connection of a session that has no socket: nothing arrives on it. */
  headless(createLink: LinkFactory): Connection {
    const connection = this.#connect(createLink, plainText, true);
    connection.close();
    return connection;
  }

  #connect(createLink: LinkFactory, write: MessageWriter, isHeadless: boolean): Connection {
    const early = new EarlyMessages(this.#earlyMemory);
    const budget = new MessageBudget(this.messageBudget, monotonicMs());
    return new Connection(createLink, early, budget, write, isHeadless);
  }

  #receive(
    socket: Socket<Connection>,
    connection: Connection,
    message: ArrayBuffer,
    isBinary: boolean,
  ): void {
    const { session, early } = connection;
    const nowMs = monotonicMs();
    const verdict = connection.budget.take(costOf(message.byteLength, isBinary), nowMs);
    if (verdict !== 'taken') {
      this.#options.tally.dropped(verdict, message.byteLength);
    }
    if (session === undefined) {
      if (early.isOpen && (verdict !== 'taken' || !early.push(message, isBinary))) {
        this.#refuse(socket, connection, new ServiceError('RATE_LIMITED'));
      }
    } else {
      pass(session, verdict, message, isBinary, nowMs);
    }
  }

  /** The error is told on the open socket: clients retry a refused handshake ten times. */
  #refuse(socket: Socket<Connection>, connection: Connection, error: unknown): void {
    const { code } = toWireError(error);
    connection.early.take();
    if (code === 'INVALID_SESSION_TOKEN') {
      socket.distrust();
    }
    this.#options.metrics.counter('mouthpiece_sessions_refused_total', { code }).add();
    socket.send(connection.write({ type: 'error', code: socketErrorOf(code) })!);
    socket.end(1000, code);
  }

  async #admit(
    socket: Socket<Connection>,
    request: SocketRequest,
    connection: Connection,
  ): Promise<void> {
    try {
      await this.#options.open(socket, request, connection);
    } catch (error) {
      if (!connection.isClosed) {
        await this.#carryOn(socket, request, connection, error);
      }
    }
  }

  /** Opens a refused session on another server, if that helps. */
  async #carryOn(
    socket: Socket<Connection>,
    request: SocketRequest,
    connection: Connection,
    refusal: unknown,
  ): Promise<void> {
    let session: SocketSession | undefined;
    try {
      if (OF_THIS_SERVER.has(toWireError(refusal).code)) {
        session = await this.#options.elsewhere?.open(socket, request, connection.write);
      }
    } catch (error) {
      this.#refuse(socket, connection, error);
      return;
    }
    if (session === undefined) {
      this.#refuse(socket, connection, refusal);
    } else {
      takeOver(connection, session);
    }
  }
}

/** Gives a connection its session, and what arrived before. */
export function takeOver(connection: Connection, session: SocketSession): void {
  if (connection.isClosed) {
    session.closed();
    return;
  }
  connection.session = session;
  for (const { message, isBinary } of connection.early.take()) {
    session.message(message, isBinary);
  }
}

/** Passes a message on to a session that runs, as far as the budget allows. */
export function receive(
  session: SocketSession,
  budget: MessageBudget,
  tally: SocketTally,
  message: ArrayBuffer,
  isBinary: boolean,
): void {
  const nowMs = monotonicMs();
  const verdict = budget.take(costOf(message.byteLength, isBinary), nowMs);
  if (verdict !== 'taken') {
    tally.dropped(verdict, message.byteLength);
  }
  pass(session, verdict, message, isBinary, nowMs);
}

function pass(
  session: SocketSession,
  verdict: Verdict,
  message: ArrayBuffer,
  isBinary: boolean,
  nowMs: number,
): void {
  if (verdict === 'exhausted') {
    session.end('rate_limited');
  } else if (verdict === 'taken' || isDone(message)) {
    session.message(message, isBinary);
  } else {
    session.tellRate({ type: 'rate', reason: 'too_many_messages', detail: verdict }, nowMs);
  }
}
