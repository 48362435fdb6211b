// Session tokens: what POST /compose/token grants, kept under the token's hash, and who holds the one live session it allows.
import { hashSecret, newSecret } from '../../base/ids.ts';
import { wallMs } from '../../base/time.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { CLAIM_TOKEN, RELEASE_CLAIM, TOUCH_CLAIM } from '../store/scripts.ts';

/** What a token allows: the validated fields of the request that made it, and whose it is. */
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
  /** Identifies the token in history without giving it away. */
  readonly tokenId: string;
  /** When the token was made, Unix ms. */
  readonly issuedAtMs: number;
}

export type ClaimResult =
  | { readonly kind: 'claimed'; readonly grant: SessionGrant; readonly ageMs: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'in-use'; readonly sessionId: string; readonly serverId: string };

/** What a holder learns when it touches its claim: it stands, a client asks for it on another server, or another session took over. */
export type ClaimState = 'held' | 'wanted' | 'lost';

/** How long a claim outlives its last `touch`, as of a server that died: three beats. After that a second connection takes over. */
export const CLAIM_TTL_MS = 9000;

export class SessionTokens {
  readonly #store: RedisStore;
  readonly #ttlSeconds: number;

  constructor(store: RedisStore, ttlSeconds: number) {
    this.#store = store;
    this.#ttlSeconds = ttlSeconds;
  }

  /** Makes a token of 256 random bits that works until it expires, as often as its holder reconnects. */
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
    if (!plausible(token)) {
      return undefined;
    }
    const stored = await this.#store.use((client) => client.get(keys.token(hashSecret(token))));
    return stored === null ? undefined : (JSON.parse(stored) as SessionGrant);
  }

  /**
   * Makes `sessionId` on `serverId` the token's live session. Refused while another one touches its claim; `replaces` names one that the
   * caller knows to be dead. Call `touch` every few seconds (CLAIM_TTL_MS), and `release` at the end.
   */
  async claim(
    token: string,
    sessionId: string,
    serverId: string,
    replaces = '',
  ): Promise<ClaimResult> {
    if (!plausible(token)) {
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

  /** Keeps the claim for another CLAIM_TTL_MS, also one that had expired meanwhile. */
  async touch(token: string, sessionId: string, serverId: string): Promise<ClaimState> {
    const answer = await this.#store.run(
      TOUCH_CLAIM,
      [keys.tokenClaim(hashSecret(token))],
      [sessionId, serverId, CLAIM_TTL_MS],
    );
    return answer === 0 ? 'lost' : answer === 2 ? 'wanted' : 'held';
  }

  async release(token: string, sessionId: string): Promise<void> {
    await this.#store.run(RELEASE_CLAIM, [keys.tokenClaim(hashSecret(token))], [sessionId]);
  }
}

const plausible = (token: string): boolean => token.length >= 16 && token.length <= 256;
