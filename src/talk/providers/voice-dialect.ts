// How a voice behind a WebSocket wants its text, and what its messages mean.
import type { TimedWord } from '../spoken-text.ts';

/** Where a streamed voice is, and which one speaks. */
export interface StreamedVoiceSpec {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly voice: string;
  readonly model: string;
}

/** The protocol of one provider, for one reply. */
export interface VoiceDialect {
  readonly url: string;
  readonly headers: Record<string, string>;
  /** Messages before the first text. */
  readonly begin: readonly object[];
  say(text: string): object;
  readonly end: object;
  /**
   * @param samples of the reply before this message
   * @throws ProviderError: the message is an error
   */
  read(
    message: Record<string, unknown>,
    samples: number,
  ): {
    readonly base64?: string;
    readonly words?: readonly TimedWord[];
    readonly isLast?: boolean;
  };
}
