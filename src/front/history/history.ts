// Session history by owner: written when a session is over, read by time range, deleted by age.
import { SESSION_KINDS } from '../../base/session-kinds.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { PRUNE_HISTORY, READ_HISTORY, WRITE_HISTORY } from '../store/scripts.ts';

/** One finished session, as GET /history/sessions shows it. */
export interface HistoryRecord {
  readonly id: string;
  readonly userId: string;
  /** Identifies the token; the token cannot be derived from it. */
  readonly sessionTokenId: string;
  readonly face_id: string;
  /** How the session was used. */
  readonly kind: HistoryKind;
  readonly endUserAggregator?: string;
  readonly apiKeyName?: string;
  /** Seconds, with fractions. */
  readonly sessionTotalTime: number;
  /** Unix seconds. */
  readonly startTime: number;
  readonly endTime: number;
}

/** Kinds of session in the history: static videos count as sessions, too. */
export const HISTORY_KINDS = [...SESSION_KINDS, 'static'] as const;
/** One of HISTORY_KINDS. */
export type HistoryKind = (typeof HISTORY_KINDS)[number];

/** Records that one script returns: bounds the time that Redis spends on it. */
const PAGE_RECORDS = 2000;
/** Records that one write may delete: keeps a write short after the retention was shortened. */
const PRUNE_RECORDS = 500;

/** The history of all owners. */
export class History {
  readonly #store: RedisStore;
  readonly #retentionSeconds: number;

  constructor(store: RedisStore, retentionDays: number) {
    this.#store = store;
    this.#retentionSeconds = retentionDays * 86_400;
  }

  /** Writes a record. A record with the same id is replaced, so a write may be repeated. */
  async write(record: HistoryRecord, nowSeconds: number): Promise<void> {
    const at = [keys.history(record.userId), keys.historyRecords(record.userId)];
    await this.#store.run(WRITE_HISTORY, at, [record.id, record.startTime, JSON.stringify(record)]);
    await this.#store.run(PRUNE_HISTORY, at, [nowSeconds - this.#retentionSeconds, PRUNE_RECORDS]);
  }

  /**
   * Records of sessions that began within [fromSeconds, untilSeconds], the earliest first, as JSON
   * texts in pages. A record that is written meanwhile may be missing. All others come exactly
   * once.
   */
  async *pages(
    ownerId: string,
    fromSeconds: number | undefined,
    untilSeconds: number | undefined,
    nowSeconds: number,
  ): AsyncGenerator<string[]> {
    const oldest = nowSeconds - this.#retentionSeconds;
    let low = Math.max(fromSeconds ?? 0, oldest);
    let seenAtLow = new Set<string>();
    for (;;) {
      const answer = (await this.#store.run(
        READ_HISTORY,
        [keys.history(ownerId), keys.historyRecords(ownerId)],
        [low, untilSeconds ?? '+inf', seenAtLow.size, PAGE_RECORDS],
      )) as [ids: string[], scores: string[], records: (string | null)[]];
      const [ids, scores, records] = answer;
      const last = Number(scores.at(-1) ?? low);
      const fresh = records.filter(
        (record, index): record is string =>
          record !== null && !seenAtLow.has(ids[index] as string),
      );
      if (fresh.length > 0) {
        yield fresh;
      }
      if (ids.length < PAGE_RECORDS) {
        return;
      }
      const atLast = ids.filter((_id, index) => Number(scores[index]) === last);
      seenAtLow = last === low ? new Set([...seenAtLow, ...atLast]) : new Set(atLast);
      low = last;
    }
  }
}
