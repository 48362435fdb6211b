// Recovery from an overflowing queue on the path: pause the video, let the queue drain, continue
// with a key frame.

/**
 * The pause lasts as long as the queue needs to drain: at most `maxMs`, and `defaultMs` if the
 * queuing delay is unknown. Two recoveries start at least `intervalMs` apart.
 */
const DRAIN = { maxMs: 500, defaultMs: 250, intervalMs: 1_000 } as const;

/**
 * What to do with a coded frame. `request_key_frame`: drop it, and ask the encoder for a key frame.
 */
export type FrameDecision = 'send' | 'drop' | 'request_key_frame';

/**
 * While a queue overflows, retransmissions wait behind the packets that fill it and fill it
 * further. Measured in Chromium on a link that narrowed to 250 kbit/s: seven seconds without a
 * picture. A recovery costs the time that the queue needs to drain, and one key frame.
 *
 * Times are `monotonicMs()`; sequence numbers are those of the video stream (16 bits).
 */
export class KeyFrameRecovery {
  #startedMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = 0;
  #isActive = false;
  #firstSequence: number | undefined = undefined;

  /** Whether the video waits for a key frame. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /** Whether a packet was sent before the last recovery: no retransmission of it is of use. */
  isObsolete(sequenceNumber: number): boolean {
    return (
      this.#firstSequence !== undefined &&
      ((sequenceNumber - this.#firstSequence) & 0xffff) > 0x7fff
    );
  }

  /**
   * Starts a recovery.
   * @param nextSequence that of the key frame, as nothing is sent before it
   * @param queuingDelayMs as DelayDetector estimates it; 0 if unknown
   * @returns false if the last one started too recently
   */
  start(nextSequence: number, queuingDelayMs: number, nowMs: number): boolean {
    if (nowMs - this.#startedMs < DRAIN.intervalMs) {
      return false;
    }
    this.#startedMs = nowMs;
    this.#pausedUntilMs = nowMs + Math.min(DRAIN.maxMs, queuingDelayMs || DRAIN.defaultMs);
    this.#isActive = true;
    this.#firstSequence = nextSequence;
    return true;
  }

  /** Decides on the next coded frame. The first key frame after the pause ends the recovery. */
  decide(isKey: boolean, nowMs: number): FrameDecision {
    if (!this.#isActive) {
      return 'send';
    }
    if (nowMs < this.#pausedUntilMs) {
      return 'drop';
    }
    if (!isKey) {
      return 'request_key_frame';
    }
    this.#isActive = false;
    return 'send';
  }
}
