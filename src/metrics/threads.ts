// Connects the vitals of threads and the process to their metrics: one call on the main thread, one
// in each worker.
import { wallMs } from '../base/time.ts';
import { maxDescriptors, openDescriptors } from './descriptors.ts';
import type { Metrics } from './metrics.ts';
import type { SharedMetrics } from './shared-metrics.ts';
import { watchVitals } from './vitals.ts';

/** Call it once in each worker. @returns the function that stops it */
export const watchWorkerThread = (
  metrics: SharedMetrics,
  threadCpuMs: () => number,
): (() => void) =>
  watchVitals(
    {
      eventLoopDelay: metrics.histogram('mouthpiece_worker_event_loop_delay_seconds'),
      cpuSeconds: metrics.counter('mouthpiece_worker_cpu_seconds_total'),
      heapUsed: metrics.gauge('mouthpiece_worker_heap_used_bytes'),
      load: metrics.gauge('mouthpiece_worker_load_ratio'),
      gc: {
        minor: metrics.counter('mouthpiece_worker_gc_seconds_total', { kind: 'minor' }),
        major: metrics.counter('mouthpiece_worker_gc_seconds_total', { kind: 'major' }),
        incremental: metrics.counter('mouthpiece_worker_gc_seconds_total', { kind: 'incremental' }),
        other: metrics.counter('mouthpiece_worker_gc_seconds_total', { kind: 'other' }),
      },
    },
    threadCpuMs,
  );

/** The labels of mouthpiece_build_info. */
export interface Build {
  readonly version: string;
  readonly commit: string;
}

/** Call it once on the main thread. @returns the function that stops it */
export function watchMainThread(
  metrics: Metrics,
  threadCpuMs: () => number,
  build: Build,
): () => void {
  metrics.gauge('mouthpiece_build_info', { ...build, node: process.versions.node }).set(1);
  metrics.gauge('process_start_time_seconds').set(wallMs() / 1000 - process.uptime());
  const cpuSeconds = metrics.counter('process_cpu_seconds_total');
  const residentBytes = metrics.gauge('process_resident_memory_bytes');
  const openGauge = metrics.gauge('process_open_fds');
  const maxGauge = metrics.gauge('process_max_fds');
  let countedSeconds = 0;
  metrics.onScrape(() => {
    const { user, system } = process.cpuUsage();
    const seconds = (user + system) / 1e6;
    cpuSeconds.add(seconds - countedSeconds);
    countedSeconds = seconds;
  });
  // Separate callbacks, since reading /proc takes a file descriptor and throws when none is left.
  metrics.onScrape(() => {
    residentBytes.set(process.memoryUsage.rss());
  });
  metrics.onScrape(() => {
    openGauge.set(openDescriptors());
    maxGauge.set(maxDescriptors());
  });

  return watchVitals(
    {
      eventLoopDelay: metrics.histogram('mouthpiece_front_event_loop_delay_seconds'),
      cpuSeconds: metrics.counter('mouthpiece_front_cpu_seconds_total'),
      heapUsed: metrics.gauge('mouthpiece_front_heap_used_bytes'),
      gc: {
        minor: metrics.counter('mouthpiece_front_gc_seconds_total', { kind: 'minor' }),
        major: metrics.counter('mouthpiece_front_gc_seconds_total', { kind: 'major' }),
        incremental: metrics.counter('mouthpiece_front_gc_seconds_total', { kind: 'incremental' }),
        other: metrics.counter('mouthpiece_front_gc_seconds_total', { kind: 'other' }),
      },
    },
    threadCpuMs,
  );
}
