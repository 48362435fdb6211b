// A queue on the way that overflows, told from loss by chance: the round trip has grown by what the queue holds, and what is lost is lost in a row.

/** Shorter queues are jitter. Those of access links hold 100 ms to seconds ("bufferbloat"). */
const QUEUE_MS = 120;
/** So many packets missed within so short a time. */
const BURST_PACKETS = 6;
const BURST_MS = 250;
/** A round trip is believed for so long, and the shortest one is looked for over this time at least. */
const FRESH_MS = 1_500;
const SPAN_MS = 20_000;

export class DelayDetector {
  #roundTripMs = 0;
  #toldMs = Number.NEGATIVE_INFINITY;
  /** Shortest of this span and of the one before: a route may change. */
  #leastMs = Number.POSITIVE_INFINITY;
  #leastBeforeMs = Number.POSITIVE_INFINITY;
  #spanFromMs = Number.NEGATIVE_INFINITY;
  readonly #missed: number[] = Array.from(
    { length: BURST_PACKETS },
    () => Number.NEGATIVE_INFINITY,
  );

  /** From a report about one of our sender reports (RFC 3550 section 6.4.1). */
  onRoundTrip(roundTripMs: number, nowMs: number): void {
    if (nowMs - this.#spanFromMs > SPAN_MS) {
      this.#leastBeforeMs = this.#leastMs;
      this.#leastMs = Number.POSITIVE_INFINITY;
      this.#spanFromMs = nowMs;
    }
    this.#leastMs = Math.min(this.#leastMs, roundTripMs);
    this.#roundTripMs = roundTripMs;
    this.#toldMs = nowMs;
  }

  /** A packet was asked for the first time. */
  onMissed(nowMs: number): void {
    this.#missed.shift();
    this.#missed.push(nowMs);
  }

  /** How long what is sent now has to wait on the way; 0 when it does not, or nobody knows. */
  queueMs(nowMs: number): number {
    if (nowMs - this.#toldMs > FRESH_MS) {
      return 0;
    }
    const waitMs = this.#roundTripMs - Math.min(this.#leastMs, this.#leastBeforeMs);
    return waitMs > QUEUE_MS ? waitMs : 0;
  }

  isOverflowing(nowMs: number): boolean {
    return nowMs - this.#missed[0]! < BURST_MS && this.queueMs(nowMs) > 0;
  }
}
