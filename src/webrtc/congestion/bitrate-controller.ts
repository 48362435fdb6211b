// Sets the target bitrate of the video encoder: a loss-based controller with the receiver's
// estimate as upper bound.
import { ReceiverEstimate } from './receiver-estimate.ts';

/**
 * Thresholds of draft-ietf-rmcat-gcc-02 section 6: increase below 2 % loss, decrease above 10 %.
 */
const INCREASE_BELOW_LOSS = 0.02;
const DECREASE_ABOVE_LOSS = 0.1;
const INCREASE_PER_SECOND = 0.08;
/** Reports closer together than this do not change the target. */
const MIN_REPORT_INTERVAL_MS = 250;
/**
 * Chromium's estimate is at most 1.5 times what it receives, and falls with jitter: the path may
 * carry this much more.
 */
const ESTIMATE_HEADROOM = 1.5;
/**
 * Report a smaller change only at the limits: each one makes the encoder restart its rate control.
 */
const MIN_RELATIVE_CHANGE = 0.03;

/** Bitrates are in kbit/s, between the least and the greatest that were configured. */
export class BitrateController {
  readonly #minKbps: number;
  readonly #maxKbps: number;
  #lossBasedKbps: number;
  #reportedKbps: number;
  readonly #estimate = new ReceiverEstimate();
  #isDuplicating = false;
  #lastReportMs = Number.NEGATIVE_INFINITY;

  constructor(minKbps: number, maxKbps: number, startKbps: number) {
    this.#minKbps = minKbps;
    this.#maxKbps = Math.max(minKbps, maxKbps);
    this.#lossBasedKbps = this.#reportedKbps = this.#clamp(startKbps);
  }

  /**
   * Whether to send each video packet twice. Set it while duplication is wanted; it reads false
   * while the path is too narrow for twice the least bitrate.
   */
  get isDuplicating(): boolean {
    return this.#isDuplicating && this.#pathKbps * ESTIMATE_HEADROOM >= 2 * this.#minKbps;
  }
  set isDuplicating(isDuplicating: boolean) {
    this.#isDuplicating = isDuplicating;
  }

  /**
   * What the path carries: the bound from the receiver's estimate, else what was sent without much
   * loss.
   */
  get #pathKbps(): number {
    const { boundKbps } = this.#estimate;
    return Number.isFinite(boundKbps) ? boundKbps : this.#lossBasedKbps;
  }

  /** Bitrate for the encoder: half of what the path carries while packets are duplicated. */
  get targetKbps(): number {
    const bound = this.isDuplicating ? this.#pathKbps / 2 : this.#estimate.boundKbps;
    return this.#clamp(Math.min(this.#lossBasedKbps, bound));
  }

  /** @param fraction share of packets lost since the last call, 0 to 1 (LossWindow) */
  onLoss(fraction: number, nowMs: number): void {
    const elapsedMs = nowMs - this.#lastReportMs;
    if (elapsedMs < MIN_REPORT_INTERVAL_MS) {
      return;
    }
    this.#lastReportMs = nowMs;
    if (fraction > DECREASE_ABOVE_LOSS) {
      this.#lossBasedKbps = this.#clamp(this.targetKbps * (1 - fraction / 2));
    } else if (fraction < INCREASE_BELOW_LOSS) {
      this.#lossBasedKbps = this.#clamp(
        this.#lossBasedKbps * (1 + (INCREASE_PER_SECOND * Math.min(elapsedMs, 1000)) / 1000),
      );
    }
  }

  /**
   * Takes the receiver's estimate (REMB).
   * @param sentKbps what was sent in the latest second that is known, 0 if none is
   * @param hasQueue whether the round-trip time indicates a queue (DelayDetector)
   */
  onRemb(bitsPerSecond: number, sentKbps: number, hasQueue: boolean, nowMs: number): void {
    this.#estimate.add(bitsPerSecond / 1000, sentKbps, this.targetKbps, hasQueue, nowMs);
  }

  /** A queue on the path overflows (DelayDetector): the receiver's estimate bounds the target. */
  onOverflow(nowMs: number): void {
    this.#estimate.onOverflow(nowMs);
  }

  /** The target if it differs noticeably from the one returned last, else 0. */
  takeChange(): number {
    const target = this.targetKbps;
    const isAtLimit = target === this.#minKbps || target === this.#maxKbps;
    const change = Math.abs(target - this.#reportedKbps);
    if (change === 0 || (!isAtLimit && change < this.#reportedKbps * MIN_RELATIVE_CHANGE)) {
      return 0;
    }
    this.#reportedKbps = target;
    return target;
  }

  #clamp(kbps: number): number {
    return Math.round(Math.min(this.#maxKbps, Math.max(this.#minKbps, kbps)));
  }
}
