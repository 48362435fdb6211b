// Interprets the receiver's bandwidth estimate (REMB, draft-alvestrand-rmcat-remb-03).

/** Below this share of the target bitrate, the sent bitrate does not probe the path. */
const PROBING_SHARE = 0.7;
/**
 * While the sent bitrate does not probe the path, an estimate counts only below this share of it.
 * Jitter alone makes Chromium report 0.85 of the bitrate received in some second.
 */
const NARROW_SHARE = 0.5;
/**
 * Ratio to the previous estimate: below the first it falls, above the second it rises. Chromium's
 * estimate rises by a twelfth per second, in several messages.
 */
const FALL_RATIO = 0.97;
const RISE_RATIO = 1.002;
/** An estimate that has not risen for this long is held down. */
const HELD_MS = 1_000;
/**
 * After this time without a sign of a queue, try more than the estimate. Near the bitrate that was
 * too much before, Chromium's estimate rises by only a hundredth per second unless it receives
 * more.
 */
const CALM_MS = 4_000;
const PROBE_RATIO = 1.25;

/**
 * Upper bound of what the path carries, from REMB.
 *
 * Chromium's estimate (AIMD, draft-ietf-rmcat-gcc-02 section 5.5) starts with the bitrate received
 * first, and never exceeds 1.5 times the bitrate received. Silence takes a third of the bitrate of
 * a sentence. So at the start of a sentence the estimate is far below what the path carries, and
 * needs ten seconds to catch up. Used as a bound, it started every sentence at 250 kbit/s on a path
 * with room for all. An estimate indicates a queue only if it falls, or is held below the sent
 * bitrate.
 */
export class ReceiverEstimate {
  #latestKbps = Number.NaN;
  #risenMs = Number.NEGATIVE_INFINITY;
  #boundedMs = Number.NEGATIVE_INFINITY;
  #boundKbps = Number.POSITIVE_INFINITY;

  /** What the path carries, as far as known; infinite until an estimate has indicated a queue. */
  get boundKbps(): number {
    return this.#boundKbps;
  }

  /**
   * Takes one estimate.
   * @param sentKbps what was sent in the latest second that is known, 0 if none is
   * @param targetKbps what was to be sent
   * @param hasQueue whether the round-trip time indicates a queue (DelayDetector)
   */
  add(kbps: number, sentKbps: number, targetKbps: number, hasQueue: boolean, nowMs: number): void {
    const isFalling = kbps < this.#latestKbps * FALL_RATIO;
    // Negated, so that the first estimate counts as a rise.
    if (!(kbps <= this.#latestKbps * RISE_RATIO)) {
      this.#risenMs = nowMs;
    }
    this.#latestKbps = kbps;
    const isHeld = hasQueue && kbps < sentKbps && nowMs - this.#risenMs > HELD_MS;
    const isUnprobed = sentKbps < PROBING_SHARE * targetKbps && kbps >= NARROW_SHARE * sentKbps;
    if ((isFalling || isHeld) && !isUnprobed) {
      this.#boundKbps = kbps;
      this.#boundedMs = nowMs;
    } else if (Number.isFinite(this.#boundKbps)) {
      this.#boundKbps = Math.max(
        this.#boundKbps,
        nowMs - this.#boundedMs > CALM_MS ? kbps * PROBE_RATIO : kbps,
      );
    }
  }
}
