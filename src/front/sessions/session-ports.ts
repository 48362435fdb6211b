// The other parts of the server as the session service uses them: faces, history, placement.
import type { Metrics } from '../../metrics/metrics.ts';
import type { WorkerHandle } from '../placement/worker-handle.ts';
import type { WorkerPool } from '../placement/worker-pool.ts';
import type { Logger } from '../../base/log.ts';
import type { SessionKind } from '../../base/session-kinds.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { Socket, SocketRequest } from '../http/socket.ts';
import type { ConversationSource } from './conversation-port.ts';
import type { MessageWriter, RateMessage } from './server-messages.ts';
import type { SessionQuota } from './session-quota.ts';
import type { SessionTokens } from './session-tokens.ts';
import type { SessionLink } from './session-link.ts';

/** The worker of a session, as far as the session uses it. */
export type SessionWorker = Pick<WorkerHandle, 'index' | 'attach' | 'detach' | 'post'>;

/** The connection to the client. Both methods may be called after its close. */
export interface ClientSocket {
  send(text: string): boolean;
  end(code?: number, reason?: string): void;
}

/**
 * Waiting for the offer, for the answer of the worker, for ICE and DTLS; with media; over. A session
 * that outlives its peers waits again when it has lost one.
 */
export type SessionPhase = 'waiting' | 'answering' | 'connecting' | 'live' | 'over';

/** Makes the link of a session whose socket was admitted. */
export type LinkFactory = (
  sessionId: string,
  request: SocketRequest,
  destination: string,
  log: Logger,
) => SessionLink;

/** What takes the messages of a socket: a session here, or one on another server. */
export interface SocketSession {
  /** @param message valid only during the call */
  message(message: ArrayBuffer, isBinary: boolean): void;
  /** Tells the client that some of its messages are dropped, at most once a second. */
  tellRate(message: RateMessage, nowMs: number): void;
  end(reason: 'rate_limited'): void;
  /** The socket closed. */
  closed(): void;
}

/** The other servers, which take sessions for which there is no room here. */
export interface Elsewhere {
  /**
   * Opens a session on another server.
   * @param write the form in which the client wants its messages
   * @returns undefined when none takes it: the refusal here stands
   * @throws ServiceError when its token is not valid
   */
  open(
    socket: Socket,
    request: SocketRequest,
    write: MessageWriter,
  ): Promise<SocketSession | undefined>;

  /**
   * Opens one connection to a session that another server runs already, and that outlives it.
   * @returns undefined when no other server runs it
   * @throws ServiceError NODE_UNREACHABLE, STORE_UNAVAILABLE
   */
  openLeg(
    sessionId: string,
    socket: Socket,
    request: SocketRequest,
    write: MessageWriter,
  ): Promise<SocketSession | undefined>;
}

/** Provides face assets. */
export interface FaceSource {
  /** @throws ServiceError when the face does not exist or is not ready. */
  load(ownerId: string, faceId: string): Promise<SharedArrayBuffer>;
}

/**
 * Writes the history of live sessions. Neither method rejects: the journal bridges an outage of
 * Redis.
 */
export interface SessionJournal {
  begin(start: {
    readonly id: string;
    readonly ownerId: string;
    readonly keyId: string;
    readonly tokenId: string;
    /** The token is stored under it. */
    readonly tokenHash: string;
    readonly faceId: string;
    readonly kind: SessionKind;
    readonly aggregator: string | null;
    readonly keyName: string;
    /** Unix milliseconds. */
    readonly startMs: number;
  }): Promise<void>;
  end(sessionId: string): Promise<void>;
}

/** Places sessions on workers: the worker pool. */
export interface Placement extends Pick<WorkerPool, 'room' | 'renderers'> {
  /** The worker for the next session; undefined: none has room. */
  place(renderer?: string, weight?: number): SessionWorker | undefined;
}

/** What the session service is built from. */
export interface SessionServiceOptions {
  readonly tokens: SessionTokens;
  readonly quota: Pick<SessionQuota, 'acquire' | 'touch' | 'release'>;
  readonly faces: FaceSource;
  readonly journal: SessionJournal;
  readonly pool: Placement;
  /** Conversations; undefined: sessions with one are refused. */
  readonly conversations: ConversationSource | undefined;
  /** Undefined: a session for which there is no room is refused. */
  readonly elsewhere: Elsewhere | undefined;
  readonly metrics: Metrics;
  /** Undefined: sessions are not traced. */
  readonly tracing?: Tracing | undefined;
  readonly log: Logger;
  /** Names this server, across restarts. */
  readonly serverId: string;
  /**
   * Host of this server, which clients are told with its port (the wire protocol's `destination`).
   */
  readonly host: string;
}
