// Sessions of POST /sessions: the server of an agent and the viewer have a connection each, and each
// may be lost and come back while the other goes on.
import { ServiceError } from '../../base/errors.ts';
import { hashSecret, newUuid } from '../../base/ids.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { ReportedMotion } from '../../link/messages.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../http/socket.ts';
import type { ClientPort } from '../sessions/client-port.ts';
import type { Connection } from '../sessions/connection.ts';
import type { LiveSession } from '../sessions/live-session.ts';
import { MessageBudget } from '../sessions/message-budget.ts';
import { type ServerMessage, writeEvent, writerFor } from '../sessions/server-messages.ts';
import { sendSessionFacts } from '../sessions/session-link.ts';
import type { Elsewhere } from '../sessions/session-ports.ts';
import type { SessionService } from '../sessions/session-service.ts';
import type { SessionGrant } from '../sessions/session-tokens.ts';
import { receive, SocketIntake, takeOver } from '../sessions/socket-intake.ts';
import { AgentLeg } from './agent-leg.ts';
import type { LegTokens, Side, SplitTokens } from './leg-tokens.ts';
import { ViewerClient } from './viewer-client.ts';
import { ViewerLeg } from './viewer-leg.ts';

/** What a session is asked for with, besides its grant. */
export interface SplitRequest {
  readonly grant: Omit<SessionGrant, 'tokenId' | 'issuedAtMs'>;
  /** How long each side may take to come, and be away. */
  readonly graceMs: number;
  readonly reports: ReportedMotion | undefined;
  /** host:port of this server, as clients are told. */
  readonly destination: string;
  readonly ip: string;
}

/** A session with two connections. */
export interface SplitSession {
  readonly session: LiveSession;
  readonly agent: AgentLeg;
  readonly viewer: ViewerLeg;
  readonly destination: string;
  readonly tokens: SplitTokens;
}

/** The socket of an agent. */
interface AgentConnection {
  readonly split: SplitSession;
  readonly budget: MessageBudget;
}

/** What the sessions are built from. */
export interface SplitSessionsOptions {
  readonly sessions: SessionService;
  readonly tokens: LegTokens;
  /** Takes connections to sessions that other servers run. */
  readonly elsewhere: Pick<Elsewhere, 'openLeg'>;
  readonly metrics: Metrics;
}

/** The sessions of one server. Their tokens are good as long as they live. */
export class SplitSessions {
  readonly #sessions: SessionService;
  readonly #tokens: LegTokens;
  readonly #byId = new Map<string, SplitSession>();
  /** Sockets of sessions that other servers run. */
  readonly #passedOn: Readonly<Record<Side, SocketHandlers<Connection>>>;

