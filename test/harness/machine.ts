// How busy the machine is, for tests that judge time.
import os from 'node:os';

const MOST = 4;

/**
 * What to multiply a limit in milliseconds by: 1 on a machine that has a core to spare, more as far as others want the same cores (load
 * average of the last minute per core), so that a limit is strict where it can be and still a limit where it cannot.
 */
export const patience = (): number => Math.min(MOST, Math.max(1, os.loadavg()[0]! / os.availableParallelism()));
