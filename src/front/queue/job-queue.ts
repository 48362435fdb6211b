// A queue of offline jobs in Redis: bounded and in order. A server holds a job under a lease, so
// that another server can take the job when the first one dies: at once where its death is noticed.
import { ServiceError } from '../../base/errors.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import {
  ENQUEUE_JOB,
  EXTEND_JOB,
  FINISH_JOB,
  RECLAIM_JOBS,
  RELEASE_JOB,
  TAKE_JOB,
} from '../store/scripts.ts';

/** A job that this server has taken. */
export interface TakenJob<Data> {
  readonly id: string;
  readonly data: Data;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** How often its files could not be read or written, though the storage works. */
  readonly faults: number;
}

/** Options of JobQueue. */
export interface JobQueueOptions {
  readonly store: RedisStore;
  readonly name: 'face' | 'static';
  readonly serverId: string;
  /** Jobs that may wait. */
  readonly capacity: number;
}

/** Length of a lease. A server whose death nobody notices keeps its jobs for this long. */
export const LEASE_MS = 30_000;

/** A queue of jobs with `Data` as JSON. */
export class JobQueue<Data> {
  readonly #options: JobQueueOptions;

  constructor(options: JobQueueOptions) {
    this.#options = options;
  }

  /** Appends a job. @returns its position, 0 is next. @throws ServiceError QUEUE_FULL */
  async enqueue(id: string, data: Data): Promise<number> {
    const { store, name, capacity } = this.#options;
    const place = (await store.run(
      ENQUEUE_JOB,
      [keys.jobsWaiting(name), keys.jobsData(name), keys.jobsCounter(name)],
      [id, JSON.stringify(data), capacity],
    )) as number;
    if (place < 0) {
      throw new ServiceError('QUEUE_FULL', undefined, 10);
    }
    return place;
  }

  /**
   * Takes the next job, or one whose lease expired; undefined when there is none. Call `extend`
   * well within LEASE_MS, and `finish` at the end.
   */
  async take(): Promise<TakenJob<Data> | undefined> {
    const { store, serverId } = this.#options;
    for (;;) {
      const [id, data, attempt, faults] = (await store.run(TAKE_JOB, this.#all(), [
        serverId,
        LEASE_MS,
      ])) as [string?, string?, number?, number?];
      if (id === undefined) {
        return undefined;
      }
      if (data) {
        return { id, data: JSON.parse(data) as Data, attempt: attempt ?? 1, faults: faults ?? 0 };
      }
    }
  }

  /** Extends the lease. Returns false when another server has taken the job or it was cancelled. */
  async extend(id: string): Promise<boolean> {
    const { store, name, serverId } = this.#options;
    return (
      (await store.run(
        EXTEND_JOB,
        [keys.jobsRunning(name), keys.jobsHolders(name)],
        [id, serverId, LEASE_MS],
      )) === 1
    );
  }

  /**
   * Gives a job back, for any server to take after the delay. What stopped it is no fault of the
   * job: the attempt does not count.
   * @param isFault its files could not be read or written: that is counted
   */
  async release(id: string, delayMs: number, isFault = false): Promise<void> {
    const { store, name, serverId } = this.#options;
    await store.run(
      RELEASE_JOB,
      [keys.jobsRunning(name), keys.jobsAttempts(name), keys.jobsHolders(name)],
      [id, serverId, delayMs, isFault ? 1 : 0],
    );
  }

  /** Removes a job that is done or failed, unless another server has taken it. */
  async finish(id: string): Promise<void> {
    await this.#options.store.run(FINISH_JOB, this.#all(), [id, this.#options.serverId]);
  }

  /** Removes a job that waits, or whoever works on it. */
  async cancel(id: string): Promise<void> {
    await this.#options.store.run(FINISH_JOB, this.#all(), [id, '']);
  }

  /** Position among the waiting jobs, 0 is next; undefined when the job is not waiting. */
  async position(id: string): Promise<number | undefined> {
    return (
      (await this.#options.store.use((client) =>
        client.zrank(keys.jobsWaiting(this.#options.name), id),
      )) ?? undefined
    );
  }

  /** Whether the job is waiting or running. */
  async has(id: string): Promise<boolean> {
    return (
      (await this.#options.store.use((client) =>
        client.hexists(keys.jobsData(this.#options.name), id),
      )) === 1
    );
  }

  /**
   * Ends the leases of a server that is dead, so that its jobs are taken at once. By default those
   * that the last run of this server held: call it at start. @returns their number
   */
  async reclaim(serverId = this.#options.serverId): Promise<number> {
    const { store, name } = this.#options;
    return (await store.run(
      RECLAIM_JOBS,
      [keys.jobsRunning(name), keys.jobsHolders(name)],
      [serverId],
    )) as number;
  }

  #all(): string[] {
    const { name } = this.#options;
    return [
      keys.jobsWaiting(name),
      keys.jobsRunning(name),
      keys.jobsData(name),
      keys.jobsAttempts(name),
      keys.jobsHolders(name),
    ];
  }
}
