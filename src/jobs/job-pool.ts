// The thread pool for offline jobs: few threads, of low priority, off the cores of the media
// workers. Each task is a file, and each run has a time limit.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';

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
  /** Time limit. After it the thread ends and the promise rejects with an AbortError. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Buffers and ports to transfer to the thread instead of copying them. */
  readonly transfer?: readonly (ArrayBuffer | MessagePort)[];
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
  /** Ends all threads. Running tasks reject. */
  close(): Promise<void>;
}

/**
 * Niceness of job threads (setpriority(2), per thread on Linux): the lowest priority, so that media
 * threads on the same core go first.
 */
const NICE = 19;

const PIN_THREAD = pathToFileURL(path.join(import.meta.dirname, 'pin-thread.ts')).href;

/**
 * Creates a pool. Its threads start on demand.
 * @param cpus the CPUs that the threads may use; empty for all. Even at the lowest priority a
 * thread takes milliseconds from a video frame when it runs on the core of a media worker.
 */
export function createJobPool(threads: number, cpus: readonly number[]): JobPool {
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
  return {
    run: (task, value, { timeoutMs, signal, transfer = [] }) =>
      pool.run(value, {
        filename: TASKS[task],
        signal: signal
          ? AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
          : AbortSignal.timeout(timeoutMs),
        transferList: [...transfer],
      }) as Promise<never>,
    get load() {
      return pool.queueSize + pool.threads.length;
    },
    close: () => pool.destroy(),
  };
}
