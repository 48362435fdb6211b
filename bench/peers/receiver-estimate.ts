// What a receiver believes its path can carry: additive increase, decrease on loss or growing delay
// (after Google congestion control, draft-ietf-rmcat-gcc section 5 and 6, without its filter).
// Enough to see whether a sender obeys REMB; not a product.

const WINDOW_MS = 500;
const QUEUE_LIMIT_MS = 60;
const LOSS_LIMIT = 0.1;

export class ReceiverEstimate {
  /** bit/s */
  bitrate: number;
  #bytes = 0;
  #packets = 0;
  #lost = 0;
  #windowStartMs = 0;
  #leastDelayMs = Number.POSITIVE_INFINITY;
  #delaySumMs = 0;

  constructor(startBitrate = 1_000_000) {
    this.bitrate = startBitrate;
  }

  /** @param delayMs arrival time minus media time: only its changes mean anything */
  onPacket(bytes: number, delayMs: number): void {
    this.#bytes += bytes;
    this.#packets++;
    this.#leastDelayMs = Math.min(this.#leastDelayMs, delayMs);
    this.#delaySumMs += delayMs;
  }

  onLoss(packets: number): void {
    this.#lost += packets;
  }

  /** @returns true when a window has passed and `bitrate` should be reported. */
  update(nowMs: number): boolean {
    if (this.#windowStartMs === 0) {
      this.#windowStartMs = nowMs;
    }
    const elapsedMs = nowMs - this.#windowStartMs;
    if (elapsedMs < WINDOW_MS || this.#packets === 0) {
      return false;
    }
    const received = (this.#bytes * 8000) / elapsedMs;
    const queuedMs = this.#delaySumMs / this.#packets - this.#leastDelayMs;
    const lossRatio = this.#lost / (this.#lost + this.#packets);
    if (queuedMs > QUEUE_LIMIT_MS) {
      this.bitrate = Math.min(this.bitrate, 0.85 * received);
    } else if (lossRatio > LOSS_LIMIT) {
      this.bitrate *= 1 - 0.5 * lossRatio;
    }
    // A sender with little to say proves nothing about the path: no increase then, but no decrease
    // either.
    else if (this.bitrate < 1.5 * received + 10_000) {
      this.bitrate = Math.min(this.bitrate * 1.08, 4_000_000);
    }
    this.bitrate = Math.max(this.bitrate, 50_000);
    this.#windowStartMs = nowMs;
    this.#bytes = this.#packets = this.#lost = this.#delaySumMs = 0;
    // The least delay is forgotten slowly, so that a route that became longer is not taken for a
    // queue for ever.
    this.#leastDelayMs++;
    return true;
  }
}
