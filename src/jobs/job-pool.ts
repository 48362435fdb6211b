// The threads for offline work: few, of low priority, off the cores of the media workers; each task names its file and is bounded in time.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';

/** Files whose default export is the task. */
const TASKS = {
  face: path.join(import.meta.dirname, 'face/create-face-task.ts'),
  static: path.join(import.meta.dirname, 'video/render-video-task.ts'),
  staticAudio: path.join(import.meta.dirname, 'video/inspect-audio-task.ts'),
  audioBody: path.join(import.meta.dirname, 'parse-audio-body.ts'),
} as const;

export type JobTask = keyof typeof TASKS;

export interface RunOptions {
  /** After this the thread is ended and the promise rejects with an AbortError. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Buffers and ports that move to the thread instead of being copied. */
  readonly transfer?: readonly (ArrayBuffer | MessagePort)[];
}

export interface JobPool {
  run<Result>(task: JobTask, value: unknown, options: RunOptions): Promise<Result>;
  /** Tasks that run or wait for a thread. */
  readonly load: number;
  close(): Promise<void>;
}

/** Lowest priority: media threads on the same core go first (setpriority(2), per thread on Linux). */
const NICE = 19;

const CONFINE = pathToFileURL(path.join(import.meta.dirname, 'pin-thread.ts')).href;

/** `cpus`: where the threads may run; empty: anywhere. Even at the lowest priority a thread takes milliseconds from a frame when it is on its core. */
export function createJobPool(threads: number, cpus: readonly number[]): JobPool {
  const pool = new Piscina({
    ...(cpus.length > 0
      ? { execArgv: [...process.execArgv, '--import', CONFINE], workerData: { cpus } }
      : {}),
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: 60_000,
    maxQueue: 1000,
    niceIncrement: NICE,
    atomics: 'disabled', // a thread that waits in Atomics.wait cannot be ended in time
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
