// Makes sure that every session gets its history record: also when Redis is away, and when its
// server is killed.
import { appendFile, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { History, HistoryRecord, HistoryKind } from './history.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import {
  JOURNAL_HEARTBEAT,
  JOURNAL_BEGIN,
  JOURNAL_END,
  JOURNAL_LOST,
} from '../store/journal-scripts.ts';

/** A session when it begins. */
export interface SessionStart {
  readonly id: string;
  readonly ownerId: string;
  readonly tokenId: string;
  readonly faceId: string;
  readonly kind: HistoryKind;
  readonly aggregator: string | null;
  readonly keyName: string;
  /** Unix milliseconds. */
  readonly startMs: number;
}

/** A running session in the journal, which all servers share in Redis. */
interface JournalEntry extends SessionStart {
  readonly serverId: string;
}
/** `beganMs` is monotonic: the wall clock may be set while a session runs. */
interface LiveEntry {
  readonly entry: JournalEntry;
  readonly beganMs: number;
}

/** How often the entries of running sessions are refreshed. */
const HEARTBEAT_MS = 5000;
/** A session of another server counts as lost after this time without a heartbeat. */
const LOST_AFTER_MS = 60_000;
/**
 * Records kept in memory and in the file while Redis is away. Beyond it the oldest are dropped and
 * logged.
 */
const MAX_PENDING = 100_000;

/** Options of the recorder. */
export interface RecorderOptions {
  readonly store: RedisStore;
  readonly history: History;
  readonly serverId: string;
  readonly dataDir: string;
  readonly log: Logger;
}

/** The recorder of one server. */
export class SessionRecorder {
  readonly #options: RecorderOptions;
  readonly #live = new Map<string, LiveEntry>();
  readonly #pending = new Map<string, HistoryRecord>();
  readonly #file: string;
  readonly #timer: NodeJS.Timeout;
  readonly #stopListening: () => void;
  /** The last file operation: they run one after another. */
  #fileWork: Promise<void> = Promise.resolve();
  #flushing: Promise<void> | undefined;
  #reachableSinceMs = monotonicMs();

