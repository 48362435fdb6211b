// The share of packets lost, over enough packets that it means something. Chromium reports several times a second, and one of the two
// packets of a still picture is no loss of 50 %: taken at its word, a path that loses 5 % cut the bitrate to a third.

const LEAST_MS = 900;
const LEAST_PACKETS = 40;
/** Few packets are judged after this time all the same. */
const MOST_MS = 3_000;

export class LossWindow {
  #fromMs = Number.NaN;
  #lost = 0;
  #highest = 0;

  /**
   * Takes one report (RFC 3550 section 6.4.1): packets lost since the start, and the extended highest sequence number received.
   * @returns the share lost (0 to 1) since the window began, once it is long enough; else null.
   */
  add(lost: number, highest: number, nowMs: number): number | undefined {
    const expected = (highest - this.#highest) | 0;
    const elapsedMs = nowMs - this.#fromMs;
    const isFirst = Number.isNaN(this.#fromMs) || expected < 0;
    if (!isFirst && (elapsedMs < LEAST_MS || (expected < LEAST_PACKETS && elapsedMs < MOST_MS))) {
      return undefined;
    }
    // Copies that came count as received, so that the number of lost ones can fall.
    const share =
      isFirst || expected === 0
        ? undefined
        : Math.min(1, Math.max(0, lost - this.#lost) / expected);
    this.#fromMs = nowMs;
    this.#lost = lost;
    this.#highest = highest;
    return share;
  }
}
