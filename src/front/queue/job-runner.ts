// Takes jobs from a queue and runs a bounded number of them at once. After a crash a job is started
// again, up to a limit of attempts. A server that stops gives its jobs back; those of one that dies
// are taken over.
import { ServiceError } from '../../base/errors.ts';
import { after, every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { LEASE_MS, type JobQueue, type TakenJob } from './job-queue.ts';

/** Options of JobRunner. */
export interface JobRunnerOptions<Data> {
  readonly queue: JobQueue<Data>;
  readonly log: Logger;
  /** Jobs that run at once. */
  readonly concurrency: number;
  /** Attempts of one job. A job that crashes its server must not do so for ever. */
  readonly maxAttempts: number;
  /**
   * Does one job and stores its result or failure. When it rejects, the job is tried again, by any
   * server. An error that says that Redis or the storage is away does not count as an attempt; one
   * of the job's own files counts apart, up to MAX_FAULTS.
   * `signal` aborts within RENEW_MS when the job was cancelled or another server took it. What only
   * one server may write must be written after JobQueue.extend has said that the job is still ours.
   */
  readonly work: (job: TakenJob<Data>, signal: AbortSignal) => Promise<void>;
  /**
   * Stores the failure of a job that is not tried again: it has no attempts left, or its files
   * cannot be read or written.
   */
  readonly giveUp: (job: TakenJob<Data>, why: 'attempts' | 'files') => Promise<void>;
}

/**
 * Interval at which the queue is read for retries and jobs of lost servers. `wake` reads it at
 * once.
 */
const POLL_MS = 2000;

/**
 * How often a lease is extended. A server that was taken for dead, but lives, sees then that another
 * one has its job.
 */
const RENEW_MS = 2000;

/** How long a job waits when Redis or the storage was away. */
const OUTAGE_DELAY_MS = 5000;

/**
 * A storage that works as a whole may fail for some objects, and recover. The pause doubles with
 * each fault up to the length of a lease, which the queue waits at most: a job is given up after
 * half an hour.
 */
const MAX_FAULTS = 60;

const isOutage = (error: unknown): error is ServiceError =>
  error instanceof ServiceError &&
  (error.code === 'STORAGE_UNAVAILABLE' || error.code === 'STORE_UNAVAILABLE');

/** Runs the jobs of one queue. */
export class JobRunner<Data> {
  readonly #options: JobRunnerOptions<Data>;
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #isPolling = false;
  #pollAgain = false;

  constructor(options: JobRunnerOptions<Data>) {
    this.#options = options;
    this.#timer = every(POLL_MS, 'the search for jobs', () => {
      this.wake();
    });
    this.#timer.unref();
    this.wake();
  }

  /** Reads the queue now. */
  wake(): void {
    this.#pollAgain = true;
    if (!this.#isPolling) {
      void this.#poll();
    }
  }

  /** Frees the jobs of a server that died. This server or another one begins them again. */
  async takeOver(deadServerId: string): Promise<void> {
    const { queue, log } = this.#options;
    const jobs = await queue.reclaim(deadServerId);
    if (jobs > 0) {
      log.info({ node: deadServerId, jobs }, 'the jobs of a dead server are begun again');
      this.wake();
    }
  }

  /**
   * Takes no more jobs and waits up to `graceMs`. Jobs that still run are aborted and given back:
   * another server takes them at once, or the next run of this one.
   */
  async close(graceMs = 0): Promise<void> {
    clearInterval(this.#timer);
    const running = Promise.allSettled(this.#running);
    const timer = after(graceMs, 'the end of jobs', () => {
      this.#stop.abort();
    });
    if (graceMs === 0) {
      this.#stop.abort();
    }
    await running;
    clearTimeout(timer);
    this.#stop.abort();
  }

  async #poll(): Promise<void> {
    const { queue, concurrency, log } = this.#options;
    this.#isPolling = true;
    try {
      while (this.#pollAgain && !this.#stop.signal.aborted) {
        this.#pollAgain = false;
        while (this.#running.size < concurrency && !this.#stop.signal.aborted) {
          const job = await queue.take();
          if (!job) {
            break;
          }
          const run = this.#run(job).finally(() => {
            this.#running.delete(run);
            this.wake();
          });
          this.#running.add(run);
        }
      }
    } catch (error) {
      log.debug({ err: error }, 'the job queue cannot be read; trying again');
    } finally {
      this.#isPolling = false;
    }
  }

  async #run(job: TakenJob<Data>): Promise<void> {
    const { queue, work, giveUp, maxAttempts, log } = this.#options;
    const cancel = new AbortController();
    const signal = AbortSignal.any([cancel.signal, this.#stop.signal]);
    const lease = every(RENEW_MS, 'the lease of a job', () => {
      queue.extend(job.id).then(
        (ours) => {
          if (!ours) {
            cancel.abort();
          }
        },
        () => {},
      ); // Redis is unreachable: go on, the result is written later
    });
    try {
      if (job.attempt > maxAttempts) {
        await giveUp(job, 'attempts');
      } else if (job.faults >= MAX_FAULTS) {
        await giveUp(job, 'files');
      } else {
        await work(job, signal);
      }
      await (this.#stop.signal.aborted ? queue.release(job.id, 0) : queue.finish(job.id));
    } catch (error) {
      if (this.#stop.signal.aborted) {
        await queue.release(job.id, 0).catch(() => {}); // its lease ends by itself
      } else if (!signal.aborted && isOutage(error)) {
        const isFault = error.code === 'STORAGE_UNAVAILABLE' && error.cause !== undefined;
        const delayMs = isFault
          ? Math.min(OUTAGE_DELAY_MS * 2 ** job.faults, LEASE_MS)
          : OUTAGE_DELAY_MS;
        log.warn(
          { jobId: job.id, reason: error.code, faults: job.faults, err: error.cause },
          'a job waits for what is away',
        );
        await queue.release(job.id, delayMs, isFault).catch(() => {});
      } else if (!signal.aborted) {
        log.error(
          { err: error, jobId: job.id, attempt: job.attempt },
          'a job failed; it will be tried again',
        );
      }
    } finally {
      clearInterval(lease);
    }
  }
}
