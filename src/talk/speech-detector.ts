// Where speech begins and ends, from the probability of speech in each window of 32 ms.
import { SPEECH_RATE } from '../media/timeline.ts';

/** Samples of one window of the detector's model: 32 ms. */
export const WINDOW_SAMPLES = 512;
const WINDOW_MS = (WINDOW_SAMPLES * 1000) / SPEECH_RATE;

/** Probability above which a window is speech. */
const ACTIVATION = 0.5;
/** Within speech, a window below this is silence. */
const DEACTIVATION = 0.35;
/** Speech shorter than this is a click. */
const MIN_SPEECH_MS = 50;
/** Kept of what came before the speech: its first sound is weak. */
const PREFIX_SAMPLES = SPEECH_RATE / 2;
/** The longest utterance. What follows is recognised as the next one. */
const MAX_SAMPLES = 60 * SPEECH_RATE;

/** How long silence lasts, in milliseconds. */
export interface SilenceLimits {
  /** After which speech has ended. */
  readonly endMs: number;
  /** After which it has probably ended. */
  readonly pauseMs: number;
}

/** What a window changed. */
export type SpeechChange = 'start' | 'pause' | 'resume' | 'end' | undefined;

/** The detector of one person. */
export class SpeechDetector {
  readonly #limits: SilenceLimits;
  isSpeaking = false;
  /** Milliseconds of speech, and of silence, that end with the last window. */
  speechMs = 0;
  silenceMs = 0;
  /** Milliseconds since the last `start`, or since the last `end`. */
  sinceChangeMs = 0;
  #isPaused = false;
  #buffer = new Int16Array(4 * SPEECH_RATE);
  #length = 0;

  constructor(limits: SilenceLimits) {
    this.#limits = limits;
  }

  /** The utterance so far, with half a second before it. */
  get utterance(): Int16Array {
    return this.#buffer.slice(0, this.#length);
  }

  /** Takes one window with the probability that it is speech. */
  push(window: Int16Array, probability: number): SpeechChange {
    this.#append(window);
    this.sinceChangeMs += WINDOW_MS;
    if (probability >= ACTIVATION || (this.isSpeaking && probability > DEACTIVATION)) {
      this.speechMs += WINDOW_MS;
      this.silenceMs = 0;
      if (this.#isPaused) {
        this.#isPaused = false;
        return 'resume';
      }
      if (!this.isSpeaking && this.speechMs >= MIN_SPEECH_MS) {
        this.isSpeaking = true;
        this.sinceChangeMs = this.speechMs;
        return 'start';
      }
      return undefined;
    }
    this.speechMs = 0;
    this.silenceMs += WINDOW_MS;
    if (!this.isSpeaking) {
      this.#keep(PREFIX_SAMPLES);
      return undefined;
    }
    if (this.silenceMs >= this.#limits.endMs) {
      this.isSpeaking = false;
      this.#isPaused = false;
      this.sinceChangeMs = this.silenceMs;
      return 'end';
    }
    if (this.silenceMs >= this.#limits.pauseMs && !this.#isPaused) {
      this.#isPaused = true;
      return 'pause';
    }
    return undefined;
  }

  /** Forgets the utterance; call it after `end`. */
  forget(): void {
    this.#keep(PREFIX_SAMPLES);
  }

  #append(window: Int16Array): void {
    if (this.#length + window.length > MAX_SAMPLES) {
      this.#keep(MAX_SAMPLES - window.length);
    }
    if (this.#length + window.length > this.#buffer.length) {
      const larger = new Int16Array(this.#buffer.length * 2);
      larger.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = larger;
    }
    this.#buffer.set(window, this.#length);
    this.#length += window.length;
  }

  #keep(samples: number): void {
    if (this.#length > samples) {
      this.#buffer.copyWithin(0, this.#length - samples, this.#length);
      this.#length = samples;
    }
  }
}
