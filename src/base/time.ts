// The only file that reads a clock.
import { performance } from 'node:perf_hooks';

// performance.now() counts from the start of the calling thread. All threads share the clock behind
// it (CLOCK_MONOTONIC), so adding its value at the thread's start makes their times comparable.
// Measuring latency across threads needs that.
const threadStartMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/**
 * Milliseconds on the machine's monotonic clock. Comparable between threads; unrelated to the wall
 * clock.
 */
export const monotonicMs = (): number => threadStartMs + performance.now();

/**
 * Milliseconds since the Unix epoch, for display and records. Not for durations: the wall clock may
 * be set.
 */
export const wallMs = (): number => Date.now();

/** Whole seconds since the Unix epoch, for history and tokens. */
export const wallSeconds = (): number => Math.floor(Date.now() / 1000);

/** Resolves after `delayMs`. */
export const sleep = (delayMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, delayMs);
  });
