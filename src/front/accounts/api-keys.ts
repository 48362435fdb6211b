// API keys. A key is shown only when it is created; Redis has its hash. One script looks it up and
// counts the request.
import { ServiceError } from '../../base/errors.ts';
import { constantTimeEqual, hashSecret, newSecret } from '../../base/ids.ts';
import { wallMs } from '../../base/time.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { AUTHENTICATE, CREATE_KEY } from '../store/scripts.ts';

/** An API key without its text. */
export interface ApiKeyInfo {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  readonly isOperator: boolean;
}

/** Who sent a request. */
export interface KeyHolder {
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly isOperator: boolean;
}

/** The role of keys that see and end everybody's sessions. */
const OPERATOR = 'operator';

/**
 * Hex digits of the hash that are the id of a key. The whole hash is then compared in constant
 * time.
 */
const ID_DIGITS = 16;
/** A longer key is refused without a lookup. */
const MAX_KEY_LENGTH = 512;

/** Creates, authenticates and revokes API keys. */
export class ApiKeys {
  readonly #store: RedisStore;
  /** Requests that a key may send. SIGHUP may change it. */
  requestsPerSecond: number;

  constructor(store: RedisStore, requestsPerSecond: number) {
    this.#store = store;
    this.requestsPerSecond = requestsPerSecond;
  }

  /** Creates a key. Its text cannot be read again later. */
  async create(
    ownerId: string,
    name: string,
    isOperator = false,
  ): Promise<{ key: string; id: string }> {
    const key = newSecret('mp_');
    const { id } = await this.register(key, ownerId, name, isOperator);
    return { key, id };
  }

  /**
   * Stores a given key. `created` is false when it exists already; it then gets the role of an
   * operator all the same, where that is asked for.
   */
  async register(
    key: string,
    ownerId: string,
    name: string,
    isOperator = false,
  ): Promise<{ id: string; created: boolean }> {
    const hash = hashSecret(key);
    const id = hash.slice(0, ID_DIGITS);
    const created = await this.#store.run(
      CREATE_KEY,
      [keys.apiKey(id)],
      ['hash', hash, 'ownerId', ownerId, 'name', name, 'createdAt', wallMs()],
    );
    if (isOperator) {
      await this.#store.use((client) => client.hset(keys.apiKey(id), 'role', OPERATOR));
    }
    await this.#store.use((client) => client.sadd(keys.allApiKeys(), id));
    return { id, created: created === 1 };
  }

  /**
   * Finds the owner and counts the request.
   * @throws ServiceError INVALID_API_KEY, RATE_LIMITED, STORE_UNAVAILABLE
   */
  async authenticate(key: string): Promise<KeyHolder> {
    if (!key || key.length > MAX_KEY_LENGTH) {
      throw new ServiceError('INVALID_API_KEY');
    }
    const hash = hashSecret(key);
    const id = hash.slice(0, ID_DIGITS);
    const rate = this.requestsPerSecond;
    const [stored, ownerId, name, revokedAt, waitMs, role] = (await this.#store.run(
      AUTHENTICATE,
      [keys.apiKey(id), keys.apiKeyBucket(id)],
      [rate, Math.max(2, rate * 2)],
    )) as [string | null, string, string, string, number, string];
    if (stored === null || !constantTimeEqual(stored, hash) || revokedAt !== '') {
      throw new ServiceError('INVALID_API_KEY');
    }
    if (waitMs > 0) {
      throw new ServiceError('RATE_LIMITED', undefined, waitMs / 1000);
    }
    return { ownerId, keyId: id, keyName: name, isOperator: role === OPERATOR };
  }

  /** All keys, the oldest first. */
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
        isOperator: record['role'] === OPERATOR,
      }))
      .sort((a, b) => a.createdAtMs - b.createdAtMs);
  }

  /** Revokes a key permanently. Returns false when there is no such key. */
  async revoke(id: string): Promise<boolean> {
    const exists = await this.#store.use((client) => client.exists(keys.apiKey(id)));
    if (!exists) {
      return false;
    }
    await this.#store.use((client) => client.hset(keys.apiKey(id), 'revokedAt', wallMs()));
    return true;
  }
}
