// Takes jobs from a queue and has them done, a bounded number at once; after a crash the same job is begun again, up to a limit.
import { after, every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { LEASE_MS, type JobQueue, type TakenJob } from './job-queue.ts';

export interface JobRunnerOptions<Data> {
  readonly queue: JobQueue<Data>;
  readonly log: Logger;
  readonly concurrency: number;
  /** Times a job may be begun: one that takes its server down each time must not do so for ever. */
  readonly maxAttempts: number;
  /** Does one job and stores its outcome, good or bad. A rejection means "try again". `signal`: the job was cancelled or given to another server. */
  readonly work: (job: TakenJob<Data>, signal: AbortSignal) => Promise<void>;
  /** Stores that a job was given up. */
  readonly giveUp: (job: TakenJob<Data>) => Promise<void>;
}

/** Looks for work by itself this often: jobs of lost servers, and retries. `wake` makes it look at once. */
const POLL_MS = 2000;

export class JobRunner<Data> {
  readonly #options: JobRunnerOptions<Data>;
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #looking = false;
  #lookAgain = false;

  constructor(options: JobRunnerOptions<Data>) {
    this.#options = options;
    this.#timer = every(POLL_MS, 'the search for jobs', () => {
      this.wake();
    });
    this.#timer.unref();
    this.wake();
  }

  /** Looks for work now. */
  wake(): void {
    this.#lookAgain = true;
    if (!this.#looking) {
      void this.#look();
    }
  }

  /** Takes nothing more; what runs is abandoned and begun again by the next server, unless it ends within `graceMs`. */
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

  async #look(): Promise<void> {
    const { queue, concurrency, log } = this.#options;
    this.#looking = true;
    try {
      while (this.#lookAgain && !this.#stop.signal.aborted) {
        this.#lookAgain = false;
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
      this.#looking = false;
    }
  }

  async #run(job: TakenJob<Data>): Promise<void> {
    const { queue, work, giveUp, maxAttempts, log } = this.#options;
    const cancel = new AbortController();
    const signal = AbortSignal.any([cancel.signal, this.#stop.signal]);
    const lease = every(LEASE_MS / 3, 'the lease of a job', () => {
      queue.extend(job.id).then(
        (ours) => {
          if (!ours) {
            cancel.abort();
          }
        },
        () => {},
      ); // Redis away: work on, the outcome is written when it is back
    });
    try {
      if (job.attempt > maxAttempts) {
        await giveUp(job);
      } else {
        await work(job, signal);
      }
      if (!this.#stop.signal.aborted) {
        await queue.finish(job.id);
      }
    } catch (error) {
      if (!signal.aborted) {
        log.error(
          { err: error, jobId: job.id, attempt: job.attempt },
          'a job could not be done; it will be tried again',
        );
      }
    } finally {
      clearInterval(lease);
    }
  }
}
