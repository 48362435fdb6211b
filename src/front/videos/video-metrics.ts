// Metrics of static videos.
import type { Meter } from '../../metrics/catalogue.ts';
import type { EtaEstimator } from './eta-estimator.ts';

const KIND = { kind: 'static' } as const;

/** The job metrics with the label kind="static". */
export class VideoMetrics {
  readonly #metrics: Meter<'front'>;
  readonly #eta: EtaEstimator;

  constructor(metrics: Meter<'front'>, eta: EtaEstimator) {
    this.#metrics = metrics;
    this.#eta = eta;
  }

  /** Sets the gauges; call it whenever a job changes its state. */
  refresh(): void {
    const { queued, running } = this.#eta.counts;
    this.#metrics.gauge('mouthpiece_jobs', { ...KIND, state: 'queued' }).set(queued);
    this.#metrics.gauge('mouthpiece_jobs', { ...KIND, state: 'running' }).set(running);
    this.#metrics
      .gauge('mouthpiece_job_oldest_queued_seconds', KIND)
      .set(this.#eta.oldestQueuedSeconds);
  }

  /** A request was refused because the queue was full. */
  refused(): void {
    this.#metrics.counter('mouthpiece_jobs_refused_total', KIND).add();
  }

  /** A job is over. @param times from EtaEstimator.ended */
  finished(
    result: 'completed' | 'failed',
    times: { readonly waited: number; readonly took: number; readonly speed: number } | undefined,
  ): void {
    this.#metrics.counter('mouthpiece_jobs_finished_total', { ...KIND, result }).add();
    if (times !== undefined) {
      this.#metrics.histogram('mouthpiece_job_wait_seconds', KIND).observe(times.waited);
      this.#metrics.histogram('mouthpiece_job_duration_seconds', KIND).observe(times.took);
      if (result === 'completed') {
        this.#metrics.histogram('mouthpiece_job_realtime_factor').observe(times.speed);
      }
    }
    this.refresh();
  }
}
