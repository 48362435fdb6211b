// Encrypts the secrets of customers in Redis: AES-256-GCM with a key that is not in Redis.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { keys } from '../store/keys.ts';
import { readOrCreate } from '../store/data-dir.ts';
import type { RedisStore } from '../store/redis.ts';

const KEY_BYTES = 32;
/** Sizes of AES-GCM (NIST SP 800-38D). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Prefix of a sealed value, for later formats. */
const VERSION = 'v1.';
/**
 * The first server stores this text sealed in Redis. Every server opens it at start to check its
 * key.
 */
const CHECK = 'mouthpiece';

/** Seals and opens secrets with one key. */
export class SecretBox {
  readonly #key: Buffer;

  /** `key`: 32 bytes. */
  constructor(key: Buffer) {
    if (key.length !== KEY_BYTES) {
      throw new RangeError(`SECRETS_KEY must have ${KEY_BYTES} bytes, not ${key.length}`);
    }
    this.#key = key;
  }

  /**
   * Makes a box from 64 hex digits, or from `secrets.key` in the data directory, created on first
   * use.
   * @throws Error when the secrets in `store` were sealed with another key
   */
  static async open(
    hexKey: string | undefined,
    dataDir: string,
    store: Pick<RedisStore, 'use'>,
  ): Promise<SecretBox> {
    const hex =
      hexKey ??
      (await readOrCreate(dataDir, 'secrets.key', () => randomBytes(KEY_BYTES).toString('hex')));
    const box = new SecretBox(Buffer.from(hex, 'hex'));
    const sealed = await store.use(async (client) => {
      await client.setnx(keys.secretsCheck(), box.seal(CHECK, CHECK));
      return await client.get(keys.secretsCheck());
    });
    try {
      box.unseal(sealed ?? '', CHECK);
    } catch {
      throw new Error(
        'SECRETS_KEY differs from the key with which this Redis was first used. Set the first ' +
          'key: servers that share a Redis need the same SECRETS_KEY. When it is unset, the key ' +
          'is in DATA_DIR/secrets.key.',
      );
    }
    return box;
  }

  /** A key for another purpose, of 32 bytes (HKDF, RFC 5869). All servers of a Redis get the same. */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', purpose, KEY_BYTES));
  }

  /**
   * Encrypts a secret.
   * @param context what the secret belongs to. `unseal` needs the same context, so a sealed value
   *   cannot
   *   be moved to another record.
   */
  seal(secret: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([
      nonce,
      cipher.update(secret, 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return VERSION + sealed.toString('base64url');
  }

  /** @throws Error when the key or the context differs, or the value was changed */
  unseal(sealed: string, context: string): string {
    if (!sealed.startsWith(VERSION)) {
      throw new Error('a sealed secret of an unknown version');
    }
    const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) {
      throw new Error('a sealed secret is cut short');
    }
    const decipher = createDecipheriv(
      'aes-256-gcm',
      this.#key,
      bytes.subarray(0, NONCE_BYTES),
    ).setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
    return Buffer.concat([
      decipher.update(bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES)),
      decipher.final(),
    ]).toString('utf8');
  }
}
