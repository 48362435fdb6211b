// What to ask of the encoder: a loss-based controller (as in draft-ietf-rmcat-gcc-02 section 6) under REMB's upper bound.
import { ReceiverEstimate } from './receiver-estimate.ts';

const GROW_BELOW_LOSS = 0.02;
const CUT_ABOVE_LOSS = 0.1;
const GROWTH_PER_SECOND = 0.08;
const MIN_REPORT_INTERVAL_MS = 250;
/** A receiver's estimate is at most 1.5 times what it receives (Chromium's), and falls with sudden jitter: so much more than it can be tried. */
const REACH = 1.5;
/** A report of a change smaller than this is not worth an encoder's new rate control. */
const MIN_RELATIVE_CHANGE = 0.03;

export class BitrateController {
  readonly #minKbps: number;
  readonly #maxKbps: number;
  #kbps: number;
  #reportedKbps: number;
  readonly #estimate = new ReceiverEstimate();
  #isTwofold = false;
  #lastReportMs = Number.NEGATIVE_INFINITY;

  constructor(minKbps: number, maxKbps: number, startKbps: number) {
    this.#minKbps = minKbps;
    this.#maxKbps = Math.max(minKbps, maxKbps);
    this.#kbps = this.#reportedKbps = this.#clamp(startKbps);
  }

  /** Set while all packets are to be sent twice. Reads false when the path is too narrow for two pictures of the least rate. */
  get isTwofold(): boolean {
    return this.#isTwofold && this.#pathKbps * REACH >= 2 * this.#minKbps;
  }
  set isTwofold(isTwofold: boolean) {
    this.#isTwofold = isTwofold;
  }

  /** What the path is thought to carry: the receiver's estimate, else what was sent without much loss. */
  get #pathKbps(): number {
    return Number.isFinite(this.#estimate.boundKbps) ? this.#estimate.boundKbps : this.#kbps;
  }

  get targetKbps(): number {
    return this.#clamp(
      Math.min(this.#kbps, this.isTwofold ? this.#pathKbps / 2 : this.#estimate.boundKbps),
    );
  }

  /** Share of packets lost since the last call (LossWindow), 0 to 1. */
  onLoss(fraction: number, nowMs: number): void {
    const elapsedMs = nowMs - this.#lastReportMs;
    if (elapsedMs < MIN_REPORT_INTERVAL_MS) {
      return;
    }
    this.#lastReportMs = nowMs;
    if (fraction > CUT_ABOVE_LOSS) {
      this.#kbps = this.#clamp(this.targetKbps * (1 - fraction / 2));
    } else if (fraction < GROW_BELOW_LOSS) {
      this.#kbps = this.#clamp(
        this.#kbps * (1 + (GROWTH_PER_SECOND * Math.min(elapsedMs, 1000)) / 1000),
      );
    }
  }

  /**
   * A receiver's estimate (REMB).
   * @param sentKbps what was sent in the latest second that is known, 0 when none is
   * @param isQueued whether the round trip tells of a queue (QueueWatch)
   */
  onRemb(bitsPerSecond: number, sentKbps: number, isQueued: boolean, nowMs: number): void {
    this.#estimate.add(bitsPerSecond / 1000, sentKbps, this.targetKbps, isQueued, nowMs);
  }

  /** The new target in kbit/s when it differs noticeably from the one given last, else 0. */
  takeChange(): number {
    const target = this.targetKbps;
    const isEdge = target === this.#minKbps || target === this.#maxKbps;
    if (
      target === this.#reportedKbps ||
      (!isEdge && Math.abs(target - this.#reportedKbps) < this.#reportedKbps * MIN_RELATIVE_CHANGE)
    ) {
      return 0;
    }
    this.#reportedKbps = target;
    return target;
  }

  #clamp(kbps: number): number {
    return Math.round(Math.min(this.#maxKbps, Math.max(this.#minKbps, kbps)));
  }
}
