// Tokens of POST /auto/token. The third-party keys in them are encrypted.
import { hashSecret, newSecret } from '../../base/ids.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import type { SecretBox } from './secret-box.ts';

/** What an auto token grants. */
export interface AutoGrant {
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly createTranscript: boolean;
  /** Origins of web pages that may use the token; empty: any. */
  readonly originAllowList: readonly string[];
  /** Key of the language model provider; '' when none. */
  readonly llmApiKey: string;
  /** Key of the speech synthesis provider; '' when none. */
  readonly ttsApiKey: string;
}

/** Creates and finds auto tokens. Redis has only the hash of a token. */
export class AutoTokens {
  readonly #store: RedisStore;
  readonly #secrets: SecretBox;

  constructor(store: RedisStore, secrets: SecretBox) {
    this.#store = store;
    this.#secrets = secrets;
  }

  /** @returns the token */
  async create(grant: AutoGrant, ttlSeconds: number): Promise<string> {
    const token = newSecret();
    const hash = hashSecret(token);
    const stored = {
      ...grant,
      llmApiKey: this.#secrets.seal(grant.llmApiKey, `auto:${hash}:llm`),
      ttsApiKey: this.#secrets.seal(grant.ttsApiKey, `auto:${hash}:tts`),
    };
    await this.#store.use((client) =>
      client.set(keys.autoToken(hash), JSON.stringify(stored), 'EX', ttlSeconds),
    );
    return token;
  }

  /** Undefined when the token is unknown or expired. */
  async find(token: string): Promise<AutoGrant | undefined> {
    const hash = hashSecret(token);
    const text = await this.#store.use((client) => client.get(keys.autoToken(hash)));
    if (text === null) {
      return undefined;
    }
    const stored = JSON.parse(text) as AutoGrant;
    return {
      ...stored,
      llmApiKey: this.#secrets.unseal(stored.llmApiKey, `auto:${hash}:llm`),
      ttsApiKey: this.#secrets.unseal(stored.ttsApiKey, `auto:${hash}:tts`),
    };
  }
}
