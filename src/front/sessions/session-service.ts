// Admits sockets and requests as sessions of this server. The running ones are in
// session-registry.ts.
import { ServiceError } from '../../base/errors.ts';
import { hashSecret, newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { ReportedMotion } from '../../link/messages.ts';
import { assetSize } from '../../media/face-asset-size.ts';
import { pictureWeight } from '../../media/picture.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../http/socket.ts';
import { MAX_WAITING_BYTES_TOTAL } from './audio-ingress.ts';
import { BlockPool } from './byte-queue.ts';
import type { OpenConversation } from './conversation-port.ts';
import { type ClientPort, SocketClient } from './client-port.ts';
import type { Connection } from './connection.ts';
import { HeadlessSocket } from './headless-socket.ts';
import { LiveSession } from './live-session.ts';
import type { SharedBudget } from './message-budget.ts';
import { createIngress } from './create-ingress.ts';
import { sharedDecoding } from './opus-ingress.ts';
import { SocketTally, createStepMeter } from './session-meter.ts';
import type { LinkFactory, SessionServiceOptions } from './session-ports.ts';
import { SessionRegistry } from './session-registry.ts';
import { wantedMotion } from './server-messages.ts';
import type { SessionLink } from './session-link.ts';
import type { SessionGrant } from './session-tokens.ts';
import { SocketIntake } from './socket-intake.ts';
import { specOf } from './session-spec.ts';
import { type TraceHeaders, traceOf } from '../tracing/tracing.ts';
import { TokenClaims } from './token-claims.ts';

/** What a client asks for. */
interface Asked {
  readonly grant: SessionGrant;
  /** Age of the token; Infinity: there is none. */
  readonly ageMs: number;
  /** '': there is no token to be released. */
  readonly tokenHash: string;
  readonly ip: string;
  readonly reports: ReportedMotion | undefined;
  readonly trace: TraceHeaders | undefined;
  /** Takes back what was done to find this out. */
  readonly undo: () => Promise<unknown>;
  /** The session begins. @throws ServiceError when the client has left */
  readonly admit: (log: Logger) => Pick<Admission, 'client' | 'link'>;
}

/** What a session is made of, once it is admitted. */
interface Admission {
  readonly id: string;
  readonly face: SharedArrayBuffer;
  readonly conversation: OpenConversation | undefined;
  readonly openedMs: number;
  readonly log: Logger;
  readonly client: ClientPort;
  readonly link: SessionLink;
}

/**
 * The age of an older token is not part of a set-up: the client made it ahead, or uses it again.
 */
const FRESH_TOKEN_MS = 60_000;

/** One per server. */
export class SessionService {
  readonly #options: SessionServiceOptions;
  readonly #claims: TokenClaims;
  readonly #running: SessionRegistry;
  readonly #tally: SocketTally;
  readonly #sockets: SocketIntake;
  readonly #backlog = new BlockPool(MAX_WAITING_BYTES_TOTAL);
  readonly #decoding = sharedDecoding(monotonicMs());
  isDraining = false;

  constructor(options: SessionServiceOptions) {
    this.#options = options;
    this.#claims = new TokenClaims(options.tokens, options.serverId);
    this.#running = new SessionRegistry(options, this.#claims);
    this.#tally = new SocketTally(options.metrics);
    this.#sockets = new SocketIntake({
      open: (socket, request, connection) => this.#open(socket, request, connection),
      elsewhere: options.elsewhere,
      metrics: options.metrics,
      tally: this.#tally,
    });
  }

  /** What the sockets of all sessions receive and send. */
  get tally(): SocketTally {
    return this.#tally;
  }
  /** Of the messages of all sockets; those of rooms share it. */
  get messageBudget(): SharedBudget {
    return this.#sockets.messageBudget;
  }
  /** Running sessions. */
  get size(): number {
    return this.#running.size;
  }
  /** Sessions that the workers would still take; 0 while draining. */
  get room(): number {
    return this.isDraining ? 0 : this.#options.pool.room;
  }
  /** Whether a session with the built-in renderer would find a worker now. */
  get canPlace(): boolean {
    return !this.isDraining && this.#options.pool.place() !== undefined;
  }

  /** The handlers of a session WebSocket: its sessions are linked to their peers by `createLink`. */
  handlers(createLink: LinkFactory): SocketHandlers<Connection> {
    return this.#sockets.handlers(createLink);
  }

  // ── admission ──────────────────────────────────────────────────────────────────────────────────

  /**
   * Opens a session that has no socket: its speech and its end come through its link.
   * @param request of the client; its query has the session token
   * @throws ServiceError when the session is refused
   */
  async openHeadless(request: SocketRequest, createLink: LinkFactory): Promise<LiveSession> {
    const connection = this.#sockets.headless(createLink);
    return await this.#open(new HeadlessSocket(), request, connection);
  }

  /**
   * Opens a session that was asked for with an API key: no token claims it.
   * @param id a new UUID, the id of the session
   * @param createClient makes what the session tells and hears, when it is admitted
   * @throws ServiceError when the session is refused
   */
  async openFor(
    id: string,
    grant: SessionGrant,
    { ip, reports }: Pick<Asked, 'ip' | 'reports'>,
    createClient: (log: Logger) => Pick<Admission, 'client' | 'link'>,
  ): Promise<LiveSession> {
    const asked: Asked = {
      grant,
      ageMs: Infinity,
      tokenHash: '',
      ip,
      reports,
      trace: grant.trace,
      undo: () => Promise.resolve(),
      admit: createClient,
    };
    return await this.#admit(() => Promise.resolve(asked), id);
  }

  /** @throws ServiceError when the session is refused */
  async #open(
    socket: Socket<Connection>,
    request: SocketRequest,
    connection: Connection,
  ): Promise<LiveSession> {
    const session = await this.#admit(async (id) => {
      const token = request.query.get('session_token') ?? '';
      const { grant, ageMs } = await this.#claims.claim(token, id);
      socket.trust();
      return {
        grant: connection.isHeadless ? { ...grant, audioInputFormat: 'pcm16' } : grant,
        ageMs,
        tokenHash: hashSecret(token),
        ip: request.ip,
        reports: wantedMotion(request.query),
        trace: grant.trace ?? traceOf(request),
        undo: () => this.#claims.release(id),
        admit: (log) => {
          if (connection.isClosed) {
            throw new ServiceError('INVALID_SESSION_TOKEN', 'the client left');
          }
          const destination = `${this.#options.host}:${request.localPort}`;
          return {
            client: new SocketClient(socket, connection.write, this.#tally),
            link: connection.createLink(id, request, destination, log),
          };
        },
      };
    });
    this.#claims.hold(session.id, {
      isAlive: (timeoutMs) => socket.isAlive(timeoutMs),
      takenOver: () => {
        session.end('taken_over');
      },
    });
    connection.session = session;
    for (const { message, isBinary } of connection.early.take()) {
      session.message(message, isBinary);
    }
    return session;
  }

  /**
   * @param ask finds out what is asked for; called with the id of the session
   * @throws ServiceError when the session is refused
   */
  async #admit(ask: (sessionId: string) => Promise<Asked>, id = newUuid()): Promise<LiveSession> {
    const openedMs = monotonicMs();
    const log = this.#options.log.child({ session: id });
    const { quota } = this.#options;
    const undo: (() => Promise<unknown>)[] = [];
    try {
      if (this.isDraining) {
        throw new ServiceError('SERVER_DRAINING');
      }
      const asked = await ask(id);
      const { grant } = asked;
      undo.push(asked.undo);
      await quota.acquire(grant.keyId, id);
      undo.push(() => quota.release(grant.keyId, id));
      const face = await this.#options.faces.load(grant.ownerId, grant.faceId);
      const conversation = await this.#openConversation(grant);
      undo.push(async () => conversation?.end('error'));
      return this.#start(asked, { id, face, conversation, openedMs, log });
    } catch (error) {
      if (!(error instanceof ServiceError)) {
        log.error({ err: error }, 'a session could not be opened');
      }
      await Promise.allSettled(undo.map((step) => step()));
      throw error;
    }
  }

  /** @throws ServiceError when the conversation of a token is over, or there is no room for it */
  async #openConversation({ conversationId }: SessionGrant): Promise<OpenConversation | undefined> {
    if (conversationId === undefined) {
      return undefined;
    }
    const { conversations } = this.#options;
    if (conversations === undefined) {
      throw new ServiceError('CONVERSATIONS_UNAVAILABLE');
    }
    if (!this.canPlace) {
      throw new ServiceError('SERVER_OVERLOADED'); // another server can still open it
    }
    return await conversations.open(conversationId);
  }

  /**
   * Places an admitted session on a worker.
   * @throws ServiceError SERVER_OVERLOADED when none has room
   */
  #start(asked: Asked, admission: Omit<Admission, 'client' | 'link'>): LiveSession {
    const { id, face, conversation, openedMs, log } = admission;
    const { grant, ageMs, ip, reports, trace } = asked;
    const { pool, metrics, journal } = this.#options;
    // A token may come from a server that has other renderers: its model is only a hint.
    const renderer =
      grant.model !== null && pool.renderers.includes(grant.model) ? grant.model : 'rig';
    const size = assetSize(face);
    const worker = pool.place(renderer, pictureWeight(size));
    if (worker === undefined) {
      throw new ServiceError('SERVER_OVERLOADED');
    }
    const { client, link } = asked.admit(log);
    const kind = conversation === undefined ? link.kind : 'auto';
    const requestedMs = openedMs - (ageMs <= FRESH_TOKEN_MS ? ageMs : 0);
    const traced = { id, kind, faceId: grant.faceId, worker: worker.index };
    const span = this.#options.tracing?.session(traced, trace, requestedMs);
    const step = createStepMeter(metrics, id, span);
    const session = new LiveSession({
      id,
      worker,
      log,
      openedMs,
      client,
      conversation,
      ingress: createIngress(grant, conversation, openedMs, this.#backlog, this.#decoding),
      link,
      tally: this.#tally,
      step,
      span,
      loadFace: async (faceId) => {
        if (renderer !== 'rig') {
          throw new ServiceError(
            'CONFLICT',
            'A network of your own keeps the face of its session.',
          );
        }
        const other = await this.#options.faces.load(grant.ownerId, faceId);
        const { width, height } = assetSize(other);
        if (width !== size.width || height !== size.height) {
          throw new ServiceError(
            'CONFLICT',
            `The pictures of this face are ${width}x${height}, and those of the session ` +
              `${size.width}x${size.height}. Make the face again in that size.`,
          );
        }
        return other;
      },
      spec: specOf(grant, face, renderer, reports),
      onEnd: (ended, reason) => {
        this.#running.finish(ended, reason, log);
      },
    });
    this.#running.add({ session, grant, openedMs, kind });
    void journal.begin({
      id,
      ownerId: grant.ownerId,
      keyId: grant.keyId,
      tokenId: grant.tokenId,
      tokenHash: asked.tokenHash,
      faceId: grant.faceId,
      kind,
      aggregator: grant.sessionAggregator,
      keyName: grant.keyName,
      startMs: wallMs(),
    });
    metrics.counter('mouthpiece_sessions_started_total', { kind }).add();
    if (ageMs <= FRESH_TOKEN_MS) {
      step('socket', requestedMs, openedMs);
    }
    log.info(
      { face: grant.faceId, worker: worker.index, key: grant.keyName, ip },
      'session opened',
    );
    return session;
  }

  // ── running sessions ───────────────────────────────────────────────────────────────────────────

  /** A live session of this server. @param ownerId undefined: of anybody */
  find(ownerId: string | undefined, sessionId: string): LiveSession | undefined {
    return this.#running.find(ownerId, sessionId);
  }

  /**
   * Refuses new sessions from now on and tells the running ones. Those that are not over after
   * `drainMs`, or once `isHurried` says so, are ended.
   */
  async drain(drainMs: number, isHurried: () => boolean): Promise<void> {
    this.isDraining = true;
    await this.#running.drain(drainMs, isHurried);
  }
}
