// The only file that touches a clock: everything else is handed the time as an argument.
import { performance } from 'node:perf_hooks';

// performance.now() counts from the start of the thread that asks. The high-resolution clock behind it (CLOCK_MONOTONIC) is the
// same for all threads, so its reading at load makes the threads' times comparable, which latency across threads needs.
const threadStartMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds on the machine's monotonic clock, comparable between the threads of this machine (not the wall clock). */
export const monotonicMs = (): number => threadStartMs + performance.now();

/** Milliseconds since the Unix epoch. Only for people and records; never subtract two of these for a duration. */
export const wallMs = (): number => Date.now();

/** Seconds since the Unix epoch, as history and tokens carry them. */
export const wallSeconds = (): number => Math.floor(Date.now() / 1000);

export const sleep = (delayMs: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, delayMs);
  });
