// API keys: made once and shown once, stored as hashes, looked up and counted in one step, revoked at once.
import { ServiceError } from '../../base/errors.ts';
import { constantTimeEqual, hashSecret, newSecret } from '../../base/ids.ts';
import { wallMs } from '../../base/time.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { AUTHENTICATE, CREATE_KEY } from '../store/scripts.ts';

export interface ApiKeyInfo {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
}

/** Digits of the hash by which a key is found; the whole hash is then compared in constant time. */
const ID_DIGITS = 16;
const MAX_KEY_LENGTH = 512;

export class ApiKeys {
  readonly #store: RedisStore;
  readonly #requestsPerSecond: number;

  constructor(store: RedisStore, requestsPerSecond: number) {
    this.#store = store;
    this.#requestsPerSecond = requestsPerSecond;
  }

  /** Makes a key. This is the only time its text is known. */
  async create(ownerId: string, name: string): Promise<{ key: string; id: string }> {
    const key = newSecret('mp_');
    const { id } = await this.register(key, ownerId, name);
    return { key, id };
  }

  /** Stores a key that somebody chose. `created` is false when it is there already. */
  async register(
    key: string,
    ownerId: string,
    name: string,
  ): Promise<{ id: string; created: boolean }> {
    const hash = hashSecret(key);
    const id = hash.slice(0, ID_DIGITS);
    const created = await this.#store.run(
      CREATE_KEY,
      [keys.apiKey(id)],
      ['hash', hash, 'ownerId', ownerId, 'name', name, 'createdAt', wallMs()],
    );
    await this.#store.use((client) => client.sadd(keys.allApiKeys(), id));
    return { id, created: created === 1 };
  }

  /** @throws INVALID_API_KEY, RATE_LIMITED, STORE_UNAVAILABLE */
  async authenticate(key: string): Promise<{ ownerId: string; keyId: string; keyName: string }> {
    if (!key || key.length > MAX_KEY_LENGTH) {
      throw new ServiceError('INVALID_API_KEY');
    }
    const hash = hashSecret(key);
    const id = hash.slice(0, ID_DIGITS);
    const rate = this.#requestsPerSecond;
    const [stored, ownerId, name, revokedAt, waitMs] = (await this.#store.run(
      AUTHENTICATE,
      [keys.apiKey(id), keys.apiKeyBucket(id)],
      [rate, Math.max(2, rate * 2)],
    )) as [string | null, string, string, string, number];
    if (stored === null || !constantTimeEqual(stored, hash) || revokedAt !== '') {
      throw new ServiceError('INVALID_API_KEY');
    }
    if (waitMs > 0) {
      throw new ServiceError('RATE_LIMITED', undefined, waitMs / 1000);
    }
    return { ownerId, keyId: id, keyName: name };
  }

  async list(): Promise<ApiKeyInfo[]> {
    const ids = await this.#store.use((client) => client.smembers(keys.allApiKeys()));
    const found = await Promise.all(
      ids.map(async (id) => ({
        id,
        record: await this.#store.use((client) => client.hgetall(keys.apiKey(id))),
      })),
    );
    return found
      .filter(({ record }) => record['hash'] !== undefined)
      .map(({ id, record }) => ({
        id,
        ownerId: record['ownerId'] ?? '',
        name: record['name'] ?? '',
        createdAtMs: Number(record['createdAt']),
        lastUsedAtMs: record['lastUsedAt'] ? Number(record['lastUsedAt']) : undefined,
        revokedAtMs: record['revokedAt'] ? Number(record['revokedAt']) : undefined,
      }))
      .sort((a, b) => a.createdAtMs - b.createdAtMs);
  }

  /** By its id, for good. False when there is no such key. */
  async revoke(id: string): Promise<boolean> {
    const exists = await this.#store.use((client) => client.exists(keys.apiKey(id)));
    if (!exists) {
      return false;
    }
    await this.#store.use((client) => client.hset(keys.apiKey(id), 'revokedAt', wallMs()));
    return true;
  }
}
