// Requests for the statistics of a session that wait for its worker.
import { after } from '../../base/guard.ts';
import type { SessionStatsReport } from '../../link/messages.ts';

/** Requests for statistics that wait for the worker, each for at most a second. */
const MAX_STATS_WAITERS = 64;

/** The requests of one session. */
export class StatsRequests {
  #nextId = 1;
  readonly #waiters = new Map<number, (stats: SessionStatsReport | undefined) => void>();

  /**
   * @param post asks the worker
   * @returns undefined when the worker does not answer in time, or too many wait
   */
  async ask(
    post: (requestId: number) => void,
    timeoutMs: number,
  ): Promise<SessionStatsReport | undefined> {
    if (this.#waiters.size >= MAX_STATS_WAITERS) {
      return undefined;
    }
    const requestId = this.#nextId++;
    return await new Promise((resolve) => {
      const timer = after(timeoutMs, 'the wait for statistics', () => {
        this.#waiters.delete(requestId);
        resolve(undefined);
      });
      this.#waiters.set(requestId, (stats) => {
        clearTimeout(timer);
        resolve(stats);
      });
      post(requestId);
    });
  }

  /** The worker answered. */
  answered(requestId: number, stats: SessionStatsReport | undefined): void {
    this.#waiters.get(requestId)?.(stats);
    this.#waiters.delete(requestId);
  }

  /** The session is over. */
  close(): void {
    for (const waiter of this.#waiters.values()) {
      waiter(undefined);
    }
    this.#waiters.clear();
  }
}
