// Whether a worker hangs: judged by its heartbeat, in time during which both it and the watchdog ran.

export interface WatchdogOptions {
  /** Without `ready` for so long: the start failed. */
  readonly startDeadlineMs: number;
  /** Without a beat for so long: the worker hangs. */
  readonly silenceDeadlineMs: number;
  /** How often `look` is called. */
  readonly lookEveryMs: number;
}

/** Of one interval between two looks, at most this many times `lookEveryMs` counts: the rest is the watchdog's own lateness. */
const LATE_LOOK = 1.5;

export class Watchdog {
  readonly #options: WatchdogOptions;
  #lookedMs: number;
  #beats = 0;
  #silentMs = 0;
  #startingMs = 0;

  constructor(options: WatchdogOptions, nowMs: number) {
    this.#options = options;
    this.#lookedMs = nowMs;
  }

  /**
   * A look that comes late says that the main thread stood still, perhaps the whole machine: what it missed counts as one look,
   * so that a worker is given the rest of its deadline in which to beat.
   * @param beats the worker's count as it is now
   * @returns what the worker is to be ended for, if anything
   */
  look(
    nowMs: number,
    beats: number,
    isReady: boolean,
  ): 'unresponsive' | 'start_failed' | undefined {
    const { startDeadlineMs, silenceDeadlineMs, lookEveryMs } = this.#options;
    const elapsedMs = Math.min(nowMs - this.#lookedMs, LATE_LOOK * lookEveryMs);
    this.#lookedMs = nowMs;
    if (!isReady) {
      this.#startingMs += elapsedMs;
      return this.#startingMs >= startDeadlineMs ? 'start_failed' : undefined;
    }
    this.#silentMs = beats === this.#beats ? this.#silentMs + elapsedMs : 0;
    this.#beats = beats;
    return this.#silentMs >= silenceDeadlineMs ? 'unresponsive' : undefined;
  }
}
