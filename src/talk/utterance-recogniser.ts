// A recogniser that takes whole utterances, with its wait taken off the turn: it begins in the pause
// before the speech is known to be over, and its text counts unless the person goes on.
import type { RecognitionEvent } from './turn-types.ts';
import type { UtteranceListener } from './vad.ts';

interface Attempt {
  readonly text: Promise<string>;
  readonly abort: AbortController;
}

/** Utterances that wait for their text. */
const MAX_WAITING = 8;

/** Recognises the utterances of one person. */
export class UtteranceRecogniser implements UtteranceListener {
  readonly #transcribe: (pcm: Int16Array, signal: AbortSignal) => Promise<string>;
  #early: Attempt | undefined = undefined;
  readonly #queue: (RecognitionEvent | Promise<string>)[] = [];
  #wake: (() => void) | undefined = undefined;

  constructor(transcribe: (pcm: Int16Array, signal: AbortSignal) => Promise<string>) {
    this.#transcribe = transcribe;
  }

  onStart(): void {
    this.#drop();
  }

  onPause(utterance: Int16Array): void {
    this.#drop();
    const early = this.#begin(utterance);
    this.#early = early;
    // Words interrupt the face for good. Told here, they are in the history when the turn ends.
    void early.text.then((text) => {
      if (text !== '' && this.#early === early) {
        this.#push({ kind: 'interim', text });
      }
    });
  }

  onEnd(utterance: Int16Array): void {
    const attempt = this.#early ?? this.#begin(utterance);
    this.#early = undefined;
    this.#push(attempt.text);
  }

  #push(next: RecognitionEvent | Promise<string>): void {
    if (this.#queue.length < MAX_WAITING) {
      this.#queue.push(next);
      this.#wake?.();
    }
  }

  /** Yields the text of each utterance that has any. */
  async *texts(signal: AbortSignal): AsyncGenerator<RecognitionEvent> {
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
    while (!signal.aborted) {
      const next = this.#queue.shift();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      if (!(next instanceof Promise)) {
        yield next;
        continue;
      }
      const said = await next;
      if (said !== '' && !signal.aborted) {
        yield { kind: 'final', text: said };
      }
    }
    this.#drop();
  }

  #begin(utterance: Int16Array): Attempt {
    const abort = new AbortController();
    return { text: this.#transcribe(utterance, abort.signal), abort };
  }

  #drop(): void {
    this.#early?.abort.abort();
    this.#early = undefined;
  }
}
