// A queue of offline jobs in Redis: bounded, in order, each held under a lease so that a job outlives the server that runs it.
import { ServiceError } from '../../base/errors.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { ENQUEUE_JOB, EXTEND_JOB, FINISH_JOB, RECLAIM_JOBS, TAKE_JOB } from '../store/scripts.ts';

export interface TakenJob<Data> {
  readonly id: string;
  readonly data: Data;
  /** How often it was begun, this time included. */
  readonly attempt: number;
}

export interface JobQueueOptions {
  readonly store: RedisStore;
  readonly name: 'face' | 'static';
  readonly serverId: string;
  /** Jobs that may wait. */
  readonly capacity: number;
}

/** How long a job stays with a server that no longer extends its lease. */
export const LEASE_MS = 30_000;

export class JobQueue<Data> {
  readonly #options: JobQueueOptions;

  constructor(options: JobQueueOptions) {
    this.#options = options;
  }

  /** @returns its place in the queue, 0 being next. @throws QUEUE_FULL */
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

  /** The next job, or one whose server was lost. Call `extend` well within LEASE_MS, and `finish` at the end. */
  async take(): Promise<TakenJob<Data> | undefined> {
    const { store, serverId } = this.#options;
    for (;;) {
      const [id, data, attempt] = (await store.run(TAKE_JOB, this.#all(), [
        serverId,
        LEASE_MS,
      ])) as [string?, string?, number?];
      if (id === undefined) {
        return undefined;
      }
      if (data) {
        return { id, data: JSON.parse(data) as Data, attempt: attempt ?? 1 };
      }
    }
  }

  /** False when the job was taken away or cancelled. */
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

  /** Forgets a job that is done, failed or cancelled. */
  async finish(id: string): Promise<void> {
    await this.#options.store.run(FINISH_JOB, this.#all(), [id]);
  }

  /** Its place among those that wait, 0 being next; undefined when it does not wait. */
  async position(id: string): Promise<number | undefined> {
    return (
      (await this.#options.store.use((client) =>
        client.zrank(keys.jobsWaiting(this.#options.name), id),
      )) ?? undefined
    );
  }

  /** Whether it waits or runs. */
  async has(id: string): Promise<boolean> {
    return (
      (await this.#options.store.use((client) =>
        client.hexists(keys.jobsData(this.#options.name), id),
      )) === 1
    );
  }

  /** At start: what this server's last run was at can be taken again at once. */
  async reclaim(): Promise<number> {
    const { store, name, serverId } = this.#options;
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
