// Help for tests that measure time on a busy machine.
import os from 'node:os';

const MOST = 4;

/**
 * What to multiply a limit in milliseconds by: 1 on a machine that has a core to spare, more as far
 * as others want the same cores (load average of the last minute per core), so that a limit is
 * strict where it can be and still a limit where it cannot.
 */
export const patience = (): number =>
  Math.min(MOST, Math.max(1, os.loadavg()[0]! / os.availableParallelism()));

/**
 * Milliseconds that `work` takes on this thread when nothing disturbs it: the shortest of several
 * runs, since other programs can only make a run longer. Ends early once a run is over `giveUpMs`,
 * so that a quadratic time fails a test in seconds.
 */
export function shortestMs(work: () => unknown, runs = 20, giveUpMs = 1000): number {
  let shortest = Infinity;
  for (let run = 0; run < runs; run++) {
    const startMs = performance.now();
    work();
    const tookMs = performance.now() - startMs;
    shortest = Math.min(shortest, tookMs);
    if (tookMs > giveUpMs) {
      break;
    }
  }
  return shortest;
}
