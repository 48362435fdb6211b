// How much an owner has used: finished sessions and their time, by API key and by day.
import { nextSlice } from '../../base/slices.ts';
import type { History, HistoryRecord } from './history.ts';

/** Sessions and their time. */
export interface Used {
  readonly sessions: number;
  /** Seconds, with fractions. */
  readonly seconds: number;
}

/** What an owner used since the beginning of a day. */
export interface UsageReport extends Used {
  /** The first day, YYYY-MM-DD in UTC. */
  readonly since: string;
  /** By name of the API key, the most seconds first. */
  readonly keys: readonly (Used & { readonly name: string })[];
  /** Every day, the first one first. */
  readonly daily: readonly (Used & { readonly date: string })[];
}

const DAY_SECONDS = 86_400;
/** Records that are parsed at a time, in about 1 ms. */
const SLICE_RECORDS = 500;

interface Running {
  readonly days: number;
  readonly report: Promise<UsageReport>;
}

/** Adds up the history. Each owner has one sum at a time: further requests wait for it, or share it. */
export class Usage {
  readonly #history: History;
  readonly #running = new Map<string, Running>();

  constructor(history: History) {
    this.#history = history;
  }

  /** @param days today and as many before it as make this number */
  async of(ownerId: string, days: number, nowSeconds: number): Promise<UsageReport> {
    const before = this.#running.get(ownerId);
    if (before?.days === days) {
      return await before.report;
    }
    const report = (before?.report ?? Promise.resolve()).then(
      () => this.#add(ownerId, days, nowSeconds),
      () => this.#add(ownerId, days, nowSeconds),
    );
    this.#running.set(ownerId, { days, report });
    try {
      return await report;
    } finally {
      if (this.#running.get(ownerId)?.report === report) {
        this.#running.delete(ownerId);
      }
    }
  }

  async #add(ownerId: string, days: number, nowSeconds: number): Promise<UsageReport> {
    const first = (Math.floor(nowSeconds / DAY_SECONDS) - days + 1) * DAY_SECONDS;
    const total = new Sum();
    const daily = Array.from({ length: days }, () => new Sum());
    const byKey = new Map<string, Sum>();
    for await (const page of this.#history.pages(ownerId, first, undefined, nowSeconds)) {
      for (const [at, text] of page.entries()) {
        if (at % SLICE_RECORDS === 0) {
          await nextSlice();
        }
        const { apiKeyName = '', sessionTotalTime, startTime } = JSON.parse(text) as HistoryRecord;
        total.add(sessionTotalTime);
        daily[Math.floor((startTime - first) / DAY_SECONDS)]?.add(sessionTotalTime);
        const key = byKey.get(apiKeyName) ?? new Sum();
        byKey.set(apiKeyName, key);
        key.add(sessionTotalTime);
      }
    }
    return {
      since: dateOf(first),
      ...total.used,
      keys: [...byKey]
        .map(([name, sum]) => ({ name, ...sum.used }))
        .sort((a, b) => b.seconds - a.seconds),
      daily: daily.map((sum, at) => ({ date: dateOf(first + at * DAY_SECONDS), ...sum.used })),
    };
  }
}

class Sum {
  #sessions = 0;
  #seconds = 0;

  add(seconds: number): void {
    this.#sessions++;
    this.#seconds += seconds;
  }

  get used(): Used {
    return { sessions: this.#sessions, seconds: Math.round(this.#seconds * 1000) / 1000 };
  }
}

const dateOf = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10);
