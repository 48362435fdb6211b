// Other programs that take a part of every core, before ordinary threads and real-time workers.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';

const PERIOD_MS = 100;
/** Of each period. */
const BUSY_MS = 40;
/** Above that of workers, which have the lowest of SCHED_RR. */
const PRIORITY = '2';

const busy = `
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const end = performance.now() + Number(process.argv[1]) * 1000;
  while (performance.now() < end) {
    const until = performance.now() + ${BUSY_MS};
    while (performance.now() < until);
    Atomics.wait(pause, 0, 0, ${PERIOD_MS - BUSY_MS});
  }`;

/**
 * Runs one program on each core, at real-time priority where this process may.
 * @returns the part of each core that they took, in words
 */
export async function busyNeighbours(seconds: number): Promise<string> {
  await Promise.all(
    os.cpus().map(async (_cpu, core) => {
      const program = [process.execPath, '-e', busy, String(seconds)];
      const pinned = ['taskset', '--cpu-list', String(core), ...program];
      const first = spawn('chrt', ['--fifo', PRIORITY, ...pinned], { stdio: 'ignore' });
      const [code] = await once(first, 'exit');
      if (code !== 0) {
        await once(spawn(pinned[0]!, pinned.slice(1), { stdio: 'ignore' }), 'exit');
      }
    }),
  );
  return `${(BUSY_MS / PERIOD_MS) * 100} %`;
}
