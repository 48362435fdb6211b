// The bandwidth that retransmissions may take: a token bucket, filled by a share of the target
// bitrate.

/** Share of the target bitrate that retransmissions may take. */
const RETRANSMIT_SHARE = 0.2;
/** Capacity of the bucket: enough to repair a lost key frame. */
const RETRANSMIT_BURST_BYTES = 40_000;
const BYTES_PER_SECOND_OF_KBPS = 125;

/** Times are `monotonicMs()`. The bucket starts full. */
export class RetransmissionBudget {
  #bytes = RETRANSMIT_BURST_BYTES;
  #updatedMs = 0;

  /** Starts the clock. The time before does not fill the bucket. */
  start(nowMs: number): void {
    this.#updatedMs = nowMs;
  }

  /** @returns false, and takes nothing, if fewer than `bytes` are left. */
  take(bytes: number, targetKbps: number, nowMs: number): boolean {
    const elapsedSeconds = (nowMs - this.#updatedMs) / 1000;
    const earned = elapsedSeconds * targetKbps * BYTES_PER_SECOND_OF_KBPS * RETRANSMIT_SHARE;
    this.#bytes = Math.min(RETRANSMIT_BURST_BYTES, this.#bytes + Math.max(0, earned));
    this.#updatedMs = nowMs;
    if (this.#bytes < bytes) {
      return false;
    }
    this.#bytes -= bytes;
    return true;
  }

  /** Leaves at most `bytes` in the bucket. It fills up again at the usual rate. */
  limitTo(bytes: number): void {
    this.#bytes = Math.min(this.#bytes, bytes);
  }
}
