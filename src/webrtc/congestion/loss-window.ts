// Measures the share of packets lost, over enough packets to be meaningful.

/** A window lasts at least this long and covers at least this many packets. */
const MIN_WINDOW_MS = 900;
const MIN_PACKETS = 40;
/** After this time a window ends with fewer packets, too. */
const MAX_WINDOW_MS = 3_000;

/**
 * Chromium sends several reports a second. A still picture takes two packets, so a report may say
 * 50 % where one packet is lost. Used as they are, these reports cut the bitrate to a third on a
 * path that loses 5 %.
 */
export class LossWindow {
  #startMs = Number.NaN;
  #lostAtStart = 0;
  #highestAtStart = 0;

  /**
   * Takes one report (RFC 3550 section 6.4.1).
   * @param lost cumulative number of packets lost
   * @param highest extended highest sequence number received
   * @param nowMs `monotonicMs()`
   * @returns the share lost (0 to 1) since the window began, and begins the next one; undefined
   * while the window is too short
   */
  add(lost: number, highest: number, nowMs: number): number | undefined {
    const expected = (highest - this.#highestAtStart) | 0;
    const elapsedMs = nowMs - this.#startMs;
    const isFirst = Number.isNaN(this.#startMs) || expected < 0;
    if (
      !isFirst &&
      (elapsedMs < MIN_WINDOW_MS || (expected < MIN_PACKETS && elapsedMs < MAX_WINDOW_MS))
    ) {
      return undefined;
    }
    // Duplicates count as received (RFC 3550 appendix A.3), so the cumulative number can fall.
    const share =
      isFirst || expected === 0
        ? undefined
        : Math.min(1, Math.max(0, lost - this.#lostAtStart) / expected);
    this.#startMs = nowMs;
    this.#lostAtStart = lost;
    this.#highestAtStart = highest;
    return share;
  }
}
