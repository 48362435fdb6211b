// The thread pool for offline jobs: few threads, of low priority, off the cores of the media
// workers. Each task is a file, and each run has a time limit.
//
// A thread that is ended while onnxruntime or sharp works on it aborts the whole process
// (Napi::Error while the environment closes; seen in 1 of 40 faces). So tasks that use them get a
// `stop` flag, look at it between two steps, and end by themselves.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MessagePort, Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { after } from '../base/guard.ts';
import type { StopFlag } from '../base/stop-flag.ts';

/** The tasks: files whose default export runs the task. */
const TASKS = {
  face: path.join(import.meta.dirname, 'face/create-face-task.ts'),
  static: path.join(import.meta.dirname, 'video/render-video-task.ts'),
  staticAudio: path.join(import.meta.dirname, 'video/inspect-audio-task.ts'),
  audioBody: path.join(import.meta.dirname, 'parse-audio-body.ts'),
} as const;

/** The name of a task. */
export type JobTask = keyof typeof TASKS;

/** Options of one run. */
export interface RunOptions {
  /** Time limit. After it the promise rejects with an AbortError, and the task ends. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /**
   * The task's stop flag, if it has one (`stopFlag`): set at the time limit, when the signal aborts
   * and when the pool closes. The thread is ended by force if the task then goes on for
   * STOP_GRACE_MS. Without a stop flag the thread is ended at once.
   */
  readonly stop?: StopFlag;
  /** Buffers and ports to transfer to the thread instead of copying them. */
  readonly transfer?: readonly (ArrayBuffer | MessagePort)[];
}

/** A thread by its name; null: Node knows none. */
export interface NamedThread {
  readonly name: string | null;
  readonly worker: Worker;
}

/** A pool of job threads. */
export interface JobPool {
  /**
   * Runs a task on a thread.
   * @throws AbortError when the time limit is over or the signal aborts; otherwise what the task
   * throws
   */
  run<Result>(task: JobTask, value: unknown, options: RunOptions): Promise<Result>;
  /** Number of tasks that run or wait for a thread. */
  readonly load: number;
  /** The threads that run now, named after the pool and the number that Node gave to each. */
  readonly threads: readonly NamedThread[];
  /** Ends all threads. Running tasks reject; those with a stop flag end by themselves. */
  close(): Promise<void>;
}

/**
 * A step of a face takes 0.3 s of a core, for which a thread of the lowest priority may wait long on
 * a busy machine. By force only what hangs is ended, because that may cost the process.
 */
const STOP_GRACE_MS = 300_000;
/** The same when the pool closes. Who ends a server may end it by SIGKILL before. */
const CLOSE_GRACE_MS = 60_000;

/**
 * Niceness of job threads (setpriority(2), per thread on Linux): the lowest priority, so that media
 * threads on the same core go first.
 */
const NICE = 19;

const PIN_THREAD = pathToFileURL(path.join(import.meta.dirname, 'pin-thread.ts')).href;

/**
 * Creates a pool. Its threads start on demand.
 * @param name of the work, for those who look at its threads
 * @param threads how many at most
 * @param cpus the CPUs that the threads may use; empty for all. Even at the lowest priority a
 * thread takes milliseconds from a video frame when it runs on the core of a media worker.
 */
export function createJobPool(name: string, threads: number, cpus: readonly number[]): JobPool {
  const pool = new Piscina({
    ...(cpus.length > 0
      ? { execArgv: [...process.execArgv, '--import', PIN_THREAD], workerData: { cpus } }
      : {}),
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: 60_000,
    maxQueue: 1000,
    niceIncrement: NICE,
    atomics: 'disabled', // a thread in Atomics.wait could not be ended at the time limit
    resourceLimits: { maxOldGenerationSizeMb: 1024 },
  });
  /** Running tasks that end by themselves, each with its stop flag. */
  const stoppable = new Map<Promise<unknown>, StopFlag>();

  /** Runs a task that ends by itself once `over` aborts, or is ended by force after the grace period. */
  function runStoppable(
    value: unknown,
    stop: StopFlag,
    over: AbortSignal,
    options: { filename: string; transferList: (ArrayBuffer | MessagePort)[] },
  ): Promise<never> {
    const force = new AbortController();
    const work = pool.run(value, { ...options, signal: force.signal }) as Promise<never>;
    stoppable.set(work, stop);
    return new Promise((resolve, reject) => {
      let grace: NodeJS.Timeout | undefined;
      const onOver = (): void => {
        Atomics.store(stop, 0, 1);
        grace = after(STOP_GRACE_MS, 'the end of a job by force', () => {
          force.abort();
        }).unref();
        reject(new DOMException('The task was aborted', 'AbortError'));
      };
      if (over.aborted) {
        onOver();
      }
      over.addEventListener('abort', onOver, { once: true });
      work.then(resolve, reject).finally(() => {
        over.removeEventListener('abort', onOver);
        clearTimeout(grace);
        stoppable.delete(work);
      });
    });
  }

  return {
    run: (task, value, { timeoutMs, signal, transfer = [], stop }) => {
      const limit = AbortSignal.timeout(timeoutMs);
      const over = signal ? AbortSignal.any([signal, limit]) : limit;
      const options = { filename: TASKS[task], transferList: [...transfer] };
      return stop === undefined
        ? (pool.run(value, { ...options, signal: over }) as Promise<never>)
        : runStoppable(value, stop, over, options);
    },
    get load() {
      return pool.queueSize + pool.threads.length;
    },
    get threads() {
      return pool.threads.map((worker) => ({ name: `${name}-${worker.threadId}`, worker }));
    },
    async close() {
      for (const stop of stoppable.values()) {
        Atomics.store(stop, 0, 1);
      }
      let grace: NodeJS.Timeout | undefined;
      const force = new Promise<void>((resolve) => {
        grace = after(CLOSE_GRACE_MS, 'the wait for stopped jobs', resolve);
      });
      await Promise.race([Promise.allSettled(stoppable.keys()), force]);
      clearTimeout(grace);
      await pool.destroy();
    },
  };
}
