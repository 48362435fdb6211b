// Detects a queue on the path that overflows, as distinct from random loss.

/** Shorter queues count as jitter. Those of access links hold 100 ms to seconds ("bufferbloat"). */
const MIN_QUEUING_DELAY_MS = 120;
/**
 * A queue that overflows loses this many packets within this time. Of 300 kbit/s into a link of
 * 250 kbit/s, a packet is lost every 60 to 100 ms.
 */
const BURST_PACKETS = 5;
const BURST_MS = 600;
/** A round-trip time is valid for this long. One is measured about once a second. */
const ROUND_TRIP_VALID_MS = 2_500;
/** Receivers request a lost packet at once, or up to this much later, with others. */
const NACK_INTERVAL_MS = 100;
/**
 * So many NACKs within this time, all of them late, show a queue. One that is late may repeat a
 * NACK that was lost.
 */
const LATE_NACKS = 3;
const LATE_NACKS_MS = 1_000;
/** Length of each of the two windows in which the shortest round-trip time is looked for. */
const BASE_WINDOW_MS = 20_000;

interface Nack {
  readonly atMs: number;
  /** From the sending of the packet that showed the loss to the arrival of the NACK. */
  readonly delayMs: number;
}

/**
 * Queuing delay: the latest round-trip time minus the shortest one of the last 20 to 40 s. NACKs
 * show it, too: where a queue overflows, sender reports are lost, and no round-trip time is
 * measured. The path overflows if there is a queuing delay and packets are lost in a burst. Times
 * are `monotonicMs()`.
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
  /** The latest first NACKs, the oldest first. */
  readonly #nacks: Nack[] = Array.from({ length: BURST_PACKETS }, () => ({
    atMs: Number.NEGATIVE_INFINITY,
    delayMs: 0,
  }));

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

  /**
   * A packet was requested for the first time: it is lost.
   * @param delayMs since the packet after it was sent
   */
  onFirstNack(delayMs: number, nowMs: number): void {
    this.#nacks.shift();
    this.#nacks.push({ atMs: nowMs, delayMs });
  }

  /** How long a packet sent now waits in queues on the path; 0 if not noticeably, or if unknown. */
  queuingDelayMs(nowMs: number): number {
    const shortestMs = Math.min(this.#shortestMs, this.#shortestBeforeMs);
    const isMeasured = nowMs - this.#measuredMs <= ROUND_TRIP_VALID_MS;
    const delayMs = Math.max(
      isMeasured ? this.#roundTripMs - shortestMs : 0,
      this.#nackDelayMs(nowMs) - shortestMs - NACK_INTERVAL_MS,
    );
    return delayMs > MIN_QUEUING_DELAY_MS ? delayMs : 0;
  }

  /** The shortest delay of the latest NACKs; 0 if there are too few. */
  #nackDelayMs(nowMs: number): number {
    const nacks = this.#nacks.slice(-LATE_NACKS);
    return nowMs - nacks[0]!.atMs > LATE_NACKS_MS
      ? 0
      : Math.min(...nacks.map(({ delayMs }) => delayMs));
  }

  /** Whether a queue on the path overflows. */
  isOverflowing(nowMs: number): boolean {
    return nowMs - this.#nacks[0]!.atMs < BURST_MS && this.queuingDelayMs(nowMs) > 0;
  }
}
