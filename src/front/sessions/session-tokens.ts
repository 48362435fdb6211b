// Session tokens in Redis: what POST /compose/token grants, and which live session holds the token.
// Each token allows one.
import { hashSecret, newSecret } from '../../base/ids.ts';
import { wallMs } from '../../base/time.ts';
import type { TraceHeaders } from '../tracing/tracing.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { CLAIM_TOKEN, RELEASE_CLAIM, TOUCH_CLAIM } from '../store/scripts.ts';

/** What a token allows: the validated fields of its request, and its owner. */
export interface SessionGrant {
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly faceId: string;
  readonly emotion: string;
  readonly model: string | null;
  readonly apiVersion: string;
  readonly sessionAggregator: string | null;
  readonly handleSilence: boolean;
  readonly maxSessionLengthSeconds: number;
  readonly maxIdleTimeSeconds: number;
  readonly startFrame: number;
  readonly audioInputFormat: 'pcm16' | 'opus';
  /** The conversation that the session holds. */
  readonly conversationId?: string;
  /** Of the request for the token, when it was traced. */
  readonly trace?: TraceHeaders | undefined;
  /** Identifies the token in history; the token cannot be derived from it. */
  readonly tokenId: string;
  /** When the token was made, Unix ms. */
  readonly issuedAtMs: number;
}

/** Answer to a claim; `ageMs` is the age of the token. */
export type ClaimResult =
  | { readonly kind: 'claimed'; readonly grant: SessionGrant; readonly ageMs: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'in-use'; readonly sessionId: string; readonly serverId: string };

/**
 * State of a claim: held; wanted by a client on another server; or lost to another session.
 */
export type ClaimState = 'held' | 'wanted' | 'lost';

/**
 * How long a claim outlives its last `touch` when its server died: three heartbeats. After that a
 * second connection may take over.
 */
export const CLAIM_TTL_MS = 9000;

/** The tokens of all servers. A token is stored under its hash. */
export class SessionTokens {
  readonly #store: RedisStore;
  readonly #ttlSeconds: number;

  constructor(store: RedisStore, ttlSeconds: number) {
    this.#store = store;
    this.#ttlSeconds = ttlSeconds;
  }

  /**
   * Makes a token of 256 random bits. It can be used until it expires, as often as its client
   * reconnects.
   */
  async create(grant: Omit<SessionGrant, 'tokenId' | 'issuedAtMs'>): Promise<string> {
    const token = newSecret();
    const hash = hashSecret(token);
    const stored: SessionGrant = {
      ...grant,
      tokenId: hash.slice(0, 32),
      issuedAtMs: Math.round(wallMs()),
    };
    await this.#store.use((client) =>
      client.set(keys.token(hash), JSON.stringify(stored), 'EX', this.#ttlSeconds),
    );
    return token;
  }

  /** What the token grants, without claiming it; undefined when unknown or expired. */
  async find(token: string): Promise<SessionGrant | undefined> {
    if (!isPlausible(token)) {
      return undefined;
    }
    const stored = await this.#store.use((client) => client.get(keys.token(hashSecret(token))));
    return stored === null ? undefined : (JSON.parse(stored) as SessionGrant);
  }

  /**
   * Makes `sessionId` on `serverId` the token's live session. Refused while another session keeps
   * its claim, unless `replaces` names that session because the caller knows that it is over. Call
   * `touch` every few seconds (CLAIM_TTL_MS), and `release` at the end.
   */
  async claim(
    token: string,
    sessionId: string,
    serverId: string,
    replaces = '',
  ): Promise<ClaimResult> {
    if (!isPlausible(token)) {
      return { kind: 'unknown' };
    }
    const hash = hashSecret(token);
    const answer = (await this.#store.run(
      CLAIM_TOKEN,
      [keys.token(hash), keys.tokenClaim(hash)],
      [sessionId, serverId, CLAIM_TTL_MS, replaces],
    )) as string[];
    if (answer[0] === 'claimed') {
      const ageMs = Math.max(0, this.#ttlSeconds * 1000 - Number(answer[2]));
      return { kind: 'claimed', grant: JSON.parse(answer[1] as string) as SessionGrant, ageMs };
    }
    if (answer[0] === 'in-use') {
      return { kind: 'in-use', sessionId: answer[1] as string, serverId: answer[2] as string };
    }
    return { kind: 'unknown' };
  }

  /** Keeps the claim for another CLAIM_TTL_MS, even if it expired meanwhile. */
  async touch(token: string, sessionId: string, serverId: string): Promise<ClaimState> {
    const answer = await this.#store.run(
      TOUCH_CLAIM,
      [keys.tokenClaim(hashSecret(token))],
      [sessionId, serverId, CLAIM_TTL_MS],
    );
    return answer === 0 ? 'lost' : answer === 2 ? 'wanted' : 'held';
  }

  /** Gives up the claim, if the session still has it. */
  async release(token: string, sessionId: string): Promise<void> {
    await this.releaseHashed(hashSecret(token), sessionId);
  }

  /** The same by the hash of the token. */
  async releaseHashed(tokenHash: string, sessionId: string): Promise<void> {
    await this.#store.run(RELEASE_CLAIM, [keys.tokenClaim(tokenHash)], [sessionId]);
  }
}

/** Whether it can be a token at all: saves Redis from hashing anything. */
const isPlausible = (token: string): boolean => token.length >= 16 && token.length <= 256;
