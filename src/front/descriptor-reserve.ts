// Keeps file descriptors free for Redis, files and workers: refuses new connections near the limit.
import type { Logger } from '../base/log.ts';
import { monotonicMs } from '../base/time.ts';
import { maxDescriptors, openDescriptors } from '../metrics/descriptors.ts';
import type { Counter } from '../metrics/catalogue.ts';
import type { Metrics } from '../metrics/metrics.ts';

/**
 * How often the open descriptors are counted: with room, and without. Between two counts each new
 * connection counts as one descriptor.
 */
const COUNT_INTERVAL_MS = 1000;
const SHORT_COUNT_INTERVAL_MS = 50;
const LOG_INTERVAL_MS = 1000;
/** Bounds of the reserve, in descriptors. */
const LEAST_RESERVE = 32;
const MOST_RESERVE = 1024;

/**
 * Descriptors that connections may not use. A new worker needs about 15, a redis-server 6.
 * @param max the process limit
 */
export const reserveOf = (max: number): number =>
  Math.min(MOST_RESERVE, Math.max(LEAST_RESERVE, Math.floor(max / 8)));

/** Admits connections while descriptors are left. */
export class DescriptorReserve {
  readonly #log: Logger;
  readonly #refused: Counter;
  readonly #countOpen: () => number;
  readonly #readMax: () => number;
  #open = 0;
  #max = Number.POSITIVE_INFINITY;
  #countedMs = Number.NEGATIVE_INFINITY;
  #loggedMs = Number.NEGATIVE_INFINITY;
  #unlogged = 0;

  constructor(
    metrics: Metrics,
    log: Logger,
    count: { readonly open?: () => number; readonly max?: () => number } = {},
  ) {
    this.#log = log;
    this.#refused = metrics.counter('mouthpiece_connections_refused_total', {
      reason: 'descriptors',
    });
    this.#countOpen = count.open ?? openDescriptors;
    this.#readMax = count.max ?? maxDescriptors;
    this.#count(monotonicMs());
    if (this.#isShort) {
      const figures = { open: this.#open, limit: this.#max, reserve: reserveOf(this.#max) };
      log.error(
        figures,
        'the limit on file descriptors leaves no room for connections; raise it (LimitNOFILE, ulimit -n)',
      );
    }
  }

  /** Whether a connection that was just opened may stay. Refusals are counted and logged. */
  admit(): boolean {
    const nowMs = monotonicMs();
    this.#open++;
    const ageMs = nowMs - this.#countedMs;
    if (ageMs >= (this.#isShort ? SHORT_COUNT_INTERVAL_MS : COUNT_INTERVAL_MS)) {
      this.#count(nowMs);
    }
    if (!this.#isShort) {
      return true;
    }
    this.#open--; // the caller closes it at once
    this.#refuse(nowMs);
    return false;
  }

  get #isShort(): boolean {
    return this.#open > this.#max - reserveOf(this.#max);
  }

  #count(nowMs: number): void {
    this.#countedMs = nowMs;
    this.#max = this.#readMax();
    this.#open = this.#countOpen();
  }

  #refuse(nowMs: number): void {
    this.#refused.add();
    this.#unlogged++;
    if (nowMs - this.#loggedMs < LOG_INTERVAL_MS) {
      return;
    }
    this.#loggedMs = nowMs;
    const figures = {
      refused: this.#unlogged,
      open: this.#open,
      limit: this.#max,
      reserve: reserveOf(this.#max),
    };
    this.#log.warn(
      figures,
      'file descriptors are short: new connections are refused; raise the limit (LimitNOFILE, ulimit -n)',
    );
    this.#unlogged = 0;
  }
}
