// Metrics of the catalogue: what other work on the host takes from the workers.
import { counter } from './metric-family.ts';

const MAX_WORKERS = 512;

/** Metrics of the cores of the workers, and of the host. */
export const HOST_METRICS = {
  // ── the cores of the workers ───────────────────────────────────────────────────────────────────
  mouthpiece_worker_run_queue_seconds_total: counter(
    'front',
    'Time in which a worker thread was ready to run and something else ran on its core.',
    { worker: { atMost: MAX_WORKERS } },
  ),
  mouthpiece_worker_core_steal_seconds_total: counter(
    'front',
    "Time that the hypervisor took from a worker's core for other machines.",
    { worker: { atMost: MAX_WORKERS } },
  ),
  mouthpiece_worker_core_other_seconds_total: counter(
    'front',
    "CPU time that anything but the worker's thread used on its core.",
    { worker: { atMost: MAX_WORKERS } },
  ),
  mouthpiece_host_pressure_seconds_total: counter(
    'front',
    'Time in which at least one task of the host waited for the resource (Linux PSI, some).',
    { resource: ['cpu', 'memory', 'io'] },
  ),
} as const;
