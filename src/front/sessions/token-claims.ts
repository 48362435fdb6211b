// One live session per token: claims, keeps and releases the tokens of this server's sessions.
import { ServiceError } from '../../base/errors.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import { CLAIM_TTL_MS, type ClaimResult, type SessionTokens } from './session-tokens.ts';

/** A token that was claimed: its grant and its age. */
export type ClaimedToken = Extract<ClaimResult, { kind: 'claimed' }>;
type ClaimInUse = Extract<ClaimResult, { kind: 'in-use' }>;

/** The session behind a claim. */
export interface ClaimHolder {
  /** Whether the client still answers a ping within this time. */
  isAlive(timeoutMs: number): Promise<boolean>;
  /** Another connection takes the token over: end the session. */
  takenOver(): void;
}

/**
 * Clients reconnect before this server learns that their old connection is gone. So a new
 * connection asks again a few times before it is refused.
 */
const TAKEOVER_TRIES = 4;
const TAKEOVER_PAUSE_MS = 150;
/**
 * A client that answers no ping for this long is gone: its network changed, or its machine sleeps.
 */
const PONG_DEADLINE_MS = 2000;

interface Claim {
  readonly token: string;
  /** Undefined while the session is being set up. */
  holder: ClaimHolder | undefined;
}

/** The claims of all sessions of this server. */
export class TokenClaims {
  readonly #tokens: SessionTokens;
  readonly #serverId: string;
  /** By session id. */
  readonly #claims = new Map<string, Claim>();
  /** Session id → when its claim expires, of sessions that were ended for flooding. */
  readonly #expiring = new Map<string, number>();

  constructor(tokens: SessionTokens, serverId: string) {
    this.#tokens = tokens;
    this.#serverId = serverId;
  }

  /**
   * Claims the token for a session that is being set up. Call `hold` when the session runs, and
   * `release` in any case. A session whose client is gone loses its claim to the new one.
   * @throws ServiceError INVALID_SESSION_TOKEN; SESSION_IN_USE beside a session whose client
   * answers
   */
  async claim(token: string, sessionId: string): Promise<ClaimedToken> {
    // Registered before Redis is asked: a second connection must not take this claim for a lost
    // one.
    this.#claims.set(sessionId, { token, holder: undefined });
    try {
      return await this.#claim(token, sessionId);
    } catch (error) {
      this.#claims.delete(sessionId);
      throw error;
    }
  }

  /** The session runs. */
  hold(sessionId: string, holder: ClaimHolder): void {
    const claim = this.#claims.get(sessionId);
    if (claim !== undefined) {
      claim.holder = holder;
    }
  }

  /** Frees the token. Does nothing for a session without a claim. */
  async release(sessionId: string): Promise<void> {
    const claim = this.#claims.get(sessionId);
    if (claim === undefined) {
      return;
    }
    this.#claims.delete(sessionId);
    await this.#tokens.release(claim.token, sessionId);
  }

  /** Lets the claim expire instead: a client that floods could otherwise come back at once. */
  releaseAtExpiry(sessionId: string): void {
    this.#claims.delete(sessionId);
    this.#expiring.set(sessionId, monotonicMs() + CLAIM_TTL_MS);
  }

  /**
   * Keeps all claims; call it every few seconds (CLAIM_TTL_MS). Rejects when Redis does not answer.
   */
  async keep(): Promise<void> {
    const nowMs = monotonicMs();
    for (const [id, untilMs] of this.#expiring) {
      if (untilMs <= nowMs) {
        this.#expiring.delete(id);
      }
    }
    await Promise.all(
      [...this.#claims].map(async ([sessionId, { token, holder }]) => {
        if (holder !== undefined) {
          await this.#keep(sessionId, token, holder);
        }
      }),
    );
  }

  /** Ends a session whose client is gone and asks for its token on another server. */
  async #keep(sessionId: string, token: string, holder: ClaimHolder): Promise<void> {
    const state = await this.#tokens.touch(token, sessionId, this.#serverId);
    if (state === 'wanted' && !(await holder.isAlive(PONG_DEADLINE_MS))) {
      holder.takenOver();
    }
  }

  async #claim(token: string, sessionId: string): Promise<ClaimedToken> {
    let replaces = '';
    for (let attempt = 0; attempt < TAKEOVER_TRIES; attempt++) {
      const result = await this.#tokens.claim(token, sessionId, this.#serverId, replaces);
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

  /**
   * Whether the session behind a claim may be replaced: it ran on this server and is over (the
   * release of its claim was lost), or its client is gone, in which case the session is ended.
   */
  async #isDead({ sessionId, serverId }: ClaimInUse): Promise<boolean> {
    if (serverId !== this.#serverId || this.#expiring.has(sessionId)) {
      return false;
    }
    const claim = this.#claims.get(sessionId);
    if (claim === undefined) {
      return true;
    }
    const { holder } = claim;
    if (holder === undefined || (await holder.isAlive(PONG_DEADLINE_MS))) {
      return false;
    }
    holder.takenOver();
    return true;
  }
}
