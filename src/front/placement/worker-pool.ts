// The pool of media workers: starts them, replaces those that die, and finds a place for each session.
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { createSharedMetrics } from '../../metrics/shared-metrics.ts';
import type { MediaConfig, Wav2LipOptions } from '../../link/worker-init.ts';
import { chooseWorker, roomOn } from './choose-worker.ts';
import { type WorkerHandleInit, WorkerHandle } from './worker-handle.ts';

export interface PoolOptions {
  /** The core of each worker; undefined where there is nothing to pin to. */
  readonly cpus: readonly (number | undefined)[];
  /** Workers run before everything else on their cores: only where a core is left for the rest. */
  readonly isRealtime: boolean;
  readonly media: MediaConfig;
  readonly calibrationFace: SharedArrayBuffer;
  /** The user's own network, if any. */
  readonly wav2lip: Wav2LipOptions | undefined;
  /** A worker without a sign of life for so long is ended; ten seconds unless given. */
  readonly silenceDeadlineMs?: number;
  readonly metrics: Metrics;
  readonly log: Logger;
}

const RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 5000;
/** A worker that lived this long did not die of its start. */
const SETTLED_MS = 30_000;

export class WorkerPool {
  readonly handles: WorkerHandle[] = [];
  readonly #options: PoolOptions;
  #isStopping = false;

  private constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** @throws Error when a worker can not start. */
  static async start(options: PoolOptions): Promise<WorkerPool> {
    const { ports, maxLoad, maxSessionsPerWorker } = options.media;
    const { first, last } = ports;
    if (first > 0 && last - first + 1 < options.cpus.length) {
      throw new Error(
        `UDP_PORTS=${first}-${last} holds fewer ports than there are workers (${options.cpus.length}). Widen it or set WORKERS.`,
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

  get size(): number {
    return this.handles.filter((handle) => handle.isReady).length;
  }

  /** The worker for the next session, or null: there is no room. */
  place(renderer = 'rig'): WorkerHandle | undefined {
    return this.#isStopping ? undefined : chooseWorker(this.handles, this.#options.media, renderer);
  }

  /** Sessions that the workers would still take; 0 exactly where `place` finds none. */
  get room(): number {
    return this.#isStopping
      ? 0
      : this.handles.reduce((sum, handle) => sum + roomOn(handle, this.#options.media), 0);
  }

  /** Renderers that sessions may ask for: those some worker has. */
  get renderers(): string[] {
    return [...new Set(this.handles.flatMap((handle) => [...handle.extraCost.keys()]))];
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
    const birth: WorkerHandleInit = {
      index,
      cpu,
      isRealtime: options.isRealtime,
      sharedMetrics,
      media: options.media,
      port: options.media.ports.first === 0 ? 0 : options.media.ports.first + index,
      calibrationFace: options.calibrationFace,
      wav2lip: options.wav2lip,
      silenceDeadlineMs: options.silenceDeadlineMs,
    };
    const bornMs = monotonicMs();
    const handle = await new Promise<WorkerHandle | undefined>((resolve) => {
      const born = new WorkerHandle(birth, options.log, resolve);
      this.handles[index] = born;
      void born.gone.then(() => {
        resolve(undefined);
      });
    });
    if (handle === undefined && isFirst) {
      throw new Error(
        `Worker ${index} could not start: ${this.handles[index]!.failure ?? 'the log above says why'}`,
      );
    }
    void this.handles[index]!.gone.then(async (end) => {
      options.metrics.detachWorker(index);
      if (this.#isStopping) {
        return;
      }
      options.metrics.counter('mouthpiece_worker_restarts_total', { reason: end }).add();
      const nextDelayMs =
        monotonicMs() - bornMs > SETTLED_MS
          ? RESTART_DELAY_MS
          : Math.min(delayMs * 2, MAX_RESTART_DELAY_MS);
      options.log.warn({ worker: index, end, delayMs: nextDelayMs }, 'replacing a worker');
      await sleep(nextDelayMs);
      if (!this.#isStopping) {
        await this.#spawn(index, cpu, false, nextDelayMs);
      }
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.handles.map((handle) => handle.stop()));
  }
}
