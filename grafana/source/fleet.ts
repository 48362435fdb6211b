// Dashboard: all servers that share a Redis, each against the others.
import {
  falling,
  metric,
  rate,
  ratesBy,
  rising,
  stat,
  timeseries,
  type Dashboard,
} from '../panels.ts';

/** The dashboard of all servers that share a Redis. */
export const fleet: Dashboard = {
  uid: 'mouthpiece-fleet',
  title: 'Mouthpiece: fleet',
  about:
    'All servers that share a Redis, one line each. Start here with more than one server, then ' +
    'choose one at the top of the other dashboards.',
  rows: [
    {
      title: 'Servers',
      panels: [
        stat(
          'Live servers',
          'short',
          'Live servers as they see one another. Fewer than Prometheus scrapes: some do not reach ' +
            'Redis.',
          `max(${metric('mouthpiece_cluster_nodes')})`,
          { width: 4, height: 7 },
        ),
        stat(
          'Room left',
          'short',
          'Sessions that all servers together would still take.',
          `sum(${metric('mouthpiece_room_sessions')})`,
          { width: 4, height: 7, thresholds: falling(2, 5) },
        ),
        timeseries(
          'Room left by server',
          'short',
          'Sessions that each server would still take.',
          [{ expr: metric('mouthpiece_room_sessions'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Sessions',
          'short',
          'Live sessions of each server.',
          [
            {
              expr: `sum by (instance) (${metric('mouthpiece_sessions')})`,
              legend: '{{instance}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Servers lost',
          'short',
          'Servers that died, and sessions whose tokens and quota slots were freed for them. A ' +
            'server that was stopped in order does not count.',
          [
            {
              expr: `sum(${rate('mouthpiece_cluster_nodes_lost_total')}) * 60`,
              legend: 'servers a minute',
            },
            {
              expr: `sum(${rate('mouthpiece_cluster_sessions_freed_total')}) * 60`,
              legend: 'sessions a minute',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Not ready',
          'short',
          'Servers that do not answer /readyz with 200, those that drain among them.',
          [
            {
              expr: `count(${metric('mouthpiece_ready')}) - sum(${metric('mouthpiece_ready')})`,
              legend: 'not ready',
            },
            { expr: `sum(${metric('mouthpiece_draining')})`, legend: 'draining' },
          ],
          { min: 0, thresholds: rising(1, 2) },
        ),
        timeseries(
          'Versions',
          'short',
          'Servers of each version.',
          [
            {
              expr: `count by (version) (${metric('mouthpiece_build_info')})`,
              legend: '{{version}}',
            },
          ],
          { min: 0, stack: true },
        ),
      ],
    },
    {
      title: 'Sessions on other servers',
      panels: [
        timeseries(
          'Relayed sessions',
          'short',
          'Sessions whose client is connected to a server that had no room, or drains. Their media ' +
            'goes directly; a balancer that reads /readyz?full=503 keeps this low.',
          [{ expr: metric('mouthpiece_relayed_sessions'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Relays',
          'ops',
          'Connections to other servers by outcome. Unreachable: look at NODE_URL. Refused: the ' +
            'other server became full meanwhile.',
          ratesBy('outcome', 'mouthpiece_relays_total'),
          { min: 0 },
        ),
        timeseries(
          'Relayed messages',
          'Bps',
          'Messages that were passed on, without media.',
          ratesBy('direction', 'mouthpiece_relay_bytes_total'),
          { min: 0 },
        ),
      ],
    },
  ],
};
