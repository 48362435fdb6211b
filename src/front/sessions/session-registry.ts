// The running sessions of this server: their claims and quota slots while they run, what is counted
// and released at their ends, and the drain before a stop.
import { every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { type EndReason, SESSION_ENDS } from '../../base/session-ends.ts';
import type { SessionKind } from '../../base/session-kinds.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import type { LiveSession } from './live-session.ts';
import { createSessionGauges } from './session-meter.ts';
import type { SessionServiceOptions } from './session-ports.ts';
import type { SessionGrant } from './session-tokens.ts';
import type { TokenClaims } from './token-claims.ts';

/** A running session, with what its end needs. */
export interface RunningSession {
  readonly session: LiveSession;
  readonly grant: SessionGrant;
  /** When it was asked for, monotonic. */
  readonly openedMs: number;
  readonly kind: SessionKind;
}

/**
 * One small script per session and heartbeat: a thousand sessions cost Redis 333 calls a second.
 */
const HEARTBEAT_MS = 3000;
/** How often a drain looks whether all sessions are over. */
const DRAIN_POLL_MS = 50;

/** One per server. */
export class SessionRegistry {
  readonly #running = new Map<string, RunningSession>();
  readonly #options: Pick<SessionServiceOptions, 'quota' | 'journal' | 'metrics' | 'log'>;
  readonly #claims: TokenClaims;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(
    options: Pick<SessionServiceOptions, 'quota' | 'journal' | 'metrics' | 'log'>,
    claims: TokenClaims,
  ) {
    this.#options = options;
    this.#claims = claims;
    this.#heartbeat = every(HEARTBEAT_MS, 'the heartbeat of sessions', () => {
      this.#keepAll().catch((error: unknown) => {
        options.log.warn({ err: error }, 'session heartbeat failed');
      });
    }).unref();
    const setGauges = createSessionGauges(options.metrics);
    options.metrics.onScrape(() => {
      setGauges(this.#running.values());
    });
  }

  get size(): number {
    return this.#running.size;
  }

  add(running: RunningSession): void {
    this.#running.set(running.session.id, running);
  }

  /** @param ownerId undefined: of anybody */
  find(ownerId: string | undefined, sessionId: string): LiveSession | undefined {
    const running = this.#running.get(sessionId);
    return running && (ownerId ?? running.grant.ownerId) === running.grant.ownerId
      ? running.session
      : undefined;
  }

  /** Removes a session that is over: counts it, and releases its claim and its quota slot. */
  finish(session: LiveSession, reason: EndReason, log: Logger): void {
    const running = this.#running.get(session.id);
    if (running === undefined) {
      return;
    }
    this.#running.delete(session.id);
    const { metrics, journal, quota } = this.#options;
    const { kind, openedMs, grant } = running;
    const totalSeconds = (monotonicMs() - openedMs) / 1000;
    const seconds = Number(totalSeconds.toFixed(1));
    log.info({ reason, seconds, ignoredMessages: session.ignoredMessages }, 'session ended');
    void journal.end(session.id);
    metrics.counter('mouthpiece_sessions_ended_total', { kind, reason }).add();
    const { errorCode } = SESSION_ENDS[reason];
    if (errorCode !== undefined) {
      metrics.counter('mouthpiece_errors_total', { code: errorCode }).add();
    }
    metrics.histogram('mouthpiece_session_duration_seconds', { kind }).observe(totalSeconds);
    if (reason === 'rate_limited') {
      // Claim and quota slot stay until they expire, so that a client that floods cannot come back
      // at once.
      this.#claims.releaseAtExpiry(session.id);
      return;
    }
    Promise.all([this.#claims.release(session.id), quota.release(grant.keyId, session.id)]).catch(
      (error: unknown) => {
        log.warn(
          { err: error },
          'claim and slot will expire by themselves: the database did not answer',
        );
      },
    );
  }

  /** Keeps the claims and quota slots of all running sessions. */
  async #keepAll(): Promise<void> {
    const byKey = Map.groupBy(this.#running.values(), ({ grant }) => grant.keyId);
    await Promise.all([
      ...[...byKey].map(([keyId, sessions]) =>
        this.#options.quota.touch(
          keyId,
          sessions.map(({ session }) => session.id),
        ),
      ),
      this.#claims.keep(),
    ]);
  }

  /**
   * Tells the running sessions of the stop. Those that are not over after `drainMs`, or once
   * `isHurried` says so, are ended.
   */
  async drain(drainMs: number, isHurried: () => boolean): Promise<void> {
    const seconds = Math.round(drainMs / 1000);
    for (const { session } of this.#running.values()) {
      session.send({ type: 'closing', reason: 'server_draining', seconds });
    }
    const deadlineMs = monotonicMs() + drainMs;
    while (this.#running.size > 0 && monotonicMs() < deadlineMs && !isHurried()) {
      await sleep(DRAIN_POLL_MS);
    }
    for (const { session } of [...this.#running.values()]) {
      session.end('server_stopped');
    }
    clearInterval(this.#heartbeat);
  }
}
