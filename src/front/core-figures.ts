// What other work takes from the cores of the workers, as metrics: read from the kernel at each
// scrape.
import type { Metrics } from '../metrics/metrics.ts';
import {
  PRESSURES,
  type CoreTimes,
  type ThreadTimes,
  readCoreTimes,
  readPressure,
  readThreadTimes,
} from '../metrics/host-load.ts';

/** A worker thread, and where it runs. */
export interface PlacedThread {
  readonly index: number;
  /** Of the kernel; undefined until the thread is ready. */
  readonly threadId: number | undefined;
  /** The core that the thread is pinned to, if any. */
  readonly cpu: number | undefined;
}

interface Reading {
  readonly threadId: number;
  readonly thread: ThreadTimes;
  readonly core: CoreTimes | undefined;
}

/** The increase of a total; it never decreases, though the kernel's sums of ticks may, by a tick. */
const increase = (now: number, before: number): number => Math.max(0, now - before);

/** Counts from now on. @param threads of all workers, those that have not started among them */
export function observeCores(metrics: Metrics, threads: () => readonly PlacedThread[]): void {
  const last = new Map<number, Reading>();

  const observe = (
    { index, threadId, cpu }: PlacedThread,
    cores: ReadonlyMap<number, CoreTimes>,
  ): void => {
    const thread = threadId === undefined ? undefined : readThreadTimes(threadId);
    if (threadId === undefined || thread === undefined) {
      return;
    }
    const core = cpu === undefined ? undefined : cores.get(cpu);
    const labels = { worker: String(index) };
    const before = last.get(index);
    last.set(index, { threadId, thread, core });
    const wait = metrics.counter('mouthpiece_worker_run_queue_seconds_total', labels);
    const steal = metrics.counter('mouthpiece_worker_core_steal_seconds_total', labels);
    const other = metrics.counter('mouthpiece_worker_core_other_seconds_total', labels);
    // A worker that was replaced has a new thread: its totals begin at 0 again.
    const isSame = before?.threadId === threadId;
    wait.add(isSame ? increase(thread.wait, before.thread.wait) : 0);
    const hasBoth = isSame && core !== undefined && before.core !== undefined;
    steal.add(hasBoth ? increase(core.steal, before.core.steal) : 0);
    other.add(
      hasBoth ? increase(core.busy - before.core.busy, increase(thread.run, before.thread.run)) : 0,
    );
  };

  metrics.onScrape(() => {
    const cores = readCoreTimes();
    for (const thread of threads()) {
      observe(thread, cores);
    }
  });

  const pressures = PRESSURES.map((resource) => ({
    resource,
    counter: metrics.counter('mouthpiece_host_pressure_seconds_total', { resource }),
    seconds: readPressure(resource),
  }));
  metrics.onScrape(() => {
    for (const pressure of pressures) {
      const seconds = readPressure(pressure.resource);
      pressure.counter.add(increase(seconds ?? 0, pressure.seconds ?? seconds ?? 0));
      pressure.seconds = seconds;
    }
  });
}
