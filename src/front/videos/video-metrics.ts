// What metrics say of static videos.
import type { Meter } from '../../metrics/catalogue.ts';
import type { EtaEstimator } from './eta-estimator.ts';

const KIND = { kind: 'static' } as const;

export class VideoMetrics {
  readonly #metrics: Meter<'front'>;
  readonly #forecast: EtaEstimator;

  constructor(metrics: Meter<'front'>, forecast: EtaEstimator) {
    this.#metrics = metrics;
    this.#forecast = forecast;
  }

  refresh(): void {
    const { queued, running } = this.#forecast.counts;
    this.#metrics.gauge('mouthpiece_jobs', { ...KIND, state: 'queued' }).set(queued);
    this.#metrics.gauge('mouthpiece_jobs', { ...KIND, state: 'running' }).set(running);
    this.#metrics
      .gauge('mouthpiece_job_oldest_queued_seconds', KIND)
      .set(this.#forecast.oldestQueuedSeconds);
  }

  refused(): void {
    this.#metrics.counter('mouthpiece_jobs_refused_total', KIND).add();
  }

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
