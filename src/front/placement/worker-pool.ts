// The pool of media workers: starts them, replaces those that end, and places sessions on them.
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { createSharedMetrics } from '../../metrics/shared-metrics.ts';
import type { MediaConfig, Wav2LipOptions } from '../../link/worker-init.ts';
import { chooseWorker, roomOn } from './choose-worker.ts';
import { type WorkerHandleInit, WorkerHandle } from './worker-handle.ts';

/** Options of the pool. */
export interface PoolOptions {
  /** The core of each worker; undefined: not pinned. */
  readonly cpus: readonly (number | undefined)[];
  /**
   * Schedule workers before everything else on their cores. Only where a core is left for the rest.
   */
  readonly isRealtime: boolean;
  readonly media: MediaConfig;
  /** Any face: workers measure the cost of a session with it. */
  readonly calibrationFace: SharedArrayBuffer;
  /** The user's own network, if any. */
  readonly wav2lip: Wav2LipOptions | undefined;
  /** A worker without a heartbeat for this long is ended; ten seconds unless given. */
  readonly silenceDeadlineMs?: number;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Pause before a worker is replaced. It doubles with each failed start. */
const RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 5000;
/** A worker that ran this long did not fail because of its start: the pause is short again. */
const SETTLED_MS = 30_000;

/** All workers of this server. */
export class WorkerPool {
  readonly handles: WorkerHandle[] = [];
  readonly #options: PoolOptions;
  #isStopping = false;

  private constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Starts all workers. @throws Error when one cannot start, or UDP_PORTS is too small */
  static async start(options: PoolOptions): Promise<WorkerPool> {
    const { ports, maxLoad, maxSessionsPerWorker } = options.media;
    const { first, last } = ports;
    if (first > 0 && last - first + 1 < options.cpus.length) {
      throw new Error(
        `UDP_PORTS=${first}-${last} holds fewer ports than there are workers ` +
          `(${options.cpus.length}). Widen it or set WORKERS.`,
      );
    }
    const pool = new WorkerPool(options);
    options.metrics.gauge('mouthpiece_worker_load_limit_ratio').set(maxLoad);
    options.metrics.gauge('mouthpiece_worker_sessions_limit').set(maxSessionsPerWorker);
    const starting = options.metrics.gauge('mouthpiece_workers', { state: 'starting' });
    const ready = options.metrics.gauge('mouthpiece_workers', { state: 'ready' });
    options.metrics.onScrape(() => {
      const up = pool.handles.filter((handle) => handle.isReady).length;
      ready.set(up);
      starting.set(options.cpus.length - up);
    });
    await Promise.all(options.cpus.map((cpu, index) => pool.#spawn(index, cpu, true)));
    return pool;
  }

  /** Workers that are ready. */
  get size(): number {
    return this.handles.filter((handle) => handle.isReady).length;
  }

  /** The worker for the next session; undefined: none has room. */
  place(renderer = 'rig', weight = 1): WorkerHandle | undefined {
    return this.#isStopping
      ? undefined
      : chooseWorker(this.handles, this.#options.media, renderer, weight);
  }

  /** Sessions that the workers would still take; 0 exactly when `place` finds none. */
  get room(): number {
    return this.#isStopping
      ? 0
      : this.handles.reduce((sum, handle) => sum + roomOn(handle, this.#options.media), 0);
  }

  /** Renderers that at least one worker has. */
  get renderers(): string[] {
    return [...new Set(this.handles.flatMap((handle) => [...handle.extraCost.keys()]))];
  }

  /** For the next worker: without the cost, which is measured, or with the lowest measured so far. */
  #wav2lip(): Wav2LipOptions | undefined {
    const { wav2lip } = this.#options;
    const costs = this.handles.flatMap(({ extraCost }) => extraCost.get('wav2lip') ?? []);
    return wav2lip === undefined || costs.length === 0
      ? wav2lip
      : { ...wav2lip, knownCost: Math.min(...costs) };
  }

  async #spawn(
    index: number,
    cpu: number | undefined,
    isFirst: boolean,
    delayMs = RESTART_DELAY_MS,
  ): Promise<void> {
    const options = this.#options;
    const sharedMetrics = createSharedMetrics();
    options.metrics.attachWorker(index, sharedMetrics);
    const init: WorkerHandleInit = {
      index,
      cpu,
      isRealtime: options.isRealtime,
      sharedMetrics,
      media: options.media,
      port: options.media.ports.first === 0 ? 0 : options.media.ports.first + index,
      calibrationFace: options.calibrationFace,
      wav2lip: this.#wav2lip(),
      silenceDeadlineMs: options.silenceDeadlineMs,
    };
    const startedMs = monotonicMs();
    const handle = await new Promise<WorkerHandle | undefined>((resolve) => {
      const starting = new WorkerHandle(init, options.log, resolve);
      this.handles[index] = starting;
      void starting.gone.then(() => {
        resolve(undefined);
      });
    });
    if (handle === undefined && isFirst) {
      throw new Error(
        `Worker ${index} could not start: ${this.handles[index]!.failure ?? 'see the log above'}`,
      );
    }
    void this.handles[index]!.gone.then(async (end) => {
      options.metrics.detachWorker(index);
      if (this.#isStopping) {
        return;
      }
      options.metrics.counter('mouthpiece_worker_restarts_total', { reason: end }).add();
      const nextDelayMs =
        monotonicMs() - startedMs > SETTLED_MS
          ? RESTART_DELAY_MS
          : Math.min(delayMs * 2, MAX_RESTART_DELAY_MS);
      options.log.warn({ worker: index, end, delayMs: nextDelayMs }, 'replacing a worker');
      await sleep(nextDelayMs);
      if (!this.#isStopping) {
        await this.#spawn(index, cpu, false, nextDelayMs);
      }
    });
  }

  /** Stops all workers; none is replaced afterwards. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.handles.map((handle) => handle.stop()));
  }
}
