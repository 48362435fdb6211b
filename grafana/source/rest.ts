// Dashboard: HTTP, WebSockets and offline jobs.
import {
  falling,
  metric,
  quantile,
  rate,
  rising,
  sumBy,
  timeseries,
  type Dashboard,
  ratesBy,
} from '../panels.ts';

/** The dashboard of HTTP, WebSockets and offline jobs. */
export const rest: Dashboard = {
  uid: 'mouthpiece-rest',
  title: 'Mouthpiece: REST and jobs',
  about: 'HTTP by route, the sockets, and the offline jobs: static videos and faces.',
  rows: [
    {
      title: 'HTTP',
      panels: [
        timeseries(
          'Requests, by status',
          'reqps',
          'Answered requests.',
          ratesBy('status', 'mouthpiece_http_requests_total'),
          { stack: true, min: 0 },
        ),
        timeseries(
          'Requests, by route',
          'reqps',
          'By route template, never by the requested path.',
          [
            {
              expr: sumBy('method, route', rate('mouthpiece_http_requests_total')),
              legend: '{{method}} {{route}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Latency, p99',
          's',
          '99th percentile of each route.',
          [
            {
              expr: quantile(0.99, 'mouthpiece_http_request_duration_seconds', 'route'),
              legend: '{{route}}',
            },
          ],
          { min: 0 },
        ),
        timeseries(
          'Errors',
          'percentunit',
          'Share of responses with status 5xx (server errors) and 4xx (client errors).',
          [
            {
              expr:
                `(${sumBy('', rate('mouthpiece_http_requests_total', 'status=~"5.."'))} or ` +
                `vector(0)) / ${sumBy('', rate('mouthpiece_http_requests_total'))}`,
              legend: '5xx',
            },
            {
              expr:
                `(${sumBy('', rate('mouthpiece_http_requests_total', 'status=~"4.."'))} or ` +
                `vector(0)) / ${sumBy('', rate('mouthpiece_http_requests_total'))}`,
              legend: '4xx',
            },
          ],
          { min: 0, max: 1, thresholds: rising(0.01, 0.05) },
        ),
        timeseries(
          'In flight',
          'short',
          'Requests in progress.',
          [{ expr: metric('mouthpiece_http_requests_in_flight'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Refused',
          'ops',
          'Requests and connections refused to protect the server, by the limit that was reached.',
          ratesBy('reason', 'mouthpiece_http_refused_total'),
          { min: 0 },
        ),
        timeseries(
          'Memory of bodies',
          'bytes',
          'Memory of request bodies in progress. The server is not ready above 90 % of 256 MiB.',
          [{ expr: metric('mouthpiece_http_body_bytes'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Connections',
          'short',
          'Open TCP connections, including WebSockets.',
          [{ expr: metric('mouthpiece_http_connections'), legend: '{{instance}}' }],
          { min: 0 },
        ),
        timeseries(
          'Tokens',
          'ops',
          'Session tokens issued.',
          [{ expr: sumBy('', rate('mouthpiece_tokens_issued_total')), legend: 'issued' }],
          { min: 0 },
        ),
      ],
    },
    {
      title: 'WebSocket',
      panels: [
        timeseries(
          'Open sockets',
          'short',
          'Open session WebSockets.',
          [{ expr: metric('mouthpiece_websocket_connections'), legend: '{{instance}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Messages',
          'ops',
          'WebSocket messages by direction and type; "ignored": not part of the protocol.',
          [
            {
              expr:
                `${sumBy('direction, type', rate('mouthpiece_websocket_messages_total'))} > ` +
                '0 or vector(0)',
              legend: '{{direction}} {{type}}',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Bytes',
          'Bps',
          'Payload of WebSocket messages, by direction.',
          ratesBy('direction', 'mouthpiece_websocket_bytes_total'),
          { width: 6, min: 0 },
        ),
        timeseries(
          'Messages dropped',
          'ops',
          'Messages discarded unread: one socket, or all sockets together, exceeded the ' +
            'message budget.',
          ratesBy('reason', 'mouthpiece_websocket_messages_dropped_total'),
          { width: 6, min: 0 },
        ),
      ],
    },
    {
      title: 'Offline jobs',
      panels: [
        timeseries(
          'Queue',
          'short',
          'Current jobs by kind and state.',
          [{ expr: sumBy('kind, state', metric('mouthpiece_jobs')), legend: '{{kind}} {{state}}' }],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Oldest waiting job',
          's',
          'Age of the oldest waiting job. A steady rise: more jobs arrive than the threads ' +
            'can process.',
          [{ expr: metric('mouthpiece_job_oldest_queued_seconds'), legend: '{{kind}}' }],
          { width: 6, min: 0, thresholds: rising(60, 300) },
        ),
        timeseries(
          'Finished and refused',
          'ops',
          'Finished jobs by result. refused: the queue was full.',
          [
            {
              expr: sumBy('kind, result', rate('mouthpiece_jobs_finished_total')),
              legend: '{{kind}} {{result}}',
            },
            {
              expr: sumBy('kind', rate('mouthpiece_jobs_refused_total')),
              legend: '{{kind}} refused',
            },
          ],
          { width: 6, min: 0 },
        ),
        timeseries(
          'Speed',
          'none',
          'Seconds of video rendered per second. Below 1 a viewer would catch up with the ' +
            'renderer.',
          [{ expr: quantile(0.5, 'mouthpiece_job_realtime_factor'), legend: 'median' }],
          { width: 6, min: 0, thresholds: falling(1, 8) },
        ),
        timeseries(
          'Waiting time',
          's',
          'Time from acceptance of a job to its start.',
          [{ expr: quantile(0.9, 'mouthpiece_job_wait_seconds', 'kind'), legend: 'p90 {{kind}}' }],
          { width: 12, min: 0 },
        ),
        timeseries(
          'Duration',
          's',
          "Time from a job's start to its end.",
          [
            {
              expr: quantile(0.9, 'mouthpiece_job_duration_seconds', 'kind'),
              legend: 'p90 {{kind}}',
            },
          ],
          { width: 12, min: 0 },
        ),
      ],
    },
  ],
};
