// Dashboard: Redis, and the storage of files, as the servers see them.
import {
  falling,
  metric,
  quantile,
  quantiles,
  rising,
  stat,
  timeseries,
  type Dashboard,
  ratesBy,
} from '../panels.ts';

/** The dashboard of Redis, and of the storage of files, as the servers see them. */
export const redis: Dashboard = {
  uid: 'mouthpiece-redis',
  title: 'Mouthpiece: Redis and storage',
  about:
    'Redis, and the storage of faces and videos (a folder or S3), as the servers see them. Live ' +
    'sessions continue without either; new tokens, history and jobs need Redis, new faces and ' +
    'static videos the storage.',
  rows: [
    {
      title: 'Redis',
      panels: [
        stat(
          'Connected',
          'bool_yes_no',
          'Whether every server is connected to Redis.',
          `min(${metric('mouthpiece_redis_connected')})`,
          { thresholds: falling(0.5, 1), width: 4, height: 7 },
        ),
        stat(
          'Records waiting',
          'short',
          'Session records that wait in memory until Redis can be written to.',
          `sum(${metric('mouthpiece_history_pending_records')})`,
          { thresholds: rising(1, 1000), width: 4, height: 7 },
        ),
        timeseries(
          'Errors',
          'ops',
          'Failed commands by cause.',
          ratesBy('cause', 'mouthpiece_redis_errors_total'),
          { min: 0 },
        ),
        timeseries(
          'Commands',
          'ops',
          'Commands per second by command or script.',
          ratesBy('command', 'mouthpiece_redis_command_duration_seconds_count'),
          { min: 0 },
        ),
        timeseries(
          'Latency',
          's',
          'Round trip of all commands.',
          quantiles('mouthpiece_redis_command_duration_seconds', [0.5, 0.99]),
          { width: 12, min: 0, thresholds: rising(0.01, 0.05) },
        ),
        timeseries(
          'Latency by command, p99',
          's',
          '99th percentile of the latency of each command.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_redis_command_duration_seconds', 'command'),
              legend: '{{command}}',
            },
          ],
          { width: 12, min: 0 },
        ),
      ],
    },
    {
      title: 'Storage of faces and videos',
      panels: [
        stat(
          'Works',
          'bool_yes_no',
          'Whether every server can write to its storage (a folder or S3) and read from it.',
          `min(${metric('mouthpiece_storage_up')})`,
          { thresholds: falling(0.5, 1), width: 4, height: 7 },
        ),
        timeseries(
          'Storage errors',
          'ops',
          'Failed operations by kind, after their repetitions.',
          ratesBy('operation', 'mouthpiece_storage_errors_total'),
          { min: 0 },
        ),
        timeseries(
          'Storage operations',
          'ops',
          'Operations per second by kind.',
          ratesBy('operation', 'mouthpiece_storage_operation_duration_seconds_count'),
          { min: 0 },
        ),
        timeseries(
          'Local copies',
          'ops',
          'Files asked for where S3 is used, by how the local copies helped.',
          ratesBy('outcome', 'mouthpiece_storage_cache_requests_total'),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Size of local copies',
          'bytes',
          'Bounded by S3_CACHE_MEGABYTES.',
          [{ expr: metric('mouthpiece_storage_cache_bytes'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Storage latency by operation, p99',
          's',
          '99th percentile of the time of each operation. `put` and `get` carry whole files.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_storage_operation_duration_seconds', 'operation'),
              legend: '{{operation}}',
            },
          ],
          { width: 12, min: 0 },
        ),
      ],
    },
  ],
};
