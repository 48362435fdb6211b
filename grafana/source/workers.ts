// Dashboard: the media workers and the main thread.
import {
  metric,
  quantile,
  quantiles,
  rate,
  rising,
  sumBy,
  timeseries,
  type Dashboard,
  ratesBy,
} from '../panels.ts';

const worker = (expr: string): { expr: string; legend: string }[] => [
  { expr, legend: '{{instance}} worker {{worker}}' },
];

/** The dashboard of the media workers and the main thread. */
export const workers: Dashboard = {
  uid: 'mouthpiece-workers',
  title: 'Mouthpiece: workers',
  about:
    'One worker thread uses one core. Shows which workers are full, late, blocked or ' +
    'collecting garbage, and the main thread.',
  rows: [
    {
      title: 'Per core',
      panels: [
        timeseries(
          'Room left',
          'short',
          'Sessions that each server can still accept. At 0 it refuses with ' +
            'SERVER_OVERLOADED; send clients to another server.',
          [{ expr: metric('mouthpiece_room_sessions'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Load',
          'percentunit',
          'Share of its core that each worker used over the last second, and the limit ' +
            'above which it accepts no more sessions.',
          [
            ...worker(metric('mouthpiece_worker_load_ratio')),
            { expr: `max(${metric('mouthpiece_worker_load_limit_ratio')})`, legend: 'limit' },
          ],
          { min: 0, max: 1, thresholds: rising(0.7, 0.8) },
        ),
        timeseries(
          'CPU',
          'percentunit',
          'CPU time of each worker thread, in cores.',
          worker(rate('mouthpiece_worker_cpu_seconds_total')),
          { min: 0 },
        ),
        timeseries(
          'Sessions',
          'short',
          'Sessions on each worker, and its maximum.',
          [
            ...worker(`sum without (state) (${metric('mouthpiece_worker_sessions')})`),
            { expr: `max(${metric('mouthpiece_worker_sessions_limit')})`, legend: 'limit' },
          ],
          { min: 0 },
        ),
        timeseries(
          'Frame lateness, p99',
          's',
          'If one worker alone is late, its core is shared with other work or one of its ' +
            'sessions costs too much.',
          worker(quantile(0.99, 'mouthpiece_frame_lateness_seconds', 'instance, worker')),
          { min: 0, thresholds: rising(0.01, 0.015) },
        ),
        timeseries(
          'Event-loop delay, p99',
          's',
          'How late timers fire. High values: the thread was busy with something else.',
          worker(quantile(0.99, 'mouthpiece_worker_event_loop_delay_seconds', 'instance, worker')),
          { min: 0 },
        ),
        timeseries(
          'Frame loop ticks',
          'ops',
          'About 30 ticks per second while there are sessions. Fewer: the worker is overloaded.',
          worker(rate('mouthpiece_worker_ticks_total')),
          { min: 0 },
        ),
        timeseries(
          'Frame loop tick duration',
          's',
          'Time of one tick for all due sessions together. It must stay well under 33 ms.',
          quantiles('mouthpiece_worker_tick_duration_seconds', [0.5, 0.9, 0.99]),
          { min: 0, thresholds: rising(0.02, 0.033) },
        ),
        timeseries(
          'Garbage collection',
          'percentunit',
          'Share of time in garbage collection.',
          worker(sumBy('instance, worker', rate('mouthpiece_worker_gc_seconds_total'))),
          { min: 0 },
        ),
        timeseries(
          'Heap',
          'bytes',
          'JavaScript heap of each worker. Codecs and pictures use native memory outside of it.',
          worker(metric('mouthpiece_worker_heap_used_bytes')),
          { min: 0 },
        ),
      ],
    },
    {
      title: 'What other work takes',
      panels: [
        timeseries(
          'Waiting for the core',
          'percentunit',
          'Share of time in which each worker was ready to run while something else ran on its ' +
            'core. Frames are late by it, whatever the load says.',
          worker(rate('mouthpiece_worker_run_queue_seconds_total')),
          { width: 6, min: 0, thresholds: rising(0.02, 0.05) },
        ),
        timeseries(
          'Steal',
          'percentunit',
          "Share of time that the hypervisor took from each worker's core for other machines. " +
            'Only the host can help.',
          worker(rate('mouthpiece_worker_core_steal_seconds_total')),
          { width: 6, min: 0, thresholds: rising(0.02, 0.05) },
        ),
        timeseries(
          'Other work on the core',
          'percentunit',
          "CPU time of anything but the worker on the worker's core: another process, another " +
            'server, threads of this one, interrupts.',
          worker(rate('mouthpiece_worker_core_other_seconds_total')),
          { width: 6, min: 0, thresholds: rising(0.1, 0.3) },
        ),
        timeseries(
          'Pressure of the host',
          'percentunit',
          'Share of time in which some task of the host waited for CPU, memory or disks (Linux ' +
            'PSI).',
          [
            {
              expr: rate('mouthpiece_host_pressure_seconds_total'),
              legend: '{{instance}} {{resource}}',
            },
          ],
          { width: 6, min: 0, max: 1 },
        ),
      ],
    },
    {
      title: 'CPU of a frame',
      panels: [
        timeseries(
          'CPU of a session',
          'percentunit',
          'Worker CPU per connected session, in cores. Use it for capacity planning.',
          [
            {
              expr:
                `${sumBy('', rate('mouthpiece_worker_cpu_seconds_total'))} / ` +
                `(sum(${metric('mouthpiece_worker_sessions', 'state!="connecting"')}) > 0)`,
              legend: 'per session',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Stage, p99',
          's',
          '99th percentile of each stage.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_stage_duration_seconds', 'stage'),
              legend: '{{stage}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'State of workers',
          'short',
          'Workers by state. Ready should equal the configured number.',
          [{ expr: sumBy('state', metric('mouthpiece_workers')), legend: '{{state}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Restarts',
          'short',
          'Workers replaced in the last ten minutes. Each is a bug: read the log of that time.',
          [
            {
              expr: sumBy('reason', `increase(${metric('mouthpiece_worker_restarts_total')}[10m])`),
              legend: '{{reason}}',
            },
          ],
          { width: 6, min: 0, thresholds: rising(1, 1) },
        ),
      ],
    },
    {
      title: 'Main thread',
      panels: [
        timeseries(
          'CPU',
          'percentunit',
          'CPU time of the main thread, in cores.',
          [{ expr: rate('mouthpiece_front_cpu_seconds_total'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Event-loop delay',
          's',
          'How late timers of the main thread fire: REST and WebSocket messages wait that long.',
          quantiles('mouthpiece_front_event_loop_delay_seconds', [0.5, 0.99]),
          { width: 6, min: 0, thresholds: rising(0.05, 0.1) },
        ),
        timeseries(
          'Garbage collection',
          'percentunit',
          'Share of time in garbage collection, by kind.',
          ratesBy('kind', 'mouthpiece_front_gc_seconds_total'),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Heap',
          'bytes',
          'JavaScript heap of the main thread.',
          [{ expr: metric('mouthpiece_front_heap_used_bytes'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
      ],
    },
  ],
};
