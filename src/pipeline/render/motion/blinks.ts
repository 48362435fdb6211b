// When and how the eyes blink.
import { FPS } from '../../../media/timeline.ts';
import type { Random } from './random.ts';
import type { SpeechRhythm } from './speech-rhythm.ts';

// After Bentivoglio et al. (1997): 17 blinks a minute at rest, 26 in conversation; opening is slower
// than closing. Intervals are very irregular: log-normal, with a coefficient of variation of 0.9.
// Mean intervals in seconds without those blinks that something else brings about.
const INTERVAL_SILENT = 4.2;
const INTERVAL_SPEAKING = 3.6;
const IRREGULARITY = 0.9;
const SHORTEST_INTERVAL = 0.45;
const CLOSING_FRAMES = 0.09 * FPS;
const SHUT_FRAMES = 0.025 * FPS;
const OPENING_FRAMES: readonly [number, number] = [0.145 * FPS, 0.185 * FPS];
/** Probabilities of a second blink right after one, at the end of a phrase, with a large saccade. */
const DOUBLE = 0.08;
const AT_PHRASE_END = 0.45;
const WITH_SACCADE = 0.25;
/** Listeners blink with some of their nods (Hömke, Holler and Levinson 2017). */
const WITH_NOD = 0.35;

/** The lids of one session. */
export class Blinks {
  /** 0 open, 1 closed. */
  closed = 0;
  readonly #random: Random;
  #start: number;
  #opening = OPENING_FRAMES[0];

  constructor(random: Random, frame: number) {
    this.#random = random;
    this.#start = frame + this.#interval(INTERVAL_SILENT);
  }

  /**
   * @param isGazeShift a large saccade begins in this frame
   * @param isNod a nod to somebody who speaks begins
   */
  step(
    frame: number,
    { isPhrase, isPhraseEnd }: SpeechRhythm,
    isGazeShift: boolean,
    isNod: boolean,
  ): void {
    const random = this.#random;
    const length = CLOSING_FRAMES + SHUT_FRAMES + this.#opening;
    if (frame > this.#start + length) {
      this.#start =
        frame +
        (random.next() < DOUBLE
          ? 0.15 * FPS
          : this.#interval(isPhrase ? INTERVAL_SPEAKING : INTERVAL_SILENT));
      this.#opening = random.between(...OPENING_FRAMES);
    }
    const isDue = this.#start > frame + SHORTEST_INTERVAL * FPS;
    if (isDue && isPhraseEnd && random.next() < AT_PHRASE_END) {
      this.#start = frame + FPS * random.between(0.03, 0.3);
    } else if (isDue && isGazeShift && random.next() < WITH_SACCADE) {
      this.#start = frame;
    } else if (isDue && isNod && random.next() < WITH_NOD) {
      this.#start = frame + FPS * random.between(0, 0.2);
    }
    const at = frame - this.#start;
    const linear =
      at < CLOSING_FRAMES
        ? at / CLOSING_FRAMES
        : 1 - (at - CLOSING_FRAMES - SHUT_FRAMES) / this.#opening;
    const t = Math.min(1, Math.max(0, linear));
    this.closed = t * t * (3 - 2 * t);
  }

  #interval(mean: number): number {
    const median = (mean - SHORTEST_INTERVAL) / Math.sqrt(1 + IRREGULARITY ** 2);
    const sigma = Math.sqrt(Math.log(1 + IRREGULARITY ** 2));
    return FPS * (SHORTEST_INTERVAL + median * this.#random.logNormal(sigma));
  }
}
