// Help for tests that measure time on a busy or a slow machine.
import os from 'node:os';
import { native } from '../../src/native/addon.ts';

const MOST = 4;

/** Work of the kind that the measured parsers do: texts, objects and regular expressions. */
const REFERENCE = JSON.stringify(
  Array.from({ length: 1000 }, (_, index) => ({ [`k${index % 50}`]: index, text: 'a;b=c' })),
);
function doReferenceWork(): number {
  const items = JSON.parse(REFERENCE) as { text: string }[];
  return items.reduce((sum, { text }) => sum + text.split(/[;=]/).length, 0);
}
/** Of the processor, on the machine on which the limits were set (two cores, 2026). */
const REFERENCE_MS = 0.25;

/**
 * How many times slower than that machine this one computes right now, at least 1. Neighbours that
 * share a core's caches and its clock count, waiting for a core does not.
 */
export const slowness = (): number =>
  Math.min(MOST, Math.max(1, shortestMs(doReferenceWork) / REFERENCE_MS));

/**
 * What to multiply a limit in milliseconds by: 1 on a machine that has a core to spare, more as far
 * as others want the same cores (load average of the last minute per core) and as it is slow, so
 * that a limit is strict where it can be and still a limit where it cannot.
 */
export const patience = (): number =>
  Math.min(MOST, Math.max(slowness(), os.loadavg()[0]! / os.availableParallelism()));

/**
 * Milliseconds of the processor that `work` takes on this thread when nothing disturbs it: the
 * shortest of several runs, since garbage collection and other programs can only make a run longer.
 * Ends early once a run is over `giveUpMs`, so that a quadratic time fails a test in seconds.
 */
export function shortestMs(work: () => unknown, runs = 20, giveUpMs = 1000): number {
  let shortest = Infinity;
  for (let run = 0; run < runs; run++) {
    const startMs = native.threadCpuMs();
    work();
    const tookMs = native.threadCpuMs() - startMs;
    shortest = Math.min(shortest, tookMs);
    if (tookMs > giveUpMs) {
      break;
    }
  }
  return shortest;
}

/** Milliseconds of the processor that this process has used, on all its threads. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Whether milliseconds of the processor are under a limit, or would be on a machine as it was set on. */
export const isWithin = (tookMs: number, limitMs: number): boolean =>
  tookMs < limitMs || tookMs < limitMs * slowness();
