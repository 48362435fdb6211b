// When a path loses packets and a repair takes a round trip: everything is sent twice, a frame or an audio packet apart, before anybody asks.

/** Shares of packets lost between which packets are sent twice, and below which no longer. More loss than the most is a queue that overflows: then less must be sent. */
const ON_ABOVE = 0.03;
const MOST = 0.12;
const OFF_BELOW = 0.01;
/** Weight of the latest second; the rest is memory. In one second 5 % is four packets, or none. */
const NEWS = 0.3;
/** So many losses apart from each other within a second are enough: reports come later, and the first seconds freeze as well. */
const QUICK_LOSSES = 3;
const QUICK_MS = 1_000;
const APART_MS = 40;
/** After a queue has overflowed, not again for this long. */
const PAUSE_MS = 10_000;

/**
 * Chromium asks for a lost packet at once, and again each 100 ms as long as it does not come; question and answer are lost as easily as the packet was.
 * Measured at 5 % loss and 50 ms jitter: each loss stopped the picture for 100 ms, one in ten for over 200. Holding pictures longer (playout-delay) hides that
 * as well, but the sound follows such a change by an eighth a second: 160 ms ahead of the lips for ten seconds. A copy is there in time and delays nothing.
 */
export class PacketDuplication {
  #loss = 0;
  #isOn = false;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** When the latest losses were told, the latest last. */
  readonly #losses: number[] = Array.from({ length: QUICK_LOSSES }, () => Number.NEGATIVE_INFINITY);

  get isOn(): boolean {
    return this.#isOn;
  }
  /** Share of packets lost, smoothed over some seconds. */
  get loss(): number {
    return this.#loss;
  }

  /** Share of packets lost in the last second or so (LossWindow), 0 to 1. */
  onLoss(share: number, nowMs: number): void {
    this.#loss += (share - this.#loss) * NEWS;
    if (this.#loss > MOST) {
      this.pause(nowMs);
    } else if (this.#loss < OFF_BELOW) {
      this.#isOn = false;
    } else if (this.#loss > ON_ABOVE && nowMs >= this.#pausedUntilMs) {
      this.#isOn = true;
    }
  }

  /** A queue overflows: less must be sent, not more. */
  pause(nowMs: number): void {
    this.#isOn = false;
    this.#pausedUntilMs = nowMs + PAUSE_MS;
  }

  /** A packet was asked for the first time. */
  onAsked(nowMs: number): void {
    const losses = this.#losses;
    if (nowMs - losses.at(-1)! < APART_MS) {
      return;
    }
    losses.shift();
    losses.push(nowMs);
    if (this.#isOn || nowMs < this.#pausedUntilMs || nowMs - losses[0]! > QUICK_MS) {
      return;
    }
    this.#isOn = true;
    this.#loss = Math.max(this.#loss, ON_ABOVE);
  }
}
