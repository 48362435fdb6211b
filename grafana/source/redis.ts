// Dashboard: Redis as the servers see it.
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

/** The dashboard of Redis as the servers see it. */
export const redis: Dashboard = {
  uid: 'mouthpiece-redis',
  title: 'Mouthpiece: Redis',
  about:
    'Redis as the servers see it. Live sessions continue without it; new tokens, history ' +
    'and jobs need it.',
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
  ],
};
