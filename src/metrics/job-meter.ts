// Metrics of the offline jobs of one kind, from their acceptance to their end.
import type { Counter, Gauge, Histogram, LabelsOf } from './catalogue.ts';
import type { Metrics } from './metrics.ts';

/** Kind of offline job: a label value. */
export type JobKind = LabelsOf<'mouthpiece_jobs'>['kind'];
/** How a job ended: a label value. */
export type JobResult = LabelsOf<'mouthpiece_jobs_finished_total'>['result'];

/**
 * One for each kind of job. A job that was accepted by another server, or before a restart, has no
 * waiting time. Times are from `monotonicMs()`.
 */
export class JobMeter {
  readonly #waiting = new Map<string, number>();
  readonly #running = new Map<string, number>();
  readonly #refusals: Counter;
  readonly #wait: Histogram;
  readonly #duration: Histogram;
  readonly #speed: Histogram;
  readonly #results: Readonly<Record<JobResult, Counter>>;

  constructor(metrics: Metrics, kind: JobKind, nowMs: () => number) {
    this.#refusals = metrics.counter('mouthpiece_jobs_refused_total', { kind });
    this.#wait = metrics.histogram('mouthpiece_job_wait_seconds', { kind });
    this.#duration = metrics.histogram('mouthpiece_job_duration_seconds', { kind });
    this.#speed = metrics.histogram('mouthpiece_job_realtime_factor');
    this.#results = {
      completed: metrics.counter('mouthpiece_jobs_finished_total', { kind, result: 'completed' }),
      failed: metrics.counter('mouthpiece_jobs_finished_total', { kind, result: 'failed' }),
      cancelled: metrics.counter('mouthpiece_jobs_finished_total', { kind, result: 'cancelled' }),
    };
    const queued: Gauge = metrics.gauge('mouthpiece_jobs', { kind, state: 'queued' });
    const active: Gauge = metrics.gauge('mouthpiece_jobs', { kind, state: 'running' });
    const oldest: Gauge = metrics.gauge('mouthpiece_job_oldest_queued_seconds', { kind });
    metrics.onScrape(() => {
      queued.set(this.#waiting.size);
      active.set(this.#running.size);
      // A Map keeps the order of insertion, so its first entry has waited longest.
      const [first] = this.#waiting.values();
      oldest.set(first === undefined ? 0 : (nowMs() - first) / 1000);
    });
  }

  /** A job was queued. */
  accepted(id: string, nowMs: number): void {
    this.#waiting.set(id, nowMs);
  }

  /** A job was refused because the queue was full. */
  refused(): void {
    this.#refusals.add();
  }

  /** A job runs. */
  started(id: string, nowMs: number): void {
    const acceptedMs = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (acceptedMs !== undefined) {
      this.#wait.observe((nowMs - acceptedMs) / 1000);
    }
    this.#running.set(id, nowMs);
  }

  /** A job ended; it may be unknown. @param mediaSeconds length of the rendered video, if any */
  finished(id: string, result: JobResult, nowMs: number, mediaSeconds = 0): void {
    const startedMs = this.#running.get(id);
    this.#waiting.delete(id);
    this.#running.delete(id);
    this.#results[result].add();
    if (startedMs === undefined) {
      return;
    }
    const seconds = (nowMs - startedMs) / 1000;
    this.#duration.observe(seconds);
    if (mediaSeconds > 0 && seconds > 0) {
      this.#speed.observe(mediaSeconds / seconds);
    }
  }
}
