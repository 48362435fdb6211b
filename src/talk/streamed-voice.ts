// A reply spoken by a voice behind a socket: clauses go in while the model writes them, and the sound
// comes back in one piece.
import { clausesOf } from './clauses.ts';
import { ReplyVoice, type SocketVoice } from './providers/voice-socket.ts';
import type { VoicePiece } from './providers/voice-socket.ts';
import type { ReplyGate } from './reply-gates.ts';
import { type SpokenClause, newClause } from './spoken-text.ts';

/** A socket that was opened ahead is used within this time; the services close idle ones. */
const FRESH_MS = 15_000;

/** Sockets of one conversation: at most one waits for the next reply. */
export class VoiceSockets {
  readonly #spec: SocketVoice;
  readonly #language: string;
  #next: { readonly voice: Promise<ReplyVoice>; readonly atMs: number } | undefined = undefined;

  constructor(spec: SocketVoice, language: string) {
    this.#spec = spec;
    this.#language = language;
  }

  /** Opens the socket of the next reply. A failure shows when it is taken. */
  prepare(nowMs: number): void {
    if (this.#next !== undefined && nowMs - this.#next.atMs < FRESH_MS) {
      return;
    }
    this.close();
    const voice = ReplyVoice.open(this.#spec, this.#language);
    voice.catch(() => {});
    this.#next = { voice, atMs: nowMs };
  }

  /** @throws ProviderError */
  async take(nowMs: number): Promise<ReplyVoice> {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) {
      const voice = await next.voice.catch(() => undefined);
      if (voice?.isOpen === true && nowMs - next.atMs < FRESH_MS) {
        return voice;
      }
      voice?.close();
    }
    return await ReplyVoice.open(this.#spec, this.#language);
  }

  /** Closes the one that waits. */
  close(): void {
    void this.#next?.voice.then(
      (voice) => {
        voice.close();
      },
      () => {},
    );
    this.#next = undefined;
  }
}

/** One reply: its text so far, and the socket that speaks it now. */
export class StreamedReply {
  /** The whole reply is one clause for the listener: its sound has no borders. */
  readonly clause: SpokenClause = newClause('');
  readonly #clauses: AsyncIterator<string>;
  readonly #gate: ReplyGate;
  readonly #signal: AbortSignal;
  #said: string[] = [];
  #isEnded = false;
  #isOver = false;
  #voice: ReplyVoice | undefined = undefined;

  constructor(text: AsyncIterable<string>, gate: ReplyGate, signal: AbortSignal) {
    this.#clauses = clausesOf(text)[Symbol.asyncIterator]();
    this.#gate = gate;
    this.#signal = signal;
  }

  /** Waits for the first clause. @returns whether there is one */
  async begin(): Promise<boolean> {
    return await this.#take();
  }

  /** Passes the other clauses on as they come. */
  async feed(): Promise<void> {
    while (!this.#isOver && (await this.#take())) {
      // Each clause was said.
    }
    this.#isEnded = true;
    this.#voice?.end();
  }

  /** Speaks all of it, from the start: what failed before its first sound may be repeated. */
  async *speak(sockets: VoiceSockets, nowMs: number): AsyncGenerator<VoicePiece> {
    const voice = await sockets.take(nowMs);
    this.#voice = voice;
    const onAbort = (): void => {
      voice.close();
    };
    this.#signal.addEventListener('abort', onAbort);
    try {
      for (const text of this.#said) {
        voice.say(text);
      }
      if (this.#isEnded) {
        voice.end();
      }
      yield* voice.pieces();
    } finally {
      this.#signal.removeEventListener('abort', onAbort);
      this.#voice = undefined;
      voice.close();
    }
  }

  /** Nothing more is said. */
  close(): void {
    this.#isOver = true;
  }

  async #take(): Promise<boolean> {
    const { done, value } = await this.#clauses.next();
    if (done === true || !(await this.#gate.passes(this.#signal))) {
      return false;
    }
    this.#said.push(value);
    this.clause.text += value;
    this.#voice?.say(value);
    return true;
  }
}
