// Metrics of the catalogue: the server as a whole, its main thread, HTTP and WebSocket.
import { REQUEST_BUCKETS, LOOP_DELAY_BUCKETS, ERROR_CODES, GC_KINDS } from './catalogue-common.ts';
import { counter, gauge, histogram } from './metric-family.ts';

const HTTP_LIMITS = [
  'requests_at_once',
  'open_requests',
  'wrong_keys',
  'new_connections',
  'body_memory',
  'slow_body',
] as const;

/** Metrics of process, main thread, HTTP and WebSocket. */
export const SERVER_METRICS = {
  // ── process and build ──────────────────────────────────────────────────────────────────────────
  mouthpiece_build_info: gauge('front', 'Always 1; the labels name the versions that run.', {
    version: { atMost: 1 },
    commit: { atMost: 1 },
    node: { atMost: 1 },
  }),
  mouthpiece_ready: gauge('front', '1 while /readyz answers 200.'),
  mouthpiece_room_sessions: gauge(
    'front',
    'Sessions that the workers would still take, by promised load and by the limit. 0 while not ready.',
  ),
  mouthpiece_draining: gauge('front', '1 from the first SIGTERM on.'),
  mouthpiece_errors_total: counter(
    'front',
    'Errors of this server, and errors that ended a session, by code of the error table.',
    { code: ERROR_CODES },
  ),
  mouthpiece_trace_spans_total: counter(
    'front',
    'Spans for the OpenTelemetry collector: exported, or failed since it did not take them.',
    { outcome: ['exported', 'failed'] },
    { unpanelled: 'Only servers with a collector have it; the collector counts spans itself.' },
  ),
  mouthpiece_scrape_duration_seconds: histogram(
    'front',
    'Time to render one response of /metrics.',
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05],
  ),
  process_cpu_seconds_total: counter('front', 'CPU time of the whole process, user and system.'),
  process_resident_memory_bytes: gauge('front', 'Resident memory of the whole process.'),
  process_open_fds: gauge('front', 'Open file descriptors.'),
  process_max_fds: gauge('front', 'Limit on open file descriptors.'),
  mouthpiece_connections_refused_total: counter(
    'front',
    'New TCP connections closed unread, by the resource that was short.',
    { reason: ['descriptors', 'connections'] },
  ),
  process_start_time_seconds: gauge('front', 'Start of the process, Unix time.'),

  // ── main thread ────────────────────────────────────────────────────────────────────────────────
  mouthpiece_front_cpu_seconds_total: counter('front', 'CPU time of the main thread.'),
  mouthpiece_front_event_loop_delay_seconds: histogram(
    'front',
    'How late a timer of the main thread fires, sampled ten times a second.',
    LOOP_DELAY_BUCKETS,
  ),
  mouthpiece_front_gc_seconds_total: counter(
    'front',
    'Time in garbage collection on the main thread.',
    { kind: GC_KINDS },
  ),
  mouthpiece_front_heap_used_bytes: gauge('front', 'JavaScript heap in use on the main thread.'),

  // ── HTTP and WebSocket ─────────────────────────────────────────────────────────────────────────
  mouthpiece_http_requests_total: counter('front', 'HTTP requests answered, by route template.', {
    method: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'other'],
    route: { atMost: 64 },
    status: { atMost: 32 },
  }),
  mouthpiece_http_request_duration_seconds: histogram(
    'front',
    'From the last header received to the last byte handed to the socket.',
    REQUEST_BUCKETS,
    { route: { atMost: 64 } },
    { exemplar: 'request_id' },
  ),
  mouthpiece_http_requests_in_flight: gauge('front', 'HTTP requests being answered.'),
  mouthpiece_http_connections: gauge('front', 'Open TCP connections, WebSockets among them.'),
  mouthpiece_http_body_bytes: gauge('front', 'Memory in use for the bodies of requests.'),
  mouthpiece_http_refused_total: counter(
    'front',
    'Requests and connections refused to protect the server, by the limit that they exceeded.',
    { reason: HTTP_LIMITS },
  ),
  mouthpiece_websocket_connections: gauge('front', 'Open session sockets.'),
  mouthpiece_websocket_messages_total: counter(
    'front',
    'WebSocket messages, by direction and meaning.',
    {
      direction: ['in', 'out'],
      type: [
        'audio',
        'play_immediate',
        'skip',
        'done',
        'offer',
        'ping',
        'command',
        'signal',
        'status',
        'ignored',
        'other',
      ],
    },
  ),
  mouthpiece_websocket_messages_dropped_total: counter(
    'front',
    'WebSocket messages dropped unread: the socket exceeded its budget (socket_rate), all ' +
      'sockets together did (server_rate), or the socket was closed for it (exhausted).',
    { reason: ['socket_rate', 'server_rate', 'exhausted'] },
  ),
  mouthpiece_websocket_bytes_total: counter('front', 'Payload bytes of WebSocket messages.', {
    direction: ['in', 'out'],
  }),
} as const;