  private constructor(options: RecorderOptions) {
    this.#options = options;
    this.#file = path.join(options.dataDir, 'history', 'pending.jsonl');
    this.#timer = every(HEARTBEAT_MS, 'the heartbeat of the history journal', () => this.#tick());
    this.#timer.unref();
    this.#stopListening = options.store.onReady(() => {
      this.#reachableSinceMs = monotonicMs();
      void this.flush();
    });
  }

  /** Writes what the last run could not write, and ends the sessions that its crash left open. */
  static async open(options: RecorderOptions): Promise<SessionRecorder> {
    const recorder = new SessionRecorder(options);
    await recorder.#readFile();
    await recorder.flush();
    await recorder.#endLost(0, (entry) => entry.serverId === options.serverId);
    return recorder;
  }

  /** Records that wait for Redis. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** A session began. From now on it will get a record. Never rejects. */
  async begin(start: SessionStart): Promise<void> {
    const entry: JournalEntry = { ...start, serverId: this.#options.serverId };
    const elapsedMs = Math.max(0, wallMs() - start.startMs);
    this.#live.set(start.id, { entry, beganMs: monotonicMs() - elapsedMs });
    await this.#options.store
      .run(
        JOURNAL_BEGIN,
        [keys.journal(), keys.journalRecords()],
        [start.id, JSON.stringify(entry), elapsedMs],
      )
      .catch(() => {});
  }

  /**
   * A session is over. Resolves when its record is in Redis, or in a file that survives a crash.
   * Never rejects.
   */
  async end(sessionId: string): Promise<void> {
    const live = this.#live.get(sessionId);
    if (!live) {
      return;
    }
    this.#live.delete(sessionId);
    await this.#finish(live.entry, monotonicMs() - live.beganMs);
  }

  /** Writes the record of a session without a duration of its own, such as a static video. */
  async record(start: SessionStart, durationMs: number): Promise<void> {
    await this.#finish({ ...start, serverId: this.#options.serverId }, durationMs);
  }

  /** Writes the waiting records, if Redis answers. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Ends all running sessions in the history, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopListening();
    await Promise.all([...this.#live.keys()].map((id) => this.end(id)));
    await this.flush();
    await this.#fileWork;
  }

  async #finish(entry: JournalEntry, durationMs: number): Promise<void> {
    const record = toRecord(entry, durationMs);
    try {
      await this.#write(record);
    } catch {
      this.#keep(record);
      await this.#toFile(() => this.#append(record));
    }
  }

  async #write(record: HistoryRecord): Promise<void> {
    await this.#options.history.write(record, Math.floor(wallMs() / 1000));
    await this.#options.store.run(
      JOURNAL_END,
      [keys.journal(), keys.journalRecords()],
      [record.id],
    );
  }

  #keep(record: HistoryRecord): void {
    this.#pending.set(record.id, record);
    if (this.#pending.size <= MAX_PENDING) {
      return;
    }
    const oldest = this.#pending.keys().next().value as string;
    this.#pending.delete(oldest);
    this.#options.log.error(
      { sessionId: oldest },
      'too many history records wait for Redis; the oldest was dropped',
    );
  }

  async #flush(): Promise<void> {
    if (this.#pending.size === 0) {
      return;
    }
    for (const [id, record] of this.#pending) {
      try {
        await this.#write(record);
      } catch {
        return; // Redis is still away: the next heartbeat tries again
      }
      this.#pending.delete(id);
    }
    await this.#toFile(() => this.#rewrite());
    this.#options.log.info('the history records that waited for Redis are written');
  }

  async #tick(): Promise<void> {
    if (!this.#options.store.ready) {
      return;
    }
    try {
      const nowMs = monotonicMs();
      const heartbeats = [...this.#live].flatMap(([id, { beganMs }]) => [
        id,
        Math.round(nowMs - beganMs),
      ]);
      for (let i = 0; i < heartbeats.length; i += 1000) {
        await this.#options.store.run(
          JOURNAL_HEARTBEAT,
          [keys.journal(), keys.journalRecords()],
          heartbeats.slice(i, i + 1000),
        );
      }
      await this.flush();
      // While Redis was away no server could write heartbeats. Count only the silence since it is
      // back.
      if (nowMs - this.#reachableSinceMs > LOST_AFTER_MS) {
        await this.#endLost(LOST_AFTER_MS, (entry) => !this.#live.has(entry.id));
      }
    } catch {
      // Redis went away: the next heartbeat tries again
    }
  }

  async #endLost(silenceMs: number, isLost: (entry: JournalEntry) => boolean): Promise<void> {
    const lost = (await this.#options.store.run(
      JOURNAL_LOST,
      [keys.journal(), keys.journalRecords()],
      [silenceMs],
    )) as string[];
    for (let i = 0; i + 3 < lost.length; i += 4) {
      const [heartbeatMs, lastedMs, record] = lost.slice(i + 1, i + 4) as [string, string, string];
      const entry = JSON.parse(record) as JournalEntry;
      if (!isLost(entry)) {
        continue;
      }
      await this.#finish(
        entry,
        lastedMs === '' ? Number(heartbeatMs) - entry.startMs : Number(lastedMs),
      );
      this.#options.log.warn(
        { sessionId: entry.id },
        'a session whose server crashed got its history record',
      );
    }
  }

  #toFile(work: () => Promise<void>): Promise<void> {
    this.#fileWork = this.#fileWork.then(work).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'history records cannot be written to a file');
    });
    return this.#fileWork;
  }

  async #append(record: HistoryRecord): Promise<void> {
    await mkdir(path.dirname(this.#file), { recursive: true });
    await appendFile(this.#file, `${JSON.stringify(record)}\n`, { mode: 0o600, flush: true });
  }

  async #rewrite(): Promise<void> {
    if (this.#pending.size === 0) {
      await rm(this.#file, { force: true });
      return;
    }
    const temporary = `${this.#file}.part`;
    const handle = await open(temporary, 'w', 0o600);
    try {
      await handle.writeFile(
        [...this.#pending.values()].map((record) => `${JSON.stringify(record)}\n`).join(''),
      );
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, this.#file);
  }

  async #readFile(): Promise<void> {
    const content = await readFile(this.#file, 'utf8').catch(() => '');
    for (const line of content.split('\n')) {
      if (line === '') {
        continue;
      }
      try {
        const record = JSON.parse(line) as HistoryRecord;
        this.#pending.set(record.id, record);
      } catch {
        this.#options.log.warn('a history record was truncated by a crash and is ignored');
      }
    }
  }
}

function toRecord(entry: JournalEntry, durationMs: number): HistoryRecord {
  const totalMs = Math.max(0, Math.round(durationMs));
  return {
    id: entry.id,
    userId: entry.ownerId,
    sessionTokenId: entry.tokenId,
    face_id: entry.faceId,
    kind: entry.kind,
    ...(entry.aggregator === null ? {} : { endUserAggregator: entry.aggregator }),
    apiKeyName: entry.keyName,
    sessionTotalTime: totalMs / 1000,
    startTime: Math.floor(entry.startMs / 1000),
    endTime: Math.floor((entry.startMs + totalMs) / 1000),
  };
}
