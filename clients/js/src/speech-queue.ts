// Speech on its way to the server: one source after the other, until it is interrupted.
import { type SpeechSource, messagesOf, speechChunks } from './speech.ts';

/** Options of `speak`. */
export interface SpeakOptions {
  /** Once the first of it is there, forget all speech that was sent before. */
  readonly interrupt?: boolean;
  /** 'opus': each chunk is one packet. The session must be opened so too (`audioInputFormat`). */
  readonly format?: 'pcm16' | 'opus';
  /**
   * Rate of PCM, Hz; default: what the content type of a response says (`audio/pcm;rate=24000`), or
   * 16,000.
   */
  readonly rate?: number;
}

/** A connection that takes speech. */
export interface SpeechPort {
  /** Resolves when it can be used, or never will be. */
  ready(): Promise<void>;
  /** @returns whether it was sent */
  send(message: Uint8Array<ArrayBuffer>): boolean;
  /** Resolves when there is little left to send. */
  drained(): Promise<void>;
}

/** The speech of one session. */
export class SpeechQueue {
  readonly #port: SpeechPort;
  /** Changed by `drop`: ends the speech that is being sent. */
  #speech = new AbortController();
  #sending: Promise<unknown> = Promise.resolve();

  constructor(port: SpeechPort) {
    this.#port = port;
  }

  /** Resolves when all speech so far is sent. */
  async sent(): Promise<void> {
    await this.#sending;
  }

  /** @returns true when all of it was sent, false when it was dropped or the connection ended */
  async speak(source: SpeechSource, options: SpeakOptions = {}): Promise<boolean> {
    if (options.interrupt) {
      this.drop();
    }
    const { signal } = this.#speech;
    const sent = this.#sending.then(() => this.#send(source, options, signal));
    this.#sending = sent.catch(() => {});
    return await sent;
  }

  /** Forgets the speech that has not been sent. */
  drop(): void {
    this.#speech.abort();
    this.#speech = new AbortController();
    this.#sending = Promise.resolve();
  }

  async #send(
    source: SpeechSource,
    { interrupt = false, format, rate }: SpeakOptions,
    signal: AbortSignal,
  ): Promise<boolean> {
    const isPacket = format === 'opus';
    let isFirst = interrupt;
    for await (const chunk of speechChunks(source, signal, isPacket ? undefined : rate)) {
      await this.#port.ready();
      for (const message of messagesOf(chunk, isPacket)) {
        if (signal.aborted || !this.#port.send(isFirst ? atOnce(message) : message)) {
          return false;
        }
        isFirst = false;
      }
      await this.#port.drained();
    }
    return !signal.aborted;
  }
}

/** Speech that takes the place of all speech before it. */
function atOnce(message: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const command = new TextEncoder().encode('PLAY_IMMEDIATE');
  const whole = new Uint8Array(command.length + message.length);
  whole.set(command);
  whole.set(message, command.length);
  return whole;
}
