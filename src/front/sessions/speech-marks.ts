// How much of the speech of a session was heard: the ends of utterances that the client has marked,
// and interruptions.
import { every } from '../../base/guard.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import type { ServerMessage } from './server-messages.ts';
import type { SpeechPort } from './session-link.ts';

interface Mark {
  readonly id: string;
  /** Of the first sample after the utterance. */
  readonly position: number;
}

/** A word of an utterance, as the client announces it. */
export interface AnnouncedWord {
  readonly text: string;
  /** Since the utterance began. */
  readonly startMs: number;
}

interface WaitingWord extends AnnouncedWord {
  /** Of its first sample. */
  readonly position: number;
}

/** Utterances that may wait to be heard, in one session. */
const MAX_MARKS = 1000;
/** Words that may wait to be heard: ten minutes of fast speech. */
const MAX_WORDS = 2500;
const POLL_MS = 40;

/** Positions are modulo 2^32. @returns `a - b` in milliseconds */
const msBetween = (a: number, b: number): number =>
  Math.round((((a - b) | 0) / SPEECH_RATE) * 1000);

/** The marks of one session. */
export class SpeechMarks {
  readonly #speech: SpeechPort;
  readonly #tell: (message: ServerMessage) => void;
  /** Where the utterance begins that is heard now. */
  #begin = 0;
  readonly #marks: Mark[] = [];
  /** Where the utterance begins that is written now. */
  #writtenBegin = 0;
  /** By position. */
  readonly #words: WaitingWord[] = [];
  #timer: NodeJS.Timeout | undefined = undefined;

  constructor(speech: SpeechPort, tell: (message: ServerMessage) => void) {
    this.#speech = speech;
    this.#tell = tell;
  }

  /** The speech so far is an utterance. @returns false when too many wait */
  mark(id: string): boolean {
    if (this.#marks.length >= MAX_MARKS) {
      return false;
    }
    const position = this.#speech.writtenPosition;
    this.#marks.push({ id, position });
    this.#writtenBegin = position;
    this.#watch();
    return true;
  }

  /** Words of the utterance that is written now. @returns false when too many wait */
  announce(words: readonly AnnouncedWord[]): boolean {
    if (this.#words.length + words.length > MAX_WORDS) {
      return false;
    }
    for (const { text, startMs } of words) {
      const offset = Math.round((startMs / 1000) * SPEECH_RATE);
      this.#words.push({ text, startMs, position: (this.#writtenBegin + offset) | 0 });
    }
    this.#words.sort((a, b) => msBetween(a.position, b.position));
    this.#watch();
    return true;
  }

  #watch(): void {
    this.#timer ??= every(POLL_MS, 'the ends of utterances', () => {
      this.#poll();
    });
  }

  /** Forgets what was not heard. @returns what was, of the present utterance, and what was not */
  interrupt(): { readonly heardMs: number; readonly droppedMs: number } {
    this.#poll();
    // After an interruption the listener is behind `begin` until the worker has seen the flush.
    const heardMs = Math.max(0, msBetween(this.#speech.heardPosition, this.#begin));
    const droppedMs = msBetween(this.#speech.writtenPosition, this.#begin) - heardMs;
    this.#speech.flush();
    // Speech that had not entered the ring yet takes no place in it any more.
    this.#begin = this.#writtenBegin = this.#speech.writtenPosition;
    this.#words.length = 0;
    for (const [index, { id }] of this.#marks.entries()) {
      this.#tell({
        type: 'flushed',
        id,
        heardMs: index === 0 ? heardMs : 0,
        interrupted: true,
      });
    }
    this.#marks.length = 0;
    this.#stop();
    return { heardMs, droppedMs };
  }

  #poll(): void {
    const heard = this.#speech.heardPosition;
    this.#tellWords(heard);
    for (;;) {
      const mark = this.#marks[0];
      if (mark === undefined || msBetween(heard, mark.position) < 0) {
        break;
      }
      this.#marks.shift();
      const heardMs = msBetween(mark.position, this.#begin);
      this.#tell({ type: 'flushed', id: mark.id, heardMs, interrupted: false });
      this.#begin = mark.position;
    }
    if (this.#marks.length === 0 && this.#words.length === 0) {
      this.#stop();
    }
  }

  #tellWords(heard: number): void {
    for (let word = this.#words[0]; word !== undefined; word = this.#words[0]) {
      // The first sample of the word was sent.
      if (((heard - word.position) | 0) <= 0) {
        return;
      }
      this.#words.shift();
      this.#tell({ type: 'word', text: word.text, startMs: Math.round(word.startMs) });
    }
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** The session is over: what was not heard will not be. */
  close(): void {
    if (this.#marks.length > 0) {
      this.interrupt();
    }
    this.#words.length = 0;
    this.#stop();
  }
}
