// Estimates when static videos will be finished, from the speed measured so far and the queue.
import { monotonicMs } from '../../base/time.ts';

/** Seconds of video per second of work, before anything was measured. */
const INITIAL_SPEED = 8;
/** Weight of the newest measurement, for a video of 10 s or more. */
const SMOOTHING = 0.3;
/** Time to load the model and the face, and to write the files. */
const FIXED_SECONDS = 0.5;

interface Pending {
  readonly seconds: number;
  readonly queuedMs: number;
  startedMs: number | undefined;
  /** Seconds of work on it so far, waiting for its turn not included. */
  worked: () => number;
}

/** Knows all queued and running videos of this server. */
export class EtaEstimator {
  readonly #threads: number;
  readonly #pending = new Map<string, Pending>();
  #speed = INITIAL_SPEED;

  constructor(threads: number) {
    this.#threads = threads;
  }

  /** A video of this length was queued. */
  queued(id: string, seconds: number): void {
    this.#pending.set(id, {
      seconds,
      queuedMs: monotonicMs(),
      startedMs: undefined,
      worked: () => 0,
    });
  }

  /** A video is rendered from now on. @param worked seconds of work on it so far */
  started(id: string, seconds: number, worked: () => number): void {
    const now = monotonicMs();
    this.#pending.set(id, {
      seconds,
      queuedMs: this.#pending.get(id)?.queuedMs ?? now,
      startedMs: now,
      worked,
    });
  }

  /** All that wait or are rendered here, as far as is known. */
  get ids(): readonly string[] {
    return [...this.#pending.keys()];
  }

  /**
   * A video is over. @returns seconds waited and seconds since its start, and seconds of video per
   * second of work; undefined when it was never started here
   */
  ended(
    id: string,
    isDone: boolean,
  ): { readonly waited: number; readonly took: number; readonly speed: number } | undefined {
    const job = this.#pending.get(id);
    this.#pending.delete(id);
    if (job === undefined || job.startedMs === undefined) {
      return undefined;
    }
    const worked = Math.max(0.001, job.worked());
    if (isDone) {
      this.#speed +=
        (job.seconds / Math.max(0.001, worked - FIXED_SECONDS) - this.#speed) *
        SMOOTHING *
        Math.min(1, job.seconds / 10);
    }
    return {
      waited: (job.startedMs - job.queuedMs) / 1000,
      took: (monotonicMs() - job.startedMs) / 1000,
      speed: job.seconds / worked,
    };
  }

  /**
   * Seconds until the MP4 is finished. Videos take turns, so each other video delays this one by no
   * more than its own length.
   * @param done share of it that is rendered, 0 to 1
   */
  etaSeconds(id: string, seconds: number, done: number): number {
    const own = seconds * (1 - done);
    let others = 0;
    for (const [other, job] of this.#pending) {
      if (other !== id) {
        others += Math.min(own, Math.max(0, job.seconds - job.worked() * this.#speed));
      }
    }
    return round((own + others / this.#threads) / this.#speed + FIXED_SECONDS);
  }

  /** Seconds for which the oldest job has waited; 0 when none waits. */
  get oldestQueuedSeconds(): number {
    const waiting = [...this.#pending.values()].filter(({ startedMs }) => startedMs === undefined);
    return waiting.length === 0
      ? 0
      : (monotonicMs() - Math.min(...waiting.map(({ queuedMs }) => queuedMs))) / 1000;
  }

  /** Videos that wait, and videos that are rendered. */
  get counts(): { readonly queued: number; readonly running: number } {
    const running = [...this.#pending.values()].filter(
      ({ startedMs }) => startedMs !== undefined,
    ).length;
    return { queued: this.#pending.size - running, running };
  }
}

const round = (seconds: number): number => Math.round(seconds * 10) / 10;
