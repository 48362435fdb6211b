// When an utterance begins to be played: as soon as all that follows will be in time.
import { AUDIO_PACKET_MS, FRAME_MS, SPEECH_RATE } from '../../media/timeline.ts';
import type { SpeechSource } from './speech-source.ts';

const SAMPLES_PER_MS = SPEECH_RATE / 1000;
/** Length of the pieces in which paced speech usually arrives. */
const PIECE_MS = 20;
/** The margin: how late a piece of paced speech may arrive without an underrun. */
const MARGIN_START_MS = 20;
const MARGIN_MIN_MS = 6;
const MARGIN_MAX_MS = 160;
/** What an underrun adds to the margin. */
const MARGIN_STEP_MS = 10;
/**
 * Speech that shall still wait when a step was taken and the next piece is about to arrive. If it was
 * less in an utterance, the next one has as much more margin. If it was more, the next one has less
 * margin, by this share of it and at most by this much.
 */
const HEADROOM_MS = 6;
const SHRINK_SHARE = 0.15;
const SHRINK_MAX_MS = 5;
/** An utterance with more headroom arrived ahead of real time, and tells nothing about late pieces. */
const PACED_HEADROOM_MS = 200;
/**
 * An utterance too short for what the first frame needs starts after the time of this need, and as
 * much more.
 */
const START_PATIENCE_MS = 60;

/** Decides for one speech stream. Times are monotonic. */
export class UtteranceStart {
  readonly #lookaheadMs: number;
  #marginMs = MARGIN_START_MS;
  #waitingSinceMs = -1;
  /** Least speech that was left by a step of this utterance after which more arrived. */
  #headroomMs = Infinity;
  /** The same of the steps since the last piece: if none follows, the utterance was over. */
  #leftMs = Infinity;
  /** What the last step left. */
  #lastLeftMs = 0;

  constructor(lookaheadMs: number) {
    this.#lookaheadMs = lookaheadMs;
  }

  /** Speech that must be there beyond the need, where it is not known to be paced. */
  get reserveMs(): number {
    return this.#marginMs + PIECE_MS;
  }

  /**
   * Where in the next packet the utterance can begin that waits in `source`.
   *
   * A frame shown now needs the speech up to its own middle and the look-ahead beyond it, and each
   * later frame as much more as time has passed. Of speech that is paced in real time, at least as
   * much has always arrived as time has passed since its first piece. So its first sample is played
   * when the first piece is older by what a frame needs, and by the margin. Speech that is ahead of
   * real time by more than a piece does not wait for that.
   * @param packetMs time of the next packet
   * @returns silence before the first sample, in milliseconds; undefined when it is not time yet
   */
  leadInMs(source: SpeechSource, packetMs: number, nowMs: number): number | undefined {
    const { available, arrivalMs, isDone } = source;
    if (available === 0) {
      this.#waitingSinceMs = -1;
      return undefined;
    }
    if (this.#waitingSinceMs < 0) {
      this.#waitingSinceMs = nowMs;
    }
    const needMs = FRAME_MS / 2 + this.#lookaheadMs;
    const spareMs = available / SAMPLES_PER_MS - (nowMs - packetMs + needMs);
    const patienceMs = needMs + Math.max(START_PATIENCE_MS, this.reserveMs);
    if (spareMs >= this.reserveMs || isDone || nowMs - this.#waitingSinceMs >= patienceMs) {
      return 0;
    }
    const firstSampleMs = arrivalMs + needMs + this.#marginMs;
    const leadInMs = Math.max(0, firstSampleMs - packetMs);
    const isNear = firstSampleMs <= nowMs + AUDIO_PACKET_MS && leadInMs < AUDIO_PACKET_MS;
    return isNear && spareMs + leadInMs >= 0 ? leadInMs : undefined;
  }

  /** More has arrived than real time brings, by as much as a start needs. */
  isBurst({ available, arrivalMs, isDone }: SpeechSource, nowMs: number): boolean {
    const aheadMs = available / SAMPLES_PER_MS - (nowMs - arrivalMs);
    return isDone || aheadMs >= this.#lookaheadMs + this.reserveMs;
  }

  /** The utterance begins now. */
  begun(): void {
    this.#waitingSinceMs = -1;
    if (this.#headroomMs < PACED_HEADROOM_MS) {
      const tooMuchMs = this.#headroomMs - HEADROOM_MS;
      const changeMs =
        tooMuchMs < 0 ? -tooMuchMs : -Math.min(SHRINK_MAX_MS, SHRINK_SHARE * tooMuchMs);
      this.#setMargin(this.#marginMs + changeMs);
    }
    this.#headroomMs = this.#leftMs = Infinity;
    this.#lastLeftMs = 0;
  }

  /** A step of the model took speech: `count` samples, of which `left` are still there. */
  taken(count: number, left: number): void {
    const leftMs = left / SAMPLES_PER_MS;
    if (count / SAMPLES_PER_MS + leftMs > this.#lastLeftMs) {
      this.#headroomMs = Math.min(this.#headroomMs, this.#leftMs);
      this.#leftMs = Infinity;
    }
    this.#leftMs = Math.min(this.#leftMs, leftMs);
    this.#lastLeftMs = leftMs;
  }

  /** A piece came so late that there was a gap. */
  pieceWasLate(): void {
    this.#setMargin(this.#marginMs + MARGIN_STEP_MS);
  }

  #setMargin(marginMs: number): void {
    this.#marginMs = Math.min(MARGIN_MAX_MS, Math.max(MARGIN_MIN_MS, marginMs));
  }

  /** What waited was dropped. */
  reset(): void {
    this.#waitingSinceMs = -1;
  }
}
