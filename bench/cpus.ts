// Which cores the server under test works on, and which are left for the load.
import { readFileSync, readdirSync } from 'node:fs';
import { native } from '../src/native/addon.ts';

/**
 * Cores that the media workers of the server with this process id are pinned to, as the kernel says
 * of its threads.
 */
export function workerCpus(pid: number): number[] {
  const found = new Set<number>();
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8');
    if (!/^Name:\s+mp-worker-/m.test(status)) {
      continue;
    }
    const cpu = /^Cpus_allowed_list:\s+(\d+)$/m.exec(status)?.[1];
    if (cpu !== undefined) {
      found.add(Number(cpu));
    }
  }
  return [...found];
}

/**
 * Cores without a worker of that server, as `taskset -c` takes them; undefined when there is none,
 * or the server is elsewhere.
 */
export function spareCpus(pid: number | undefined): string | undefined {
  if (pid === undefined) {
    return undefined;
  }
  const taken = workerCpus(pid);
  const spare = native.allowedCpus().filter((cpu) => !taken.includes(cpu));
  return spare.length > 0 ? spare.join(',') : undefined;
}

/** The core that a server's first worker takes when the host is its own. */
export const lastCpu = (): number | undefined => native.allowedCpus().at(-1);
