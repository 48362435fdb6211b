// Voices over WebSockets: text goes in by clauses, sound and the times of the words come back. One
// socket for each reply, opened while the person still speaks.
import type { VoiceSpec } from '../../link/talk-messages.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { PcmResampler } from '../pcm-resampler.ts';
import { ProviderError } from '../provider-error.ts';
import type { TimedWord } from '../spoken-text.ts';
import { cartesia } from './cartesia.ts';
import { elevenLabs } from './elevenlabs.ts';
import { ProviderSocket } from './socket.ts';
import type { VoiceDialect } from './voice-dialect.ts';

/** Longest silence of a voice that has text to speak. */
const PAUSE_MS = 8000;

/** A voice that is spoken to over a socket. */
export type SocketVoice = Extract<VoiceSpec, { kind: 'elevenlabs' | 'cartesia' }>;

/** What a voice sends: sound, and words with their places in the sound of the reply. */
export interface VoicePiece {
  readonly pcm: Int16Array;
  readonly words: readonly TimedWord[];
}

/** The voice of one reply. */
export class ReplyVoice {
  readonly #socket: ProviderSocket;
  readonly #dialect: VoiceDialect;
  readonly #resampler = new PcmResampler(SPEECH_RATE);
  #samples = 0;
  #hasBegun = false;

  private constructor(socket: ProviderSocket, dialect: VoiceDialect) {
    this.#socket = socket;
    this.#dialect = dialect;
  }

  /** @throws ProviderError */
  static async open(spec: SocketVoice, language: string): Promise<ReplyVoice> {
    const dialect = (spec.kind === 'elevenlabs' ? elevenLabs : cartesia)(spec, language);
    const { url, headers } = dialect;
    return new ReplyVoice(await ProviderSocket.open({ who: 'The voice', url, headers }), dialect);
  }

  /** The other side has not closed it. */
  get isOpen(): boolean {
    return this.#socket.isOpen;
  }

  /** Text to speak next. */
  say(text: string): void {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      for (const message of this.#dialect.begin) {
        this.#socket.send(message);
      }
    }
    this.#socket.send(this.#dialect.say(text));
  }

  /** No more text follows. */
  end(): void {
    this.#socket.send(this.#dialect.end);
  }

  /** What it speaks, until the end of the text or `close`. @throws ProviderError */
  async *pieces(): AsyncGenerator<VoicePiece> {
    for (;;) {
      const message = await this.#socket.next(PAUSE_MS);
      if (message === undefined) {
        return;
      }
      const { base64, words = [], isLast = false } = this.#dialect.read(message, this.#samples);
      const pcm = this.#resampler.push(Buffer.from(base64 ?? '', 'base64'));
      this.#samples += pcm.length;
      if (pcm.length > 0 || words.length > 0) {
        yield { pcm, words };
      }
      if (isLast) {
        if (this.#samples === 0) {
          throw new ProviderError('malformed', 'The voice sent no sound');
        }
        return;
      }
    }
  }

  close(): void {
    this.#socket.close();
  }
}
