// Decides when to send every packet twice: on paths that lose packets at random.

/** Smoothed share of packets lost at which duplication starts, and below which it stops. */
const ON_ABOVE_LOSS = 0.03;
const OFF_BELOW_LOSS = 0.01;
/** More loss than this comes from a queue that overflows; then send less, not more. */
const OVERFLOW_ABOVE_LOSS = 0.12;
/**
 * Weight of the latest second in the smoothed loss: 5 % loss is four packets in one second, and
 * none in another.
 */
const SMOOTHING = 0.3;
/**
 * Start before the first loss report after this many losses within a second, if they are some time
 * apart. Otherwise the first seconds of a session freeze.
 */
const QUICK_START_LOSSES = 3;
const QUICK_START_MS = 1_000;
const MIN_LOSS_SPACING_MS = 40;
/** No duplication for this long after a queue has overflowed. */
const PAUSE_MS = 10_000;

/**
 * Chromium sends a NACK at once, and repeats it every 100 ms; NACK and retransmission are as likely
 * to be lost as the packet was. Measured at 5 % loss and 50 ms jitter: each loss stopped the
 * picture for 100 ms, one in ten for more than 200 ms. A longer playout delay would hide this, but
 * the audio follows a change of it by only 1/8 s per second: 160 ms ahead of the lips for ten
 * seconds. A duplicate, sent one frame or audio packet later, arrives in time and adds no delay.
 *
 * Times are `monotonicMs()`.
 */
export class PacketDuplication {
  #loss = 0;
  #isOn = false;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** Times of the latest losses, the oldest first. */
  readonly #lossTimesMs: number[] = Array.from(
    { length: QUICK_START_LOSSES },
    () => Number.NEGATIVE_INFINITY,
  );

  /** Whether to send every packet twice. */
  get isOn(): boolean {
    return this.#isOn;
  }
  /** Share of packets lost, 0 to 1, smoothed over some seconds. */
  get loss(): number {
    return this.#loss;
  }

  /** @param share share of packets lost in about the last second, 0 to 1 (LossWindow) */
  onLoss(share: number, nowMs: number): void {
    this.#loss += (share - this.#loss) * SMOOTHING;
    if (this.#loss > OVERFLOW_ABOVE_LOSS) {
      this.pause(nowMs);
    } else if (this.#loss < OFF_BELOW_LOSS) {
      this.#isOn = false;
    } else if (this.#loss > ON_ABOVE_LOSS && nowMs >= this.#pausedUntilMs) {
      this.#isOn = true;
    }
  }

  /** Stops duplication for some seconds: a queue overflows. */
  pause(nowMs: number): void {
    this.#isOn = false;
    this.#pausedUntilMs = nowMs + PAUSE_MS;
  }

  /** A packet was requested for the first time: it is lost. */
  onFirstNack(nowMs: number): void {
    const times = this.#lossTimesMs;
    if (nowMs - times.at(-1)! < MIN_LOSS_SPACING_MS) {
      return;
    }
    times.shift();
    times.push(nowMs);
    if (this.#isOn || nowMs < this.#pausedUntilMs || nowMs - times[0]! > QUICK_START_MS) {
      return;
    }
    this.#isOn = true;
    this.#loss = Math.max(this.#loss, ON_ABOVE_LOSS);
  }
}
