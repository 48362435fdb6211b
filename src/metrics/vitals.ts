// The vitals of a thread, main or worker: event-loop delay, CPU, garbage collection, heap.
import { PerformanceObserver, constants, type PerformanceEntry } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { after } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import type { Counter, Gauge, Histogram } from './catalogue.ts';

const SAMPLE_MS = 100;
const SAMPLES_PER_SUMMARY = 10;

/** The metrics of one thread's vitals. */
export interface VitalsMeters {
  readonly eventLoopDelay: Histogram;
  readonly cpuSeconds: Counter;
  readonly heapUsed: Gauge;
  /** Seconds, by kind of collection. */
  readonly gc: Readonly<Record<'minor' | 'major' | 'incremental' | 'other', Counter>>;
  /** Share of a core used over the last second; workers only. */
  readonly load?: Gauge;
}

const GC_KINDS: ReadonlyMap<number, 'minor' | 'major' | 'incremental'> = new Map([
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
]);

/** The types lack `detail`, which Node documents for entries of type gc. */
type GcEntry = PerformanceEntry & { readonly detail: { readonly kind: number } };

/**
 * Watches the calling thread until the returned function is called. Its timer does not keep the
 * process alive.
 * @param threadCpuMs CPU milliseconds of the calling thread so far (`native.threadCpuMs`)
 */
export function watchVitals(meters: VitalsMeters, threadCpuMs: () => number): () => void {
  let dueMs = monotonicMs() + SAMPLE_MS;
  let samples = 0;
  let cpuMs = threadCpuMs();
  let summaryMs = monotonicMs();
  meters.cpuSeconds.add(cpuMs / 1000);

  const sample = (): void => {
    const nowMs = monotonicMs();
    meters.eventLoopDelay.observe(Math.max(0, nowMs - dueMs) / 1000);
    // Counted from now: one long stall gives one late sample, not a burst.
    dueMs = nowMs + SAMPLE_MS;
    timer = after(SAMPLE_MS, 'the sampling of vitals', sample).unref();
    samples++;
    if (samples % SAMPLES_PER_SUMMARY === 0) {
      summarise(nowMs);
    }
  };

  const summarise = (nowMs: number): void => {
    const usedMs = threadCpuMs() - cpuMs;
    meters.cpuSeconds.add(usedMs / 1000);
    meters.load?.set(usedMs / Math.max(1, nowMs - summaryMs));
    // Not process.memoryUsage(), which reads /proc and throws when no file descriptor is left.
    meters.heapUsed.set(getHeapStatistics().used_heap_size);
    cpuMs += usedMs;
    summaryMs = nowMs;
  };

  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as GcEntry[]) {
      meters.gc[GC_KINDS.get(entry.detail.kind) ?? 'other'].add(entry.duration / 1000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  let timer = after(SAMPLE_MS, 'the sampling of vitals', sample).unref();

  return () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}
