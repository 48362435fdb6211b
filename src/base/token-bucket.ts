// A token bucket: how much may be had at once, and how fast it comes back.

export class TokenBucket {
  /** Units per second. May be changed at any time; what was gained so far stays. */
  rate: number;
  readonly burst: number;
  #level: number;
  #atMs: number;

  /** Full at first. `nowMs` is on a monotonic clock, here and in `take`. */
  constructor(rate: number, burst: number, nowMs: number) {
    this.rate = rate;
    this.burst = burst;
    this.#level = burst;
    this.#atMs = nowMs;
  }

  /** Takes `cost` if it is there, and nothing otherwise. */
  take(cost: number, nowMs: number): boolean {
    this.#refill(nowMs);
    if (this.#level < cost) {
      return false;
    }
    this.#level -= cost;
    return true;
  }

  /** Takes `cost`, or what is left of it. @returns false when that was less */
  drain(cost: number, nowMs: number): boolean {
    const isThere = this.take(cost, nowMs);
    if (!isThere) {
      this.#level = 0;
    }
    return isThere;
  }

  /** What is missing from a full bucket, as of the last call of `take` or `drain`. */
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