  constructor({ sessions, tokens, elsewhere, metrics }: SplitSessionsOptions) {
    this.#sessions = sessions;
    this.#tokens = tokens;
    const passedOn = (side: Side, writerOf: typeof writerFor): SocketHandlers<Connection> =>
      new SocketIntake({
        open: async (socket, request, connection) => {
          const sessionId = tokens.sessionOf(tokenOf(request), side)!;
          const leg = await elsewhere.openLeg(sessionId, socket, request, connection.write);
          if (leg === undefined) {
            throw new ServiceError('INVALID_SESSION_TOKEN');
          }
          takeOver(connection, leg);
        },
        elsewhere: undefined,
        metrics,
        tally: sessions.tally,
        budget: sessions.messageBudget,
      }).handlers(noLink, writerOf);
    this.#passedOn = {
      agent: passedOn('agent', () => writeEvent),
      viewer: passedOn('viewer', writerFor),
    };
  }

  /** Opens a session and places it. @throws ServiceError when it is refused */
  async open({ grant, graceMs, reports, destination, ip }: SplitRequest): Promise<SplitSession> {
    const sessionId = newUuid();
    const tokens = this.#tokens.issue(sessionId);
    const tokenId = hashSecret(tokens.agent).slice(0, 32);
    let legs: Pick<SplitSession, 'agent' | 'viewer'> | undefined;
    let opened: LiveSession | undefined;
    const session = await this.#sessions.openFor(
      sessionId,
      { ...grant, tokenId, issuedAtMs: Math.round(wallMs()) },
      { ip, reports },
      () => {
        const agent = new AgentLeg({
          tally: this.#sessions.tally,
          graceMs,
          onLost: () => {
            opened?.end('agent_lost');
          },
        });
        const viewer = new ViewerLeg({
          destination,
          graceMs,
          onChange: (connected) => {
            agent.send({ type: 'viewer', connected });
          },
          onClosed: () => {
            this.#byId.delete(sessionId);
          },
        });
        legs = { agent, viewer };
        return { client: new BothLegs(agent, viewer), link: viewer };
      },
    );
    opened = session;
    const split = { session, ...legs!, destination, tokens };
    this.#byId.set(sessionId, split);
    return split;
  }

  /** @throws ServiceError NOT_FOUND, INVALID_SESSION_TOKEN */
  watched(sessionId: string, viewerToken: string): SplitSession {
    if (this.#tokens.sessionOf(viewerToken, 'viewer') !== sessionId) {
      throw new ServiceError(
        'INVALID_SESSION_TOKEN',
        'This is not the viewer token of the session.',
      );
    }
    return this.find(sessionId);
  }

  /** @throws ServiceError NOT_FOUND */
  find(sessionId: string): SplitSession {
    const split = this.#byId.get(sessionId);
    if (split === undefined) {
      throw new ServiceError('NOT_FOUND', 'The session is over.');
    }
    return split;
  }

  /** The session of a token; 'elsewhere': no such session is here; undefined: it is no token. */
  #byToken(token: string, side: Side): SplitSession | 'elsewhere' | undefined {
    const sessionId = this.#tokens.sessionOf(token, side);
    return sessionId === undefined ? undefined : (this.#byId.get(sessionId) ?? 'elsewhere');
  }

  /** The handlers of WSS /sessions/agent. */
  agentHandlers(): SocketHandlers<AgentConnection | Connection> {
    const { tally, messageBudget } = this.#sessions;
    const { agent: passedOn } = this.#passedOn;
    return {
      open: (socket, request) => {
        const split = this.#byToken(tokenOf(request), 'agent');
        if (split === undefined) {
          socket.distrust();
          socket.send(writeEvent({ type: 'error', code: 'INVALID_SESSION_TOKEN' })!);
          socket.end(1000, 'INVALID_SESSION_TOKEN');
          return;
        }
        if (split === 'elsewhere') {
          passedOn.open(socket as Socket<Connection>, request);
          return;
        }
        socket.trust();
        const budget = new MessageBudget(messageBudget, monotonicMs());
        socket.data = { split, budget };
        split.agent.attach(socket);
        sendState(split);
      },
      message: (socket, message, isBinary) => {
        const { data } = socket;
        if (data === undefined) {
          return;
        }
        if ('split' in data) {
          receive(data.split.session, data.budget, tally, message, isBinary);
        } else {
          passedOn.message(socket as Socket<Connection>, message, isBinary);
        }
      },
      errorText: (code) => writeEvent({ type: 'error', code })!,
      close: (socket, code) => {
        const { data } = socket;
        if (data === undefined) {
          return;
        }
        if ('split' in data) {
          data.budget.close();
          data.split.agent.detach(socket);
        } else {
          passedOn.close(socket as Socket<Connection>, code);
        }
      },
    };
  }

  /** The handlers of a socket that takes viewer tokens too; `inner` has all others. */
  withViewers(inner: SocketHandlers<Connection>): SocketHandlers<Connection | ViewerClient> {
    const { viewer: passedOn } = this.#passedOn;
    // The sockets of `inner` and those that are passed on have the same data and differ in `open`.
    const asInner = (socket: Socket<Connection | ViewerClient>): Socket<Connection> =>
      socket as Socket<Connection>;
    return {
      ...inner,
      open: (socket, request) => {
        const split = this.#byToken(tokenOf(request), 'viewer');
        if (split === undefined || split === 'elsewhere') {
          (split === undefined ? inner : passedOn).open(asInner(socket), request);
          return;
        }
        socket.trust();
        socket.data = new ViewerClient({
          socket,
          write: writerFor(request.query),
          leg: split.viewer,
          budget: new MessageBudget(this.#sessions.messageBudget, monotonicMs()),
          tally: this.#sessions.tally,
        });
      },
      message: (socket, message, isBinary) => {
        if (socket.data instanceof ViewerClient) {
          socket.data.message(message, isBinary);
        } else {
          inner.message(asInner(socket), message, isBinary);
        }
      },
      close: (socket, code) => {
        if (socket.data instanceof ViewerClient) {
          socket.data.closed();
        } else {
          inner.close(asInner(socket), code);
        }
      },
    };
  }
}

function noLink(): never {
  throw new Error('a session of another server has no link here');
}

const tokenOf = ({ query }: SocketRequest): string => query.get('session_token') ?? '';

/** What an agent must know when it comes, or comes back. */
function sendState({ session, agent, viewer, destination }: SplitSession): void {
  const send = (message: ServerMessage): void => {
    agent.send(message);
  };
  sendSessionFacts({ id: session.id, size: session.size, send }, destination);
  send({ type: 'viewer', connected: viewer.isConnected });
}

/** Tells the agent all, and the viewer what concerns it. */
class BothLegs implements ClientPort {
  readonly #agent: AgentLeg;
  readonly #viewer: ViewerLeg;

  constructor(agent: AgentLeg, viewer: ViewerLeg) {
    this.#agent = agent;
    this.#viewer = viewer;
  }

  send(message: ServerMessage): void {
    this.#agent.send(message);
    this.#viewer.tell(message);
  }

  /** The viewer's leg is closed by the session, as its link. */
  end(): void {
    this.#agent.end();
  }
}
