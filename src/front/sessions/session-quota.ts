// How many sessions an API key may have at once, counted in Redis for all servers; slots of a crashed server free themselves.
import { ServiceError } from '../../base/errors.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { ACQUIRE_SLOT, COUNT_SLOTS, TOUCH_SLOTS } from '../store/scripts.ts';

/** How long a slot outlives its last `touch`. */
export const SLOT_TTL_MS = 30_000;

export class SessionQuota {
  readonly #store: RedisStore;
  readonly #limit: number;

  constructor(store: RedisStore, sessionsPerKey: number) {
    this.#store = store;
    this.#limit = sessionsPerKey;
  }

  /** Takes a slot for a session. Call `touch` every few seconds (SLOT_TTL_MS), and `release` at the end. @throws RATE_LIMITED, and INVALID_API_KEY when the key was revoked */
  async acquire(keyId: string, sessionId: string): Promise<void> {
    const [granted, , waitMs] = (await this.#store.run(
      ACQUIRE_SLOT,
      [keys.apiKeyLive(keyId), keys.apiKey(keyId)],
      [sessionId, this.#limit, SLOT_TTL_MS],
    )) as [number, number, number];
    if (granted === -1) {
      throw new ServiceError('INVALID_API_KEY', 'The API key that made this token was revoked.');
    }
    if (granted !== 1) {
      throw new ServiceError(
        'RATE_LIMITED',
        `This API key has ${this.#limit} sessions, which is its limit.`,
        Math.min(10, waitMs / 1000),
      );
    }
  }

  async touch(keyId: string, sessionIds: readonly string[]): Promise<void> {
    if (sessionIds.length > 0) {
      await this.#store.run(TOUCH_SLOTS, [keys.apiKeyLive(keyId)], [SLOT_TTL_MS, ...sessionIds]);
    }
  }

  async release(keyId: string, sessionId: string): Promise<void> {
    await this.#store.use((client) => client.zrem(keys.apiKeyLive(keyId), sessionId));
  }

  /** Sessions the key has now, on all servers. */
  async usage(keyId: string): Promise<number> {
    return (await this.#store.run(COUNT_SLOTS, [keys.apiKeyLive(keyId)], [])) as number;
  }

  /** @throws RATE_LIMITED when another session would be refused now. */
  async check(keyId: string): Promise<void> {
    if ((await this.usage(keyId)) >= this.#limit) {
      throw new ServiceError(
        'RATE_LIMITED',
        `This API key has ${this.#limit} sessions, which is its limit.`,
        5,
      );
    }
  }
}
