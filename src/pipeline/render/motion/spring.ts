// A damped spring: follows a target as a body with mass does, without steps in its speed.
import { FPS } from '../../../media/timeline.ts';

/** One degree of freedom. */
export class Spring {
  value = 0;
  target = 0;
  readonly #stiffness: number;
  readonly #damping: number;
  #speed = 0;

  /** @param hertz undamped frequency, below 4 @param damping 1: reaches its target without overshoot */
  constructor(hertz: number, damping: number) {
    const step = (2 * Math.PI * hertz) / FPS;
    this.#stiffness = step * step;
    this.#damping = 2 * damping * step;
  }

  /** Comes to rest ahead of where it is, without turning back. */
  rest(): void {
    this.target = this.value + this.#speed / Math.sqrt(this.#stiffness);
  }

  /** One frame (semi-implicit Euler). @returns the new value */
  step(): number {
    this.#speed += this.#stiffness * (this.target - this.value) - this.#damping * this.#speed;
    this.value += this.#speed;
    return this.value;
  }
}
