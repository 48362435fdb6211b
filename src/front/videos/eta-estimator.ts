// How long static videos will take: from the speed measured so far and what waits before them.
import { monotonicMs } from '../../base/time.ts';

/** Seconds of video per second of work, until something was measured. */
const FIRST_GUESS = 8;
/** Weight of the newest measurement. */
const LEARNING = 0.3;
/** Loading model and face, and writing the files. */
const FIXED_SECONDS = 0.5;

interface Pending {
  readonly seconds: number;
  readonly queuedMs: number;
  startedMs: number | undefined;
  /** Seconds it was worked at so far: it shares its thread with others. */
  worked: () => number;
}

export class EtaEstimator {
  readonly #threads: number;
  readonly #pending = new Map<string, Pending>();
  #speed = FIRST_GUESS;

  constructor(threads: number) {
    this.#threads = threads;
  }

  queued(id: string, seconds: number): void {
    this.#pending.set(id, {
      seconds,
      queuedMs: monotonicMs(),
      startedMs: undefined,
      worked: () => 0,
    });
  }

  started(id: string, seconds: number, worked: () => number): void {
    const now = monotonicMs();
    this.#pending.set(id, {
      seconds,
      queuedMs: this.#pending.get(id)?.queuedMs ?? now,
      startedMs: now,
      worked,
    });
  }

  /** It is over. @returns times in seconds, and the speed at which it was worked at. */
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
        LEARNING *
        Math.min(1, job.seconds / 10);
    }
    return {
      waited: (job.startedMs - job.queuedMs) / 1000,
      took: (monotonicMs() - job.startedMs) / 1000,
      speed: job.seconds / worked,
    };
  }

  /** Seconds until the MP4 is there: videos take turns, so that of the others no more counts than this one is long. @param done share of it that is rendered */
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

  /** Seconds for which the oldest job has waited. */
  get oldestQueuedSeconds(): number {
    const waiting = [...this.#pending.values()].filter(({ startedMs }) => startedMs === undefined);
    return waiting.length === 0
      ? 0
      : (monotonicMs() - Math.min(...waiting.map(({ queuedMs }) => queuedMs))) / 1000;
  }

  get counts(): { readonly queued: number; readonly running: number } {
    const running = [...this.#pending.values()].filter(
      ({ startedMs }) => startedMs !== undefined,
    ).length;
    return { queued: this.#pending.size - running, running };
  }
}

const round = (seconds: number): number => Math.round(seconds * 10) / 10;
