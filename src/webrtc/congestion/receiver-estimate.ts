// What a receiver's estimate (REMB, draft-alvestrand-rmcat-remb-03) says of the path, and what it does not.

/** Share of the target below which what is sent does not try the path. */
const LITTLE = 0.7;
/** An estimate of little is taken at its word below this share of what was sent: jitter alone makes Chromium's 0.85 of what came in some second. */
const NARROW = 0.5;
/** Of the estimate before: less is a fall, more is a rise. Chromium's rises by a twelfth a second, told several times a second. */
const FALL = 0.97;
const RISE = 1.002;
/** An estimate that neither rises nor falls for so long is held down. */
const HELD_MS = 1_000;
/** So long after the last sign of a queue, more than the estimate is tried: near what was too much once, Chromium's rises by a hundredth a second unless more comes in. */
const CALM_MS = 4_000;
const TRY = 1.25;

/**
 * Chromium's estimate (AIMD, draft-ietf-rmcat-gcc-02 section 5.5) begins with what it receives first and never exceeds 1.5 times what it receives. After silence, which
 * is a third of a sentence's rate, it is therefore far below what the path carries, and takes ten seconds to get there: taken at its word, every sentence
 * began at 250 kbit/s on a path that had room for all. What tells of a queue is that the estimate falls, or is held below what is sent.
 */
export class ReceiverEstimate {
  #latestKbps = Number.NaN;
  #risenMs = Number.NEGATIVE_INFINITY;
  #narrowMs = Number.NEGATIVE_INFINITY;
  #boundKbps = Number.POSITIVE_INFINITY;

  /** What the path carries as far as it is known; infinite until it was seen to be narrow. */
  get boundKbps(): number {
    return this.#boundKbps;
  }

  /**
   * @param sentKbps what was sent in the latest second that is known, 0 when none is
   * @param targetKbps what was meant to be sent
   * @param isQueued whether the round trip tells of a queue (QueueWatch)
   */
  add(kbps: number, sentKbps: number, targetKbps: number, isQueued: boolean, nowMs: number): void {
    const isFall = kbps < this.#latestKbps * FALL;
    if (!(kbps <= this.#latestKbps * RISE)) {
      this.#risenMs = nowMs;
    } // the first one as well
    this.#latestKbps = kbps;
    const isHeld = isQueued && kbps < sentKbps && nowMs - this.#risenMs > HELD_MS;
    const isOfLittle = sentKbps < LITTLE * targetKbps && kbps >= NARROW * sentKbps;
    if ((isFall || isHeld) && !isOfLittle) {
      this.#boundKbps = kbps;
      this.#narrowMs = nowMs;
    } else if (Number.isFinite(this.#boundKbps)) {
      this.#boundKbps = Math.max(
        this.#boundKbps,
        nowMs - this.#narrowMs > CALM_MS ? kbps * TRY : kbps,
      );
    }
  }
}
