// How long static videos will take: from the speed measured so far and what waits before them.
import { monotonicMs } from '../../base/time.ts';

/** Seconds of video per second of work, until something was measured. */
const FIRST_GUESS = 8;
/** Weight of the newest measurement. */
const LEARNING = 0.3;
/** Loading model and face, and writing the files. */
const FIXED_SECONDS = 0.5;

interface Pending { readonly seconds: number; readonly queuedMs: number; startedMs: number | null }

export class Forecast {
  readonly #threads: number;
  readonly #pending = new Map<string, Pending>();
  #speed = FIRST_GUESS;

  constructor(threads: number) { this.#threads = threads; }

  queued(id: string, seconds: number): void { this.#pending.set(id, { seconds, queuedMs: monotonicMs(), startedMs: null }); }

  started(id: string, seconds: number): void {
    const now = monotonicMs();
    this.#pending.set(id, { seconds, queuedMs: this.#pending.get(id)?.queuedMs ?? now, startedMs: now });
  }

  /** It is over. @returns times in seconds, and the speed if it was done. */
  ended(id: string, isDone: boolean): { readonly waited: number; readonly took: number; readonly speed: number } | undefined {
    const job = this.#pending.get(id);
    this.#pending.delete(id);
    if (job === undefined || job.startedMs === null) return undefined;
    const took = Math.max(0.001, (monotonicMs() - job.startedMs) / 1000);
    const speed = job.seconds / took;
    if (isDone) this.#speed += (job.seconds / Math.max(0.001, took - FIXED_SECONDS) - this.#speed) * LEARNING * Math.min(1, job.seconds / 10);
    return { waited: (job.startedMs - job.queuedMs) / 1000, took, speed };
  }

  /** Seconds until the MP4 is there. @param done share of it that is rendered */
  etaSeconds(id: string, seconds: number, done: number): number {
    let before = 0;
    for (const [other, { seconds: otherSeconds }] of this.#pending) {
      if (other === id) break;
      before += otherSeconds;
    }
    const own = seconds * (1 - done);
    const isRunning = this.#pending.get(id)?.startedMs != null;
    return round((isRunning ? 0 : before / this.#threads / this.#speed) + own / this.#speed + FIXED_SECONDS);
  }

  /** Seconds for which the oldest job has waited. */
  get oldestQueuedSeconds(): number {
    const waiting = [...this.#pending.values()].filter(({ startedMs }) => startedMs === null);
    return waiting.length === 0 ? 0 : (monotonicMs() - Math.min(...waiting.map(({ queuedMs }) => queuedMs))) / 1000;
  }

  get counts(): { readonly queued: number; readonly running: number } {
    const running = [...this.#pending.values()].filter(({ startedMs }) => startedMs !== null).length;
    return { queued: this.#pending.size - running, running };
  }
}

const round = (seconds: number): number => Math.round(seconds * 10) / 10;
