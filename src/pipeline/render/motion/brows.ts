// Raised brows: flashes on some stressed syllables, and small movements between them.
import { FPS } from '../../../media/timeline.ts';
import type { Random } from './random.ts';
import type { SpeechRhythm } from './speech-rhythm.ts';
import { Spring } from './spring.ts';

const HZ = 2.2;
/** Seconds that a flash lasts. */
const FLASH: readonly [number, number] = [0.25, 0.6];
/** Between flashes brows rise up to this. */
const BETWEEN = 0.4;

/** The brows of one session. */
export class Brows {
  /** 0 as in the portrait, 1 raised. */
  raise = 0;
  readonly #random: Random;
  /** Share of stresses with a flash, and how high it is: they differ between people. */
  readonly #flashes: number;
  readonly #height: number;
  readonly #spring = new Spring(HZ, 0.85);
  #until = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#flashes = random.between(0.3, 0.6);
    this.#height = random.between(0.6, 1);
  }

  step(frame: number, { stress, isPhrase }: SpeechRhythm): void {
    const random = this.#random;
    if (stress > 0 && random.next() < this.#flashes * (0.5 + stress)) {
      this.#spring.target = this.#height * (0.55 + 0.45 * stress);
      this.#until = frame + FPS * random.between(...FLASH);
    } else if (frame >= this.#until) {
      this.#spring.target = isPhrase ? random.between(0, BETWEEN) : 0;
      this.#until = frame + FPS * random.between(0.3, 1.2);
    }
    this.raise = Math.min(1, Math.max(0, this.#spring.step()));
  }
}
