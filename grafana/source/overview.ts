// Dashboard: health, free capacity and service objectives.
import {
  bargauge,
  falling,
  mean,
  metric,
  quantile,
  rate,
  rising,
  stat,
  sumBy,
  table,
  timeseries,
  type Dashboard,
  ratesBy,
} from '../panels.ts';

/** The dashboard of health, free capacity and service objectives. */
export const overview: Dashboard = {
  uid: 'mouthpiece-overview',
  title: 'Mouthpiece: overview',
  about:
    'Health, free capacity and service objectives at a glance. Start here; each panel ' +
    'links to the dashboard with the details.',
  rows: [
    {
      title: 'Now',
      panels: [
        stat(
          'Ready',
          'bool_yes_no',
          'Whether every server answers /readyz with 200. A draining server is not ready ' +
            'on purpose.',
          `min(${metric('mouthpiece_ready')})`,
          { width: 2, thresholds: falling(0.5, 1) },
        ),
        stat(
          'Sessions',
          'short',
          'Current sessions of every kind and state.',
          `sum(${metric('mouthpiece_sessions')})`,
          { more: 'mouthpiece-live' },
        ),
        stat(
          'Speaking',
          'short',
          'Current sessions whose face is speaking. They use most of the CPU.',
          `sum(${metric('mouthpiece_sessions', 'state="speaking"')})`,
          { width: 2, more: 'mouthpiece-live' },
        ),
        stat(
          'Room left',
          'short',
          'Sessions that the workers can still accept. At 0 the servers are full, and ' +
            '/readyz says so.',
          `sum(${metric('mouthpiece_room_sessions')})`,
          { thresholds: falling(2, 5), more: 'mouthpiece-workers' },
        ),
        stat(
          'Bursts to lips, p99',
          's',
          'Time from the arrival of speech sent faster than real time to the sending of ' +
            'the first frame with moving lips. Objective: 99 % within 120 ms.',
          quantile(0.99, 'mouthpiece_audio_to_lips_seconds', '', 'pace="burst"'),
          { thresholds: rising(0.07, 0.12), more: 'mouthpiece-live' },
        ),
        stat(
          'Paced speech to lips, p99',
          's',
          'The same for speech sent in real time. The model needs 60 ms of look-ahead, ' +
            'which must arrive first. Objective: 99 % within 200 ms.',
          quantile(0.99, 'mouthpiece_audio_to_lips_seconds', '', 'pace="paced"'),
          { thresholds: rising(0.15, 0.2), more: 'mouthpiece-live' },
        ),
        stat(
          'Frames on time',
          'percentunit',
          'Share of frames sent within 15 ms of their due time. Objective: 99 %.',
          `${sumBy('', rate('mouthpiece_frame_lateness_seconds_bucket', 'le="0.015"'))} / ` +
            `(${sumBy('', rate('mouthpiece_frame_lateness_seconds_count'))} > 0)`,
          { thresholds: falling(0.98, 0.99), more: 'mouthpiece-live' },
        ),
        stat(
          'Set-up, p99',
          's',
          "Time from a client's offer to the first frame sent. Objective: 99 % within 500 ms.",
          quantile(0.99, 'mouthpiece_session_setup_seconds', '', 'step="total"'),
          { thresholds: rising(0.3, 0.5), more: 'mouthpiece-live' },
        ),
        stat(
          'Alerts firing',
          'short',
          'Alert rules of this project that are firing. Each alert links to its runbook.',
          'count(ALERTS{alertstate="firing",alertname=~"Mouthpiece.*"}) or vector(0)',
          { width: 2, thresholds: rising(1, 1) },
        ),
      ],
    },
    {
      title: 'Objectives',
      panels: [
        bargauge(
          'Error budget left, 30 days',
          'percentunit',
          'Share of the 30-day error budget of each objective that is left: 100 % is ' +
            'unused, 0 % is used up.',
          [{ expr: 'mouthpiece:slo_budget_left:ratio30d', legend: '{{slo}}' }],
          { thresholds: falling(0.1, 0.5), min: 0, max: 1 },
        ),
        timeseries(
          'Burn rate',
          'none',
          'Speed at which the error budget was used over the last hour. 1 uses exactly the ' +
            'budget; 14.4 pages the engineer on call.',
          [{ expr: 'mouthpiece:slo_burn:rate1h', legend: '{{slo}}' }],
          {
            thresholds: [
              { from: undefined, color: 'green' },
              { from: 6, color: 'yellow' },
              { from: 14.4, color: 'red' },
            ],
          },
        ),
        timeseries(
          'Load of the workers',
          'percentunit',
          'Share of its core that each worker used. Above the limit the worker accepts no ' +
            'new sessions.',
          [
            {
              expr: metric('mouthpiece_worker_load_ratio'),
              legend: '{{instance}} worker {{worker}}',
            },
            { expr: `max(${metric('mouthpiece_worker_load_limit_ratio')})`, legend: 'limit' },
          ],
          { min: 0, max: 1, thresholds: rising(0.7, 0.8), more: 'mouthpiece-workers' },
        ),
      ],
    },
    {
      title: 'Sessions',
      panels: [
        timeseries(
          'Sessions by state',
          'short',
          'Current sessions by state.',
          [{ expr: sumBy('state', metric('mouthpiece_sessions')), legend: '{{state}}' }],
          { stack: true, width: 6, min: 0 },
        ),
        timeseries(
          'Started, by kind',
          'ops',
          'Sessions per second whose WebSocket presented a valid token.',
          ratesBy('kind', 'mouthpiece_sessions_started_total'),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Ended, by reason',
          'ops',
          'worker_lost and error are faults of the server. connect_timeout and ice_failed ' +
            "nearly always mean a firewall or NAT on the path. peer_lost: the client's " +
            'network went away.',
          [
            {
              expr: `${sumBy('reason', rate('mouthpiece_sessions_ended_total'))} > 0 or vector(0)`,
              legend: '{{reason}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Refused',
          'ops',
          'Refused tokens and sockets by code. SERVER_OVERLOADED: no worker had capacity.',
          [
            {
              expr: `${sumBy('code', rate('mouthpiece_tokens_refused_total'))} > 0 or vector(0)`,
              legend: 'token {{code}}',
            },
            {
              expr: `${sumBy('code', rate('mouthpiece_sessions_refused_total'))} > 0 or vector(0)`,
              legend: 'socket {{code}}',
            },
          ],
          { width: 6, min: 0 },
        ),
      ],
    },
    {
      title: 'Process',
      panels: [
        timeseries(
          'Memory',
          'bytes',
          'Resident memory of the whole process. It should rise and fall with the number ' +
            'of sessions.',
          [{ expr: metric('process_resident_memory_bytes'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'CPU',
          'percentunit',
          'Cores used by the whole process.',
          [{ expr: rate('process_cpu_seconds_total'), legend: '{{instance}}' }],
          { width: 6, min: 0, more: 'mouthpiece-workers' },
        ),
        timeseries(
          'File descriptors',
          'short',
          'Open file descriptors. A rise without a rise in sessions is a leak. Near the ' +
            'limit new connections are refused; the last line counts them per second.',
          [
            { expr: metric('process_open_fds'), legend: '{{instance}}' },
            { expr: `min(${metric('process_max_fds')})`, legend: 'limit' },
            {
              expr: sumBy('reason', rate('mouthpiece_connections_refused_total')),
              legend: 'refused a second ({{reason}})',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Errors, by code',
          'ops',
          'Errors of the server and errors that ended a session.',
          [
            {
              expr: `${sumBy('code', rate('mouthpiece_errors_total'))} > 0 or vector(0)`,
              legend: '{{code}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        table(
          'Versions',
          'none',
          'Version, commit and Node of each server.',
          [{ expr: metric('mouthpiece_build_info'), legend: '' }],
          { width: 12, height: 5 },
        ),
        stat(
          'Started',
          'dateTimeFromNow',
          'Start time of the newest process.',
          `max(${metric('process_start_time_seconds')}) * 1000`,
          { width: 4, height: 5 },
        ),
        stat(
          'Draining',
          'short',
          'Servers that accept no new sessions and exit when their sessions have ended.',
          `sum(${metric('mouthpiece_draining')})`,
          { width: 4, height: 5, thresholds: rising(1, 1) },
        ),
        stat(
          'Cost of a scrape',
          's',
          'Mean time to write one answer of /metrics.',
          mean('mouthpiece_scrape_duration_seconds'),
          { width: 4, height: 5, thresholds: rising(0.005, 0.05) },
        ),
      ],
    },
  ],
};
