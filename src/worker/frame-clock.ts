// The frame clock of one session: which of its frames is due at a tick, and which is too late.
import { FRAME_MS } from '../media/timeline.ts';

/**
 * Ticks per frame. Sessions are spread over these slots, so that a frame waits for a quarter of the
 * other sessions at most, and audio, which is sent at every tick, is at most a quarter frame late.
 */
export const SLOTS_PER_FRAME = 4;
/** Time between two ticks, milliseconds. */
export const TICK_MS = FRAME_MS / SLOTS_PER_FRAME;

/**
 * - wait: no new frame is due.
 * - show: `frame` is due now.
 * - drop: a frame is due but too late. It is left out; the one after it is shown.
 */
export type FrameDecision = 'wait' | 'show' | 'drop';

/** Takes ticks and times as arguments and reads no clock. */
export class FrameClock {
  /** Slot of a frame in which this session's frames are due: 0 to SLOTS_PER_FRAME - 1. */
  slot = 0;
  #firstTick = -1;
  #epochMs = 0;
  #frame = -1;
  #droppedFrame = -1;
  #skipped = 0;
  /** Ticks from the time of `frame` to that of the picture; 0 unless it was inserted. */
  #insertedTicks = 0;

  /** Media flows: `start` was called. */
  get isRunning(): boolean {
    return this.#firstTick >= 0;
  }

  /** Monotonic time of media time 0. */
  get epochMs(): number {
    return this.#epochMs;
  }

  /** Number of the frame that was shown last, or is being made; -1 before the first. */
  get frame(): number {
    return this.#frame;
  }

  /** Monotonic time of `frame`. */
  get frameMs(): number {
    return this.#epochMs + this.#frame * FRAME_MS;
  }

  /** Frames from media time 0 to the picture: `frame`, or more if the picture was inserted. */
  get picturePosition(): number {
    return this.#frame + this.#insertedTicks / SLOTS_PER_FRAME;
  }

  /** Media time of the picture that was shown last, or is being made. */
  get pictureMediaMs(): number {
    return this.picturePosition * FRAME_MS;
  }

  /** Frames between the last two shown that were not shown. */
  get skipped(): number {
    return this.#skipped;
  }

  /**
   * Puts frame 0 on the tick of this session's slot that is now or was last: nobody waits for its
   * slot to come round.
   * @param originMs monotonic time of tick 0
   */
  start(tick: number, originMs: number): void {
    const sinceSlot = (((tick - this.slot) % SLOTS_PER_FRAME) + SLOTS_PER_FRAME) % SLOTS_PER_FRAME;
    this.#firstTick = tick - sinceSlot;
    this.#epochMs = originMs + this.#firstTick * TICK_MS;
  }

  /** How late the picture is at `nowMs`, in milliseconds; negative when it is early. */
  lateMs(nowMs: number): number {
    return nowMs - (this.#epochMs + this.pictureMediaMs);
  }

  /** How late the frame was that was dropped last, had it been shown at `nowMs`. */
  droppedLateMs(nowMs: number): number {
    return nowMs - (this.#epochMs + this.#droppedFrame * FRAME_MS);
  }

  /** Decides about the newest frame that is due at `tick`; `show` advances `frame` to it. */
  advance(tick: number, nowMs: number): FrameDecision {
    const due = Math.floor((tick - this.#firstTick) / SLOTS_PER_FRAME);
    if (due <= this.#frame || due === this.#droppedFrame) {
      return 'wait';
    }
    if (this.#isTooLate(due, nowMs)) {
      this.#droppedFrame = due;
      return 'drop';
    }
    this.#skipped = this.#frame < 0 ? 0 : due - this.#frame - 1;
    this.#frame = due;
    this.#insertedTicks = 0;
    return 'show';
  }

  /**
   * Inserts a picture at `tick`, between `frame` and the frame after it. Call it when no frame is
   * due; frames stay where they are.
   * @returns false when there was a picture at this tick already, or none yet at all
   */
  insert(tick: number): boolean {
    const ticks = tick - this.#firstTick - this.#frame * SLOTS_PER_FRAME;
    if (this.#frame < 0 || ticks <= this.#insertedTicks) {
      return false;
    }
    this.#insertedTicks = ticks;
    return true;
  }

  /**
   * A frame that is more than half a frame late is nearer to the time of the next one, which is
   * shown instead. Without this a stall of 40 ms made all sessions due at once, each tick as long
   * as many, and frames late for 200 ms after. Never two in a row: a session that is always late is
   * shown all the same. The first frame is never dropped.
   */
  #isTooLate(frame: number, nowMs: number): boolean {
    const lateMs = nowMs - (this.#epochMs + frame * FRAME_MS);
    return lateMs > FRAME_MS / 2 && this.#frame >= 0 && this.#droppedFrame <= this.#frame;
  }
}
