// Detects a worker that hangs, by its heartbeat. Counts only time in which the watchdog ran too.

/** Times of a watchdog, in milliseconds. */
export interface WatchdogOptions {
  /** A worker that is not ready after this time failed to start. */
  readonly startDeadlineMs: number;
  /** A worker whose heartbeat stands still for this time hangs. */
  readonly silenceDeadlineMs: number;
  /** How often `check` is called. */
  readonly checkIntervalMs: number;
}

/**
 * Between two checks at most this multiple of `checkIntervalMs` counts. The rest is the watchdog's
 * own delay.
 */
const MAX_COUNTED_INTERVALS = 1.5;

/** Watches one worker. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  #checkedMs: number;
  #heartbeats = 0;
  #silentMs = 0;
  #startingMs = 0;

  constructor(options: WatchdogOptions, nowMs: number) {
    this.#options = options;
    this.#checkedMs = nowMs;
  }

  /**
   * A late check means that the main thread, or the whole machine, stood still. It counts as one
   * interval, so that the worker has the rest of its deadline for a heartbeat.
   * @param heartbeats the worker's count now
   * @returns why the worker must be ended, if it must
   */
  check(
    nowMs: number,
    heartbeats: number,
    isReady: boolean,
  ): 'unresponsive' | 'start_failed' | undefined {
    const { startDeadlineMs, silenceDeadlineMs, checkIntervalMs } = this.#options;
    const elapsedMs = Math.min(nowMs - this.#checkedMs, MAX_COUNTED_INTERVALS * checkIntervalMs);
    this.#checkedMs = nowMs;
    if (!isReady) {
      this.#startingMs += elapsedMs;
      return this.#startingMs >= startDeadlineMs ? 'start_failed' : undefined;
    }
    this.#silentMs = heartbeats === this.#heartbeats ? this.#silentMs + elapsedMs : 0;
    this.#heartbeats = heartbeats;
    return this.#silentMs >= silenceDeadlineMs ? 'unresponsive' : undefined;
  }
}
