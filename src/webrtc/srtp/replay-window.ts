// Replay protection: a sliding window over packet indices (RFC 3711 section 3.3.2, RFC 6347 section
// 4.1.2.6).

/** Covers the 64 indices up to the highest one accepted. */
export class ReplayWindow {
  #top = -1;
  /**
   * Bit n of the window: index `#top - n` was accepted. `#low` has bits 0 to 31, `#high` 32 to 63.
   */
  #low = 0;
  #high = 0;

  /** Whether `index` lies in the window or above it, and was not accepted before. */
  isNew(index: number): boolean {
    const age = this.#top - index;
    if (age < 0) {
      return true;
    }
    if (age >= 64) {
      return false;
    }
    return age < 32 ? ((this.#low >>> age) & 1) === 0 : ((this.#high >>> (age - 32)) & 1) === 0;
  }

  /** Marks `index` as received. Call it only after authentication. */
  accept(index: number): void {
    const step = index - this.#top;
    if (step > 0) {
      if (step >= 64 || this.#top < 0) {
        this.#low = 0;
        this.#high = 0;
      } else if (step >= 32) {
        this.#high = step === 32 ? this.#low : this.#low << (step - 32);
        this.#low = 0;
      } else {
        this.#high = (this.#high << step) | (this.#low >>> (32 - step));
        this.#low <<= step;
      }
      this.#low |= 1;
      this.#top = index;
    } else if (-step < 32) {
      this.#low |= 1 << -step;
    } else {
      this.#high |= 1 << (-step - 32);
    }
  }
}
