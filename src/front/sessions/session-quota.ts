// Limits the concurrent sessions of an API key, on all servers together. The slots of a crashed
// server expire.
import { ServiceError } from '../../base/errors.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { ACQUIRE_SLOT, COUNT_SLOTS, TOUCH_SLOTS } from '../store/scripts.ts';

/** How long a slot outlives its last `touch`. */
export const SLOT_TTL_MS = 30_000;

/** The slots of all API keys, in Redis. */
export class SessionQuota {
  readonly #store: RedisStore;
  /** Sessions that a key may have. SIGHUP may change it. */
  limit: number;

  constructor(store: RedisStore, sessionsPerKey: number) {
    this.#store = store;
    this.limit = sessionsPerKey;
  }

  /**
   * Takes a slot for a session. Call `touch` every few seconds (SLOT_TTL_MS), and `release` at the
   * end.
   * @throws ServiceError RATE_LIMITED; INVALID_API_KEY when the key was revoked
   */
  async acquire(keyId: string, sessionId: string): Promise<void> {
    const [granted, , waitMs] = (await this.#store.run(
      ACQUIRE_SLOT,
      [keys.apiKeyLive(keyId), keys.apiKey(keyId)],
      [sessionId, this.limit, SLOT_TTL_MS],
    )) as [number, number, number];
    if (granted === -1) {
      throw new ServiceError('INVALID_API_KEY', 'The API key that made this token was revoked.');
    }
    if (granted !== 1) {
      throw new ServiceError(
        'RATE_LIMITED',
        `This API key has ${this.limit} sessions, which is its limit.`,
        Math.min(10, waitMs / 1000),
      );
    }
  }

  /** Keeps the slots of these sessions for another SLOT_TTL_MS. */
  async touch(keyId: string, sessionIds: readonly string[]): Promise<void> {
    if (sessionIds.length > 0) {
      await this.#store.run(TOUCH_SLOTS, [keys.apiKeyLive(keyId)], [SLOT_TTL_MS, ...sessionIds]);
    }
  }

  /** Frees a slot. */
  async release(keyId: string, sessionId: string): Promise<void> {
    await this.#store.use((client) => client.zrem(keys.apiKeyLive(keyId), sessionId));
  }

  /** Sessions of the key now, on all servers. */
  async usage(keyId: string): Promise<number> {
    return (await this.#store.run(COUNT_SLOTS, [keys.apiKeyLive(keyId)], [])) as number;
  }

  /** @throws ServiceError RATE_LIMITED when another session would be refused now */
  async check(keyId: string): Promise<void> {
    if ((await this.usage(keyId)) >= this.limit) {
      throw new ServiceError(
        'RATE_LIMITED',
        `This API key has ${this.limit} sessions, which is its limit.`,
        5,
      );
    }
  }
}
