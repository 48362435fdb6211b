// What the kernel says of the host: how long threads waited for a core, what a core did, and how
// long tasks were stalled. Sources: proc(5), Documentation/scheduler/sched-stats.rst and
// Documentation/accounting/psi.rst of Linux.
import { readFileSync } from 'node:fs';

/** Fields of /proc/stat are in USER_HZ, which is 100 on all machines that Node supports. */
const TICKS_PER_SECOND = 100;

/** What a thread did since it began, seconds. */
export interface ThreadTimes {
  /** On a core. */
  readonly run: number;
  /** Ready to run, while something else ran. */
  readonly wait: number;
}

/** What a core did since the machine started, seconds. */
export interface CoreTimes {
  /** Work of any process, and interrupts. */
  readonly busy: number;
  /** Taken by the hypervisor. */
  readonly steal: number;
}

/** Resources of Linux PSI. */
export const PRESSURES = ['cpu', 'memory', 'io'] as const;

/** @returns undefined where the kernel does not tell, or no descriptor is left */
function readProc(file: string): string | undefined {
  try {
    return readFileSync(`/proc/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}

/** @param threadId of the kernel, in this process */
export function readThreadTimes(threadId: number): ThreadTimes | undefined {
  const [run, wait] = readProc(`self/task/${threadId}/schedstat`)?.split(' ').map(Number) ?? [];
  return run === undefined || wait === undefined ? undefined : { run: run / 1e9, wait: wait / 1e9 };
}

/** The times of each core, by number. */
export function readCoreTimes(): ReadonlyMap<number, CoreTimes> {
  const cores = new Map<number, CoreTimes>();
  for (const line of readProc('stat')?.split('\n') ?? []) {
    const [name = '', ...fields] = line.split(' ');
    if (!/^cpu\d+$/.test(name)) {
      continue;
    }
    // Time of guests is in user and nice already.
    const [user, nice, system, , , irq, softirq, steal] = fields.map(Number);
    cores.set(Number(name.slice(3)), {
      busy: (user! + nice! + system! + irq! + softirq!) / TICKS_PER_SECOND,
      steal: (steal ?? 0) / TICKS_PER_SECOND,
    });
  }
  return cores;
}

/** Seconds since the machine started in which a task of the host waited for `resource`. */
export function readPressure(resource: (typeof PRESSURES)[number]): number | undefined {
  const micros = /^some .*total=(\d+)/m.exec(readProc(`pressure/${resource}`) ?? '')?.[1];
  return micros === undefined ? undefined : Number(micros) / 1e6;
}
