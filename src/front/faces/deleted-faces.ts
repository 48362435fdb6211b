// Faces that were deleted: every server drops its copies within a second, and one of them deletes
// the files once more a minute later, for what a job or an outage has left.
import { every } from '../../base/guard.ts';
import type { RedisStore } from '../store/redis.ts';
import { keys } from '../store/keys.ts';
import { ANNOUNCE_DELETION, DELETIONS_SINCE } from '../store/scripts.ts';

/** What is done about a deleted face. */
export interface DeletionHandlers {
  /** Drops what this server keeps of a face. */
  readonly forget: (faceId: string) => Promise<void>;
  /** Deletes its files from the storage. */
  readonly remove: (faceId: string) => Promise<void>;
}

/** How often servers look for deleted faces. */
const POLL_MS = 500;
/** Deletions of this long ago are seen again: those of other servers may come late. */
const OVERLAP_MS = 3000;
/** When the files are deleted once more. */
const REMOVE_AFTER_MS = 60_000;

/** The deletions of all servers. */
export class DeletedFaces {
  readonly #store: RedisStore;
  readonly #handlers: DeletionHandlers;
  readonly #timer: NodeJS.Timeout;
  /** By face id: when it was deleted, by the clock of Redis. */
  #seen = new Map<string, number>();
  #lookedMs = 0;
  #isLooking = false;

  constructor(store: RedisStore, handlers: DeletionHandlers) {
    this.#store = store;
    this.#handlers = handlers;
    this.#timer = every(POLL_MS, 'the search for deleted faces', () => this.#look());
    this.#timer.unref();
  }

  /** Tells all servers. */
  async announce(faceId: string): Promise<void> {
    await this.#store.run(ANNOUNCE_DELETION, [keys.deletedFaces()], [faceId]);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking || !this.#store.ready) {
      return;
    }
    this.#isLooking = true;
    try {
      const [nowMs, found, old] = (await this.#store.run(
        DELETIONS_SINCE,
        [keys.deletedFaces()],
        [this.#lookedMs - OVERLAP_MS, REMOVE_AFTER_MS],
      )) as [number, string[], string[]];
      this.#lookedMs = nowMs;
      const fresh = found.filter((faceId) => !this.#seen.has(faceId));
      this.#seen = new Map(
        [...this.#seen, ...fresh.map((faceId) => [faceId, nowMs] as const)].filter(
          ([, seenMs]) => nowMs - seenMs < 2 * OVERLAP_MS,
        ),
      );
      await Promise.all(fresh.map((faceId) => this.#handlers.forget(faceId)));
      for (const faceId of old) {
        await this.#handlers.remove(faceId).catch(() => this.announce(faceId));
      }
    } catch {
      // Redis is away: the next look finds what this one did not.
    } finally {
      this.#isLooking = false;
    }
  }
}
