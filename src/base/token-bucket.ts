// A token bucket: limits the sustained rate and the burst of something.

/** Refills continuously, up to its burst. */
export class TokenBucket {
  /** Units per second. May be changed at any time; the current level stays. */
  rate: number;
  /** Capacity in units. */
  readonly burst: number;
  #level: number;
  #atMs: number;

  /** A full bucket. Times are monotonic. */
  constructor(rate: number, burst: number, nowMs: number) {
    this.rate = rate;
    this.burst = burst;
    this.#level = burst;
    this.#atMs = nowMs;
  }

  /** Takes `cost` units, or none when there are fewer. @returns whether it took them */
  take(cost: number, nowMs: number): boolean {
    this.#refill(nowMs);
    if (this.#level < cost) {
      return false;
    }
    this.#level -= cost;
    return true;
  }

  /** Takes `cost` units, or all that are left. @returns false when those were fewer */
  drain(cost: number, nowMs: number): boolean {
    const isTaken = this.take(cost, nowMs);
    if (!isTaken) {
      this.#level = 0;
    }
    return isTaken;
  }

  /** Units missing from a full bucket, at the last call of `take` or `drain`. */
  get used(): number {
    return this.burst - this.#level;
  }

  #refill(nowMs: number): void {
    const elapsedMs = nowMs - this.#atMs;
    if (elapsedMs <= 0) {
      return;
    }
    this.#atMs = nowMs;
    this.#level = Math.min(this.burst, this.#level + (elapsedMs * this.rate) / 1000);
  }
}
