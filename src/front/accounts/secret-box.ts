// Secrets of customers at rest: sealed with AES-256-GCM under a key that lies outside of Redis.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { keys } from '../store/keys.ts';
import { readOrCreate } from '../store/data-dir.ts';
import type { RedisStore } from '../store/redis.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1.';
/** Sealed in Redis by the first server, for the others to open. */
const CHECK = 'mouthpiece';

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
   * From 64 hex digits, or from `secrets.key` in the data directory, made on first use.
   * @throws Error when what `store` holds was sealed with another key: nothing of it could be opened, and that would show only when it is needed.
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
        'SECRETS_KEY is another than the one with which this Redis was first used. Set that one: servers that share a Redis need the same SECRETS_KEY; unset, it lies in DATA_DIR/secrets.key.',
      );
    }
    return box;
  }

  /** `context` says what the secret belongs to; it must be the same to open it, so that a sealed value cannot be moved elsewhere. */
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

  /** @throws Error when the key is another one, the context differs or the value was changed. */
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
