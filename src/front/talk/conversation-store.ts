// Conversations in Redis: what was configured, the grants that open a room, and the transcripts.
import { hashSecret, newSecret } from '../../base/ids.ts';
import type {
  RecogniserSpec,
  LanguageModelSpec,
  TranscriptItem,
  VoiceSpec,
} from '../../link/talk-messages.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import type { SecretBox } from '../accounts/secret-box.ts';

/** A configured conversation. Its providers hold keys: they are stored sealed. */
export interface StoredConversation {
  readonly id: string;
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  /** '' when it was configured in the request. */
  readonly agentId: string;
  readonly agentName: string;
  /** A face id, with its emotion. */
  readonly faceId: string;
  readonly emotion: string;
  readonly prompt: string;
  readonly firstMessage: string;
  readonly language: string;
  readonly maxIdleSeconds: number;
  readonly maxLengthSeconds: number;
  readonly createTranscript: boolean;
  /** Origins of pages that may show the room; empty: any. */
  readonly originAllowList: readonly string[];
  readonly providers: {
    readonly languageModel: LanguageModelSpec;
    readonly voice: VoiceSpec;
    readonly recogniser: RecogniserSpec;
  };
}

/** What was said in a conversation. */
export interface Transcript {
  readonly sessionId: string;
  readonly agentId: string;
  readonly ownerId: string;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string;
  readonly endReason: string;
  readonly items: readonly TranscriptItem[];
}

/** How long a room waits for its guest. */
export const GRANT_SECONDS = 120;
/** How much longer than its longest session a conversation is kept, for reloads of the page. */
const MARGIN_SECONDS = 600;

/** The conversations of all servers. */
export class ConversationStore {
  readonly #store: RedisStore;
  readonly #secrets: SecretBox;
  readonly #retentionSeconds: number;

  constructor(store: RedisStore, secrets: SecretBox, retentionDays: number) {
    this.#store = store;
    this.#secrets = secrets;
    this.#retentionSeconds = retentionDays * 86_400;
  }

  /** Stores a conversation. @returns the secret that opens its room, once, within GRANT_SECONDS */
  async create(conversation: StoredConversation): Promise<string> {
    const { providers, ...rest } = conversation;
    const sealed = this.#secrets.seal(JSON.stringify(providers), `conversation:${rest.id}`);
    const secret = newSecret();
    await this.#store.use((client) =>
      client.set(
        keys.conversation(rest.id),
        JSON.stringify({ ...rest, providers: sealed }),
        'EX',
        rest.maxLengthSeconds + MARGIN_SECONDS,
      ),
    );
    await this.#store.use((client) =>
      client.set(keys.conversationGrant(hashSecret(secret)), rest.id, 'EX', GRANT_SECONDS),
    );
    return secret;
  }

  /** Undefined when it is unknown, over or expired. */
  async find(id: string): Promise<StoredConversation | undefined> {
    const text = await this.#store.use((client) => client.get(keys.conversation(id)));
    if (text === null) {
      return undefined;
    }
    const stored = JSON.parse(text) as Omit<StoredConversation, 'providers'> & {
      readonly providers: string;
    };
    const opened = this.#secrets.unseal(stored.providers, `conversation:${id}`);
    return { ...stored, providers: JSON.parse(opened) as StoredConversation['providers'] };
  }

  /** The conversation is over: no server opens it again. */
  async forget(id: string): Promise<void> {
    await this.#store.use((client) => client.del(keys.conversation(id)));
  }

  /** Uses the secret of a room up. @returns whether it was the room's, and not used before */
  async redeem(id: string, secret: string): Promise<boolean> {
    const found = await this.#store.use((client) =>
      client.getdel(keys.conversationGrant(hashSecret(secret))),
    );
    return found === id;
  }

  /** Keeps a transcript for the time of the settings. */
  async writeTranscript(transcript: Transcript): Promise<void> {
    await this.#store.use((client) =>
      client.set(
        keys.transcript(transcript.sessionId),
        JSON.stringify(transcript),
        'EX',
        this.#retentionSeconds,
      ),
    );
  }

  /** Undefined when there is none, or it is not this owner's. */
  async transcript(ownerId: string, sessionId: string): Promise<Transcript | undefined> {
    const text = await this.#store.use((client) => client.get(keys.transcript(sessionId)));
    if (text === null) {
      return undefined;
    }
    const transcript = JSON.parse(text) as Transcript;
    return transcript.ownerId === ownerId ? transcript : undefined;
  }
}
