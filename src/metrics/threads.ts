// Wires vitals and process figures to their names in the catalogue: one call on the main thread, one in each worker.
import { wallMs } from '../base/time.ts';
import { maxDescriptors, openDescriptors } from './descriptors.ts';
import type { Metrics } from './metrics.ts';
import type { SharedMetrics } from './shared-metrics.ts';
import { watchVitals } from './vitals.ts';

/** In a worker, once, after its sheet is made. @returns the function that stops it. */
export const watchWorkerThread = (sheet: SharedMetrics, threadCpuMs: () => number): (() => void) =>
  watchVitals(
    {
      eventLoopDelay: sheet.histogram('mouthpiece_worker_event_loop_delay_seconds'),
      cpuSeconds: sheet.counter('mouthpiece_worker_cpu_seconds_total'),
      heapUsed: sheet.gauge('mouthpiece_worker_heap_used_bytes'),
      load: sheet.gauge('mouthpiece_worker_load_ratio'),
      gc: {
        minor: sheet.counter('mouthpiece_worker_gc_seconds_total', { kind: 'minor' }),
        major: sheet.counter('mouthpiece_worker_gc_seconds_total', { kind: 'major' }),
        incremental: sheet.counter('mouthpiece_worker_gc_seconds_total', { kind: 'incremental' }),
        other: sheet.counter('mouthpiece_worker_gc_seconds_total', { kind: 'other' }),
      },
    },
    threadCpuMs,
  );

export interface Build {
  readonly version: string;
  readonly commit: string;
}

/** On the main thread, once. @returns the function that stops it. */
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
  // Each by itself: what reads /proc takes a file descriptor, and throws when there is none.
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
