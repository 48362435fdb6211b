// The random numbers of a session's motion: repeatable by seed.

/** The mulberry32 generator. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Evenly distributed from 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** -1 or 1. */
  sign(): number {
    return this.next() < 0.5 ? -1 : 1;
  }

  /** About normal, with mean 0 and variance 1; bounded by ±3 (Irwin-Hall of three numbers). */
  normal(): number {
    return 2 * (this.next() + this.next() + this.next() - 1.5);
  }

  /** Log-normal with median 1; the coefficient of variation is sqrt(exp(sigma^2) - 1). */
  logNormal(sigma: number): number {
    return Math.exp(sigma * this.normal());
  }
}
