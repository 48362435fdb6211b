// Detects a queue on the path that overflows, as distinct from random loss.

/** Shorter queues count as jitter. Those of access links hold 100 ms to seconds ("bufferbloat"). */
const MIN_QUEUING_DELAY_MS = 120;
/** A queue that overflows loses packets in bursts: this many within this time. */
const BURST_PACKETS = 6;
const BURST_MS = 250;
/** A round-trip time is valid for this long. Reports arrive about once a second. */
const ROUND_TRIP_VALID_MS = 1_500;
/** Length of each of the two windows in which the shortest round-trip time is looked for. */
const BASE_WINDOW_MS = 20_000;

/**
 * Queuing delay: the latest round-trip time minus the shortest one of the last 20 to 40 s. The path
 * overflows if there is a queuing delay and packets are lost in a burst. Times are `monotonicMs()`.
 */
export class DelayDetector {
  #roundTripMs = 0;
  #measuredMs = Number.NEGATIVE_INFINITY;
  /**
   * Shortest round-trip time of this window and of the one before. Older ones may be those of
   * another route.
   */
  #shortestMs = Number.POSITIVE_INFINITY;
  #shortestBeforeMs = Number.POSITIVE_INFINITY;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  /** Times of the latest first NACKs, the oldest first. */
  readonly #nackTimesMs: number[] = Array.from(
    { length: BURST_PACKETS },
    () => Number.NEGATIVE_INFINITY,
  );

  /** A report gave the round-trip time of one of our sender reports (RFC 3550 section 6.4.1). */
  onRoundTrip(roundTripMs: number, nowMs: number): void {
    if (nowMs - this.#windowStartMs > BASE_WINDOW_MS) {
      this.#shortestBeforeMs = this.#shortestMs;
      this.#shortestMs = Number.POSITIVE_INFINITY;
      this.#windowStartMs = nowMs;
    }
    this.#shortestMs = Math.min(this.#shortestMs, roundTripMs);
    this.#roundTripMs = roundTripMs;
    this.#measuredMs = nowMs;
  }

  /** A packet was requested for the first time: it is lost. */
  onFirstNack(nowMs: number): void {
    this.#nackTimesMs.shift();
    this.#nackTimesMs.push(nowMs);
  }

  /** How long a packet sent now waits in queues on the path; 0 if not noticeably, or if unknown. */
  queuingDelayMs(nowMs: number): number {
    if (nowMs - this.#measuredMs > ROUND_TRIP_VALID_MS) {
      return 0;
    }
    const delayMs = this.#roundTripMs - Math.min(this.#shortestMs, this.#shortestBeforeMs);
    return delayMs > MIN_QUEUING_DELAY_MS ? delayMs : 0;
  }

  /** Whether a queue on the path overflows. */
  isOverflowing(nowMs: number): boolean {
    return nowMs - this.#nackTimesMs[0]! < BURST_MS && this.queuingDelayMs(nowMs) > 0;
  }
}
