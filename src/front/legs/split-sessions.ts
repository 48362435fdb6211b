// Sessions of POST /sessions: the server of an agent and the viewer have a connection each, and each
// may be lost and come back while the other goes on.
import { ServiceError } from '../../base/errors.ts';
import { hashSecret, newSecret } from '../../base/ids.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../http/socket.ts';
import type { ClientPort } from '../sessions/client-port.ts';
import type { LiveSession } from '../sessions/live-session.ts';
import { MessageBudget } from '../sessions/message-budget.ts';
import { type ServerMessage, writeEvent, writerFor } from '../sessions/server-messages.ts';
import { sendSessionFacts } from '../sessions/session-link.ts';
import type { SessionService } from '../sessions/session-service.ts';
import type { SessionGrant } from '../sessions/session-tokens.ts';
import { receive } from '../sessions/socket-intake.ts';
import { AgentLeg } from './agent-leg.ts';
import { ViewerClient } from './viewer-client.ts';
import { ViewerLeg } from './viewer-leg.ts';

/** What a session is asked for with, besides its grant. */
export interface SplitRequest {
  readonly grant: Omit<SessionGrant, 'tokenId' | 'issuedAtMs'>;
  /** How long each side may take to come, and be away. */
  readonly graceMs: number;
  readonly reportsMotion: boolean;
  /** host:port of this server, as clients are told. */
  readonly destination: string;
  readonly ip: string;
}

/** What each side connects with. */
export interface SplitTokens {
  readonly agent: string;
  readonly viewer: string;
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

/** The sessions of one server. Their tokens live as long as they do. */
export class SplitSessions {
  readonly #sessions: SessionService;
  readonly #byId = new Map<string, SplitSession>();
  /** By the hash of a token. */
  readonly #byToken = new Map<string, SplitSession>();

  constructor(sessions: SessionService) {
    this.#sessions = sessions;
  }

  /** Opens a session and places it. @throws ServiceError when it is refused */
  async open({
    grant,
    graceMs,
    reportsMotion,
    destination,
    ip,
  }: SplitRequest): Promise<SplitSession> {
    const tokens = { agent: newSecret(), viewer: newSecret() };
    const hashes = [hashSecret(tokens.agent), hashSecret(tokens.viewer)];
    let legs: Pick<SplitSession, 'agent' | 'viewer'> | undefined;
    let opened: LiveSession | undefined;
    const session = await this.#sessions.openFor(
      { ...grant, tokenId: hashes[0]!.slice(0, 32), issuedAtMs: Math.round(wallMs()) },
      { ip, reportsMotion },
      (id) => {
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
            this.#byId.delete(id);
            for (const hash of hashes) {
              this.#byToken.delete(hash);
            }
          },
        });
        legs = { agent, viewer };
        return { client: new BothLegs(agent, viewer), link: viewer };
      },
    );
    opened = session;
    const split = { session, ...legs!, destination, tokens };
    this.#byId.set(session.id, split);
    for (const hash of hashes) {
      this.#byToken.set(hash, split);
    }
    return split;
  }

  /** @throws ServiceError NOT_FOUND, INVALID_SESSION_TOKEN */
  watched(sessionId: string, viewerToken: string): SplitSession {
    const split = this.find(sessionId);
    if (this.#byViewerToken(viewerToken) !== split) {
      throw new ServiceError(
        'INVALID_SESSION_TOKEN',
        'This is not the viewer token of the session.',
      );
    }
    return split;
  }

  /** @throws ServiceError NOT_FOUND */
  find(sessionId: string): SplitSession {
    const split = this.#byId.get(sessionId);
    if (split === undefined) {
      throw new ServiceError('NOT_FOUND', 'The session is over, or runs on another server.');
    }
    return split;
  }

  #byViewerToken(token: string): SplitSession | undefined {
    const split = token === '' ? undefined : this.#byToken.get(hashSecret(token));
    return split?.tokens.viewer === token ? split : undefined;
  }

  #byAgentToken(token: string): SplitSession | undefined {
    const split = token === '' ? undefined : this.#byToken.get(hashSecret(token));
    return split?.tokens.agent === token ? split : undefined;
  }

  /** The handlers of WSS /sessions/agent. */
  agentHandlers(): SocketHandlers<AgentConnection> {
    const { tally, messageBudget } = this.#sessions;
    return {
      open: (socket, request) => {
        const split = this.#byAgentToken(tokenOf(request));
        if (split === undefined) {
          socket.distrust();
          socket.send(writeEvent({ type: 'error', code: 'INVALID_SESSION_TOKEN' })!);
          socket.end(1000, 'INVALID_SESSION_TOKEN');
          return;
        }
        socket.trust();
        const budget = new MessageBudget(messageBudget, monotonicMs());
        socket.data = { split, budget };
        split.agent.attach(socket);
        sendState(split);
      },
      message: (socket, message, isBinary) => {
        if (socket.data !== undefined) {
          const { split, budget } = socket.data;
          receive(split.session, budget, tally, message, isBinary);
        }
      },
      errorText: (code) => writeEvent({ type: 'error', code })!,
      close: (socket) => {
        socket.data?.budget.close();
        socket.data?.split.agent.detach(socket);
      },
    };
  }

  /** The handlers of a socket that takes viewer tokens too; `inner` has all others. */
  withViewers<Data>(inner: SocketHandlers<Data>): SocketHandlers<Data | ViewerClient> {
    const asInner = (socket: Socket<Data | ViewerClient>): Socket<Data> => socket as Socket<Data>;
    return {
      ...inner,
      open: (socket, request) => {
        const split = this.#byViewerToken(tokenOf(request));
        if (split === undefined) {
          inner.open(asInner(socket), request);
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

const tokenOf = ({ query }: SocketRequest): string => query.get('session_token') ?? '';

/** What an agent must know when it comes, or comes back. */
function sendState({ session, agent, viewer, destination }: SplitSession): void {
  const send = (message: ServerMessage): void => {
    agent.send(message);
  };
  sendSessionFacts({ id: session.id, send }, destination);
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
