// All live sessions of this server: from a socket with a token to a placed session, their heartbeats, their records, and the drain.
import { every } from '../../base/guard.ts';
import { ServiceError, toWireError } from '../../base/errors.ts';
import { newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { type EndReason, SESSION_ENDS } from '../../base/session-ends.ts';
import { monotonicMs, sleep, wallMs } from '../../base/time.ts';
import type { SessionStatsReport } from '../../link/messages.ts';
import { EMOTIONS } from '../../media/articulation.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../http/socket.ts';
import type { WorkerPool } from '../placement/worker-pool.ts';
import { AudioIngress, MAX_WAITING_BYTES_TOTAL } from './audio-ingress.ts';
import { BlockPool } from './byte-queue.ts';
import { LiveSession } from './live-session.ts';
import { MessageBudget, SharedBudget, costOf } from './message-budget.ts';
import { OpusInlet } from './opus-inlet.ts';
import { SocketTally, createStepMeter } from './session-meter.ts';
import type { SessionQuota } from './session-quota.ts';
import {
  CLAIM_TTL_MS,
  type ClaimResult,
  type SessionGrant,
  type SessionTokens,
} from './session-tokens.ts';
import { isDone } from './wire-protocol.ts';

/** Where faces come from. */
export interface FaceSource {
  /** @throws ServiceError when the face does not exist or is not ready. */
  load(ownerId: string, faceId: string): Promise<SharedArrayBuffer>;
}

/** Writes the history of live sessions. Neither method rejects: the journal bridges an outage of the database. */
export interface SessionJournal {
  begin(start: {
    readonly id: string;
    readonly ownerId: string;
    readonly tokenId: string;
    readonly faceId: string;
    readonly kind: 'p2p';
    readonly aggregator: string | null;
    readonly keyName: string;
    /** Unix milliseconds. */
    readonly startMs: number;
  }): Promise<void>;
  end(sessionId: string): Promise<void>;
}

export interface SessionServiceOptions {
  readonly tokens: SessionTokens;
  readonly quota: SessionQuota;
  readonly faces: FaceSource;
  readonly journal: SessionJournal;
  readonly pool: WorkerPool;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly serverId: string;
  /** Host of this server, which clients are told with its port (the wire protocol's `destination`). */
  readonly host: string;
}

interface Entry {
  readonly session: LiveSession;
  readonly socket: Socket<Connection>;
  readonly grant: SessionGrant;
  readonly token: string;
  readonly startedMs: number;
}

type ClaimedToken = Extract<ClaimResult, { kind: 'claimed' }>;

/** What arrives while the token is being checked waits here: a few milliseconds, so little is allowed. */
const MAX_EARLY_MESSAGES = 256;
const MAX_EARLY_BYTES = 4 << 20;
const MAX_EARLY_BYTES_TOTAL = 64 << 20;
/** One small script for each session: a thousand sessions cost Redis 333 calls a second. */
const HEARTBEAT_MS = 3000;
/** A connection made while the one before it is being torn down: worth a moment, since clients reconnect faster than we are told. */
const TAKEOVER_TRIES = 4;
const FRESH_TOKEN_MS = 60_000;
const TAKEOVER_PAUSE_MS = 150;
/** A client whose socket answers no ping for this long is gone: its network changed, or its machine sleeps. */
const PONG_DEADLINE_MS = 2000;

interface Connection {
  early: { message: ArrayBuffer; isBinary: boolean }[] | undefined;
  earlyBytes: number;
  session: LiveSession | undefined;
  isClosed: boolean;
  readonly budget: MessageBudget;
}

export class SessionService {
  readonly #entries = new Map<string, Entry>();
  /** Sessions on their way into `entries`: they may hold a claim already. */
  readonly #admitting = new Set<string>();
  readonly #options: SessionServiceOptions;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #tally: SocketTally;
  readonly #budget = new SharedBudget(monotonicMs());
  readonly #backlog = new BlockPool(MAX_WAITING_BYTES_TOTAL);
  /** Bytes of early messages, of all connections together. */
  #earlyBytes = 0;
  /** Sessions that were ended for flooding, and until when their claims stand. */
  readonly #flooded = new Map<string, number>();
  isDraining = false;

  constructor(options: SessionServiceOptions) {
    this.#options = options;
    this.#tally = new SocketTally(options.metrics);
    this.#heartbeat = every(HEARTBEAT_MS, 'the heartbeat of sessions', () => {
      this.#beat().catch((error: unknown) => {
        options.log.warn({ err: error }, 'session heartbeat failed');
      });
    }).unref();
    options.metrics.onScrape(() => {
      this.#publish();
    });
  }

  get size(): number {
    return this.#entries.size;
  }
  /** Sessions that may still come. */
  get room(): number {
    return this.isDraining ? 0 : this.#options.pool.room;
  }
  get canPlace(): boolean {
    return !this.isDraining && this.#options.pool.place() !== undefined;
  }

  // ── sockets ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The handlers of WSS /compose/webrtc/p2p. */
  handlers(): SocketHandlers<Connection> {
    return {
      open: (socket, request) => {
        const connection: Connection = {
          early: [],
          earlyBytes: 0,
          session: undefined,
          isClosed: false,
          budget: new MessageBudget(this.#budget, monotonicMs()),
        };
        socket.data = connection;
        void this.#admit(socket, request, connection);
      },
      message: (socket, message, isBinary) => {
        this.#receive(socket, socket.data!, message, isBinary);
      },
      close: (socket) => {
        const connection = socket.data!;
        connection.isClosed = true;
        connection.budget.close();
        this.#takeEarly(connection);
        connection.session?.closed();
      },
    };
  }

  #receive(
    socket: Socket<Connection>,
    connection: Connection,
    message: ArrayBuffer,
    isBinary: boolean,
  ): void {
    const { session, early } = connection;
    const bytes = message.byteLength;
    const nowMs = monotonicMs();
    const verdict = connection.budget.take(costOf(bytes, isBinary), nowMs);
    if (verdict !== 'taken') {
      this.#tally.dropped(verdict, bytes);
      if (session === undefined) {
        if (early !== undefined) {
          this.#refuse(socket, connection, new ServiceError('RATE_LIMITED'));
        }
      } else if (verdict === 'exhausted') {
        session.end('rate_limited');
      } else if (isDone(message)) {
        session.message(message, isBinary);
      } else {
        session.tellRate(`too_many_messages ${verdict}`, nowMs);
      }
    } else if (session !== undefined) {
      session.message(message, isBinary);
    } else if (early !== undefined) {
      if (
        early.length >= MAX_EARLY_MESSAGES ||
        connection.earlyBytes + bytes > MAX_EARLY_BYTES ||
        this.#earlyBytes + bytes > MAX_EARLY_BYTES_TOTAL
      ) {
        this.#refuse(socket, connection, new ServiceError('RATE_LIMITED'));
        return;
      }
      connection.earlyBytes += bytes;
      this.#earlyBytes += bytes;
      early.push({ message: message.slice(0), isBinary });
    }
  }

  /** What came before the session was there; afterwards nothing more is kept. */
  #takeEarly(
    connection: Connection,
  ): { readonly message: ArrayBuffer; readonly isBinary: boolean }[] {
    const early = connection.early ?? [];
    connection.early = undefined;
    this.#earlyBytes -= connection.earlyBytes;
    connection.earlyBytes = 0;
    return early;
  }

  /** A bad token is told on the open socket: a refused handshake makes clients retry ten times. */
  #refuse(socket: Socket<Connection>, connection: Connection, error: unknown): void {
    const { code } = toWireError(error);
    this.#takeEarly(connection);
    if (code === 'INVALID_SESSION_TOKEN') {
      socket.distrust();
    }
    this.#options.metrics.counter('mouthpiece_sessions_refused_total', { code }).add();
    socket.send(`ERROR ${code}`);
    socket.end(1000, code);
  }

  async #admit(
    socket: Socket<Connection>,
    request: SocketRequest,
    connection: Connection,
  ): Promise<void> {
    const openedMs = monotonicMs();
    const id = newUuid();
    const log = this.#options.log.child({ session: id });
    const undo: (() => Promise<unknown>)[] = [];
    this.#admitting.add(id);
    try {
      if (this.isDraining) {
        throw new ServiceError('SERVER_DRAINING');
      }
      const token = request.query.get('session_token') ?? '';
      const { grant, ageMs } = await this.#claim(token, id);
      undo.push(() => this.#options.tokens.release(token, id));
      socket.trust();
      await this.#options.quota.acquire(grant.keyId, id);
      undo.push(() => this.#options.quota.release(grant.keyId, id));
      const face = await this.#options.faces.load(grant.ownerId, grant.faceId);
      if (connection.isClosed) {
        throw new ServiceError('INVALID_SESSION_TOKEN', 'the client left');
      }
      // The token may come from a server that has other renderers: its model is a hint here too.
      const renderer =
        grant.model !== null && this.#options.pool.renderers.includes(grant.model)
          ? grant.model
          : 'rig';
      const worker = this.#options.pool.place(renderer);
      if (worker === undefined) {
        throw new ServiceError('SERVER_OVERLOADED');
      }
      const step = createStepMeter(this.#options.metrics, id);
      const session = new LiveSession({
        id,
        worker,
        log,
        openedMs,
        socket: {
          send: (text) => socket.send(text),
          end: (code, reason) => {
            socket.end(code, reason);
          },
        },
        inlet:
          grant.audioInputFormat === 'opus'
            ? new OpusInlet(openedMs, this.#backlog)
            : new AudioIngress(this.#backlog),
        destination: `${this.#options.host}:${request.localPort}`,
        tally: this.#tally,
        step,
        spec: {
          face: { faceId: grant.faceId, bytes: face },
          emotion: Math.max(0, EMOTIONS.indexOf(grant.emotion as (typeof EMOTIONS)[number])),
          renderer,
          handleSilence: grant.handleSilence,
          startFrame: grant.startFrame,
          maxIdleMs: grant.maxIdleTimeSeconds * 1000,
          maxLengthMs: grant.maxSessionLengthSeconds * 1000,
        },
        onEnd: (ended, reason) => {
          this.#finish(ended, reason, log);
        },
      });
      this.#entries.set(id, { session, socket, grant, token, startedMs: openedMs });
      void this.#options.journal.begin({
        id,
        ownerId: grant.ownerId,
        tokenId: grant.tokenId,
        faceId: grant.faceId,
        kind: 'p2p',
        aggregator: grant.sessionAggregator,
        keyName: grant.keyName,
        startMs: wallMs(),
      });
      this.#options.metrics.counter('mouthpiece_sessions_started_total', { kind: 'p2p' }).add();
      // Made ahead and kept, a token says nothing of how long a set-up takes; nor does one on its second session.
      if (ageMs <= FRESH_TOKEN_MS) {
        step('socket', ageMs / 1000);
      }
      log.info(
        { face: grant.faceId, worker: worker.index, key: grant.keyName, ip: request.ip },
        'session opened',
      );
      connection.session = session;
      for (const { message, isBinary } of this.#takeEarly(connection)) {
        session.message(message, isBinary);
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) {
        log.error({ err: error }, 'a session could not be opened');
      }
      await Promise.allSettled(undo.map((step) => step()));
      if (!connection.isClosed) {
        this.#refuse(socket, connection, error);
      }
    } finally {
      this.#admitting.delete(id);
    }
  }

  /** One live session per token: a dead one is taken over from, beside a live one the newcomer is refused. */
  async #claim(token: string, sessionId: string): Promise<ClaimedToken> {
    let replaces = '';
    for (let attempt = 0; attempt < TAKEOVER_TRIES; attempt++) {
      const result = await this.#options.tokens.claim(
        token,
        sessionId,
        this.#options.serverId,
        replaces,
      );
      if (result.kind === 'claimed') {
        return result;
      }
      if (result.kind === 'unknown') {
        throw new ServiceError('INVALID_SESSION_TOKEN');
      }
      replaces = (await this.#isDead(result)) ? result.sessionId : '';
      if (replaces === '') {
        await sleep(TAKEOVER_PAUSE_MS);
      }
    }
    throw new ServiceError('SESSION_IN_USE');
  }

  /** Whether a session of this very server is no more (its release was lost, say), or its client is gone, in which case it is ended. */
  async #isDead({
    sessionId,
    serverId,
  }: {
    readonly sessionId: string;
    readonly serverId: string;
  }): Promise<boolean> {
    if (
      serverId !== this.#options.serverId ||
      this.#admitting.has(sessionId) ||
      this.#flooded.has(sessionId)
    ) {
      return false;
    }
    const entry = this.#entries.get(sessionId);
    if (entry !== undefined && (await entry.socket.isAlive(PONG_DEADLINE_MS))) {
      return false;
    }
    entry?.session.end('taken_over');
    return true;
  }

  // ── life and end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #finish(session: LiveSession, reason: EndReason, log: Logger): void {
    const entry = this.#entries.get(session.id);
    if (entry === undefined) {
      return;
    }
    this.#entries.delete(session.id);
    const totalSeconds = (monotonicMs() - entry.startedMs) / 1000;
    const { grant } = entry;
    log.info(
      {
        reason,
        seconds: Number(totalSeconds.toFixed(1)),
        ignoredMessages: session.ignoredMessages,
      },
      'session ended',
    );
    void this.#options.journal.end(session.id);
    this.#options.metrics.counter('mouthpiece_sessions_ended_total', { kind: 'p2p', reason }).add();
    const { errorCode } = SESSION_ENDS[reason];
    if (errorCode !== undefined) {
      this.#options.metrics.counter('mouthpiece_errors_total', { code: errorCode }).add();
    }
    this.#options.metrics
      .histogram('mouthpiece_session_duration_seconds', { kind: 'p2p' })
      .observe(totalSeconds);
    if (reason === 'rate_limited') {
      // Claim and slot stay until they expire: otherwise whoever floods comes back at once, and does it again.
      this.#flooded.set(session.id, monotonicMs() + CLAIM_TTL_MS);
      return;
    }
    Promise.all([
      this.#options.tokens.release(entry.token, session.id),
      this.#options.quota.release(grant.keyId, session.id),
    ]).catch((error: unknown) => {
      log.warn(
        { err: error },
        'claim and slot will expire by themselves: the database did not answer',
      );
    });
  }

  async #beat(): Promise<void> {
    const nowMs = monotonicMs();
    for (const [id, untilMs] of this.#flooded) {
      if (untilMs <= nowMs) {
        this.#flooded.delete(id);
      }
    }
    const byKey = Map.groupBy(this.#entries.values(), (entry) => entry.grant.keyId);
    await Promise.all([
      ...[...byKey].map(([keyId, entries]) =>
        this.#options.quota.touch(
          keyId,
          entries.map((entry) => entry.session.id),
        ),
      ),
      ...[...this.#entries.values()].map((entry) => this.#keepClaim(entry)),
    ]);
  }

  /** A client that came back on another server, since this one lost it, need not wait until its old socket is given up. */
  async #keepClaim({ token, session, socket }: Entry): Promise<void> {
    if (
      (await this.#options.tokens.touch(token, session.id, this.#options.serverId)) === 'wanted' &&
      !(await socket.isAlive(PONG_DEADLINE_MS))
    ) {
      session.end('taken_over');
    }
  }

  #publish(): void {
    const { metrics } = this.#options;
    const counts = { connecting: 0, idle: 0, speaking: 0 };
    for (const { session } of this.#entries.values()) {
      if (session.phase !== 'live') {
        counts.connecting++;
      } else if (session.isSpeaking) {
        counts.speaking++;
      } else {
        counts.idle++;
      }
    }
    for (const state of ['connecting', 'idle', 'speaking'] as const) {
      metrics.gauge('mouthpiece_sessions', { kind: 'p2p', state }).set(counts[state]);
    }
  }

  /** @returns the session's own ledger; null when it does not exist or is not this owner's. */
  async stats(ownerId: string, sessionId: string): Promise<SessionStatsReport | undefined> {
    const entry = this.#entries.get(sessionId);
    return entry === undefined || entry.grant.ownerId !== ownerId
      ? undefined
      : await entry.session.stats();
  }

  /** No new sessions from now on; running ones are told, may finish, and at the deadline are stopped. */
  async drain(drainMs: number, isHurried: () => boolean): Promise<void> {
    this.isDraining = true;
    for (const { session } of this.#entries.values()) {
      session.send(`CLOSING server_draining ${Math.round(drainMs / 1000)}`);
    }
    const deadlineMs = monotonicMs() + drainMs;
    while (this.#entries.size > 0 && monotonicMs() < deadlineMs && !isHurried()) {
      await sleep(50);
    }
    for (const { session } of [...this.#entries.values()]) {
      session.end('server_stopped');
    }
    clearInterval(this.#heartbeat);
  }
}
