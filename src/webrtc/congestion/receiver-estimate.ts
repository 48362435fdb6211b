// Interprets the receiver's bandwidth estimate (REMB, draft-alvestrand-rmcat-remb-03).

/** Below this share of the target bitrate, the sent bitrate does not probe the path. */
const PROBING_SHARE = 0.7;
/** Below this share of the target bitrate is silence. Speech takes 0.35 to 0.45 of 600 kbit/s. */
const SPEECH_SHARE = 0.25;
/**
 * While the sent bitrate does not probe the path, an estimate counts only below this share of it.
 * Jitter alone makes Chromium report 0.85 of the bitrate received in some second.
 */
const NARROW_SHARE = 0.5;
/** Below this ratio to the previous estimate, an estimate falls. */
const FALL_RATIO = 0.97;
/**
 * An estimate that does not rise by this ratio within HELD_MS is held down. Chromium's estimate
 * rises by a twelfth per second on a free path, and by a hundredth per second near a bitrate that
 * was too much before.
 */
const RISE_RATIO = 1.03;
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
 * bitrate while the round-trip time indicates a queue, too.
 */
export class ReceiverEstimate {
  #latestKbps = Number.NaN;
  /** The estimate when it had last risen or fallen, and when that was. */
  #referenceKbps = Number.NaN;
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
    if (!(kbps <= this.#referenceKbps * RISE_RATIO)) {
      this.#referenceKbps = kbps;
      this.#risenMs = nowMs;
    }
    this.#referenceKbps = Math.min(this.#referenceKbps, kbps);
    this.#latestKbps = kbps;
    const isUnprobed = sentKbps < PROBING_SHARE * targetKbps && kbps >= NARROW_SHARE * sentKbps;
    // With a queue, what is sent in speech is too much, however far below the target it is. In
    // silence a single late report would start the next sentence at the least bitrate.
    const isHeld =
      hasQueue &&
      kbps < sentKbps &&
      nowMs - this.#risenMs > HELD_MS &&
      sentKbps > SPEECH_SHARE * targetKbps;
    if (isHeld || (isFalling && !isUnprobed)) {
      this.#bound(kbps, nowMs);
    } else if (Number.isFinite(this.#boundKbps)) {
      this.#boundKbps = Math.max(
        this.#boundKbps,
        nowMs - this.#boundedMs > CALM_MS ? kbps * PROBE_RATIO : kbps,
      );
    }
  }

  /** A queue on the path overflows: the latest estimate is the bound. */
  onOverflow(nowMs: number): void {
    if (!Number.isNaN(this.#latestKbps)) {
      this.#bound(this.#latestKbps, nowMs);
    }
  }

  #bound(kbps: number, nowMs: number): void {
    this.#boundKbps = kbps;
    this.#boundedMs = nowMs;
  }
}
