// Long work of a thread in slices: one slice in each turn of the event loop, for all tasks together.
import { setImmediate as turn } from 'node:timers/promises';

/** Work below this size needs no slices. */
export const SLICE_FREE_BYTES = 64 * 1024;

let last: Promise<void> = Promise.resolve();

/**
 * Waits for a turn of the event loop in which no other slice runs. Call it before each slice, the
 * first one too. `setImmediate` alone would not do: all its callbacks run in one turn, so that 24
 * uploads in slices of 7 ms would hold the thread for 170 ms at a time.
 */
export function nextSlice(): Promise<void> {
  last = last.then(() => turn());
  return last;
}
