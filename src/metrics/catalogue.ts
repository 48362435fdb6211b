// The one catalogue of every metric: name (with base unit), type, help, bounded labels, buckets, and the thread that writes it.
import { ERRORS } from '../base/errors.ts';
import { type EndReason, SESSION_ENDS } from '../base/session-ends.ts';

/** Values a label may take: all of them, or at most so many found at run time (further ones are counted as "other"). */
export type LabelValues = readonly string[] | { readonly atMost: number };
export type Labels = Readonly<Record<string, LabelValues>>;

/** `front`: written on the main thread. `worker`: written into a worker's sheet (see sheet.ts) and summed at scrape. */
export type Writer = 'front' | 'worker';
export type MetricType = 'counter' | 'gauge' | 'histogram';

export interface Family {
  readonly type: MetricType;
  readonly writer: Writer;
  readonly help: string;
  readonly labels: Labels;
  /** Upper bounds without +Inf, ascending; histograms only. */
  readonly buckets: readonly number[];
  /** Keep a `worker` label instead of summing over workers. */
  readonly perWorker: boolean;
  /** Label name of its exemplars, in OpenMetrics. */
  readonly exemplar: 'session_id' | 'request_id' | undefined;
  /** Why it is on no dashboard panel; null when it must be on one. */
  readonly unpanelled: string | undefined;
}

interface Options {
  readonly perWorker?: true;
  readonly exemplar?: 'session_id' | 'request_id';
  readonly unpanelled?: string;
}

const family = <T extends MetricType, W extends Writer, const L extends Labels>(
  type: T,
  writer: W,
  help: string,
  labels: L,
  buckets: readonly number[],
  options: Options,
) => ({
  type,
  writer,
  help,
  labels,
  buckets,
  perWorker: options.perWorker ?? false,
  exemplar: options.exemplar ?? undefined,
  unpanelled: options.unpanelled ?? undefined,
});

const counter = <W extends Writer, const L extends Labels = {}>(
  writer: W,
  help: string,
  labels: L = {} as L,
  options: Options = {},
) => family('counter', writer, help, labels, [], options);
const gauge = <W extends Writer, const L extends Labels = {}>(
  writer: W,
  help: string,
  labels: L = {} as L,
  options: Options = {},
) => family('gauge', writer, help, labels, [], options);
const histogram = <W extends Writer, const L extends Labels = {}>(
  writer: W,
  help: string,
  buckets: readonly number[],
  labels: L = {} as L,
  options: Options = {},
) => family('histogram', writer, help, labels, buckets, options);

// Bucket bounds in seconds unless said otherwise. Objectives lie on a bound, so that an SLO is an exact ratio of buckets.
const SETUP = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30];
const REQUEST = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const STAGE = [0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];
const LATENESS = [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.033, 0.05, 0.1, 0.25, 1];
const LIPS = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.085, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, 1];
const OFFSET = [-0.125, -0.08, -0.045, -0.03, -0.015, 0, 0.015, 0.03, 0.045, 0.08, 0.125];
const LOOP_DELAY = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1];
const DEPTH = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
const NETWORK = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];
const SESSION_LENGTH = [1, 5, 15, 60, 300, 900, 1800, 3600, 14_400];
const JOB = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800];
const LOSS = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]; // ratio
const RATE = [100e3, 150e3, 200e3, 300e3, 400e3, 600e3, 800e3, 1e6, 1.25e6, 1.5e6, 2e6].map(
  (bits) => bits / 8,
); // byte/s
const BATCH = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64]; // sessions
const SPEED = [0.5, 1, 2, 4, 8, 12, 16, 24, 32, 64]; // media seconds per second

const SESSION_KIND = ['p2p', 'livekit', 'agent', 'auto'] as const;
const SESSION_STATE = ['connecting', 'idle', 'speaking'] as const;
const END_REASON = Object.keys(SESSION_ENDS) as EndReason[];
const ERROR_CODE = Object.keys(ERRORS) as (keyof typeof ERRORS)[];
const CODEC = ['vp8', 'h264'] as const;
const MEDIA = ['audio', 'video'] as const;
const GC = ['minor', 'major', 'incremental', 'other'] as const;
const JOB_KIND = ['static', 'face'] as const;

const HTTP_LIMIT = [
  'requests_at_once',
  'open_requests',
  'wrong_keys',
  'new_connections',
  'body_memory',
  'slow_body',
] as const;

export const CATALOGUE = {
  // ── process and build ──────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_build_info: gauge('front', 'Always 1; the labels say what runs.', {
    version: { atMost: 1 },
    commit: { atMost: 1 },
    node: { atMost: 1 },
  }),
  mouthpiece_ready: gauge('front', '1 while /readyz is green.'),
  mouthpiece_room_sessions: gauge(
    'front',
    'Sessions that the workers would still take, as placement reckons: by promised load and by the limit. 0 while not ready.',
  ),
  mouthpiece_draining: gauge('front', '1 from the first SIGTERM on.'),
  mouthpiece_errors_total: counter(
    'front',
    'Errors that were our fault or cost a session, by code of the error table.',
    { code: ERROR_CODE },
  ),
  mouthpiece_scrape_duration_seconds: histogram(
    'front',
    'Time to write one answer of /metrics.',
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05],
  ),
  process_cpu_seconds_total: counter('front', 'CPU time of the whole process, user and system.'),
  process_resident_memory_bytes: gauge('front', 'Resident memory of the whole process.'),
  process_open_fds: gauge('front', 'Open file descriptors.'),
  process_max_fds: gauge('front', 'Limit on open file descriptors.'),
  mouthpiece_connections_refused_total: counter(
    'front',
    'New TCP connections closed unread, by what they would have used up.',
    { reason: ['descriptors', 'connections'] },
  ),
  process_start_time_seconds: gauge('front', 'Start of the process, Unix time.'),

  // ── the front's own thread ─────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_front_cpu_seconds_total: counter('front', 'CPU time of the main thread.'),
  mouthpiece_front_event_loop_delay_seconds: histogram(
    'front',
    'How late a timer of the main thread fires, sampled ten times a second.',
    LOOP_DELAY,
  ),
  mouthpiece_front_gc_seconds_total: counter(
    'front',
    'Time in garbage collection on the main thread.',
    { kind: GC },
  ),
  mouthpiece_front_heap_used_bytes: gauge('front', 'JavaScript heap in use on the main thread.'),

  // ── HTTP and WebSocket ─────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_http_requests_total: counter('front', 'HTTP requests answered, by route template.', {
    method: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'other'],
    route: { atMost: 64 },
    status: { atMost: 32 },
  }),
  mouthpiece_http_request_duration_seconds: histogram(
    'front',
    'From the last header received to the last byte handed to the socket.',
    REQUEST,
    { route: { atMost: 64 } },
    { exemplar: 'request_id' },
  ),
  mouthpiece_http_requests_in_flight: gauge('front', 'HTTP requests being answered.'),
  mouthpiece_http_connections: gauge('front', 'Open TCP connections, WebSockets among them.'),
  mouthpiece_http_body_bytes: gauge('front', 'Memory that the bodies of requests take.'),
  mouthpiece_http_refused_total: counter(
    'front',
    'Requests and connections refused to protect the server, by the limit that they met.',
    { reason: HTTP_LIMIT },
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
        'signal',
        'status',
        'ignored',
        'other',
      ],
    },
  ),
  mouthpiece_websocket_messages_dropped_total: counter(
    'front',
    'WebSocket messages thrown away unread: the socket was over its budget (socket_rate), all sockets together were (server_rate), or the socket was then closed for it (exhausted).',
    { reason: ['socket_rate', 'server_rate', 'exhausted'] },
  ),
  mouthpiece_websocket_bytes_total: counter('front', 'Payload bytes of WebSocket messages.', {
    direction: ['in', 'out'],
  }),

  // ── tokens and sessions ────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_tokens_issued_total: counter('front', 'Session tokens handed out.'),
  mouthpiece_tokens_refused_total: counter(
    'front',
    'Token requests refused, by the code in the answer.',
    { code: ERROR_CODE },
  ),
  mouthpiece_sessions: gauge('front', 'Sessions now, by kind and state.', {
    kind: SESSION_KIND,
    state: SESSION_STATE,
  }),
  mouthpiece_sessions_started_total: counter(
    'front',
    'Sessions whose socket presented a good token.',
    { kind: SESSION_KIND },
  ),
  mouthpiece_sessions_refused_total: counter(
    'front',
    'Sockets turned away, by the code in the ERROR message.',
    { code: ERROR_CODE },
  ),
  mouthpiece_sessions_ended_total: counter('front', 'Sessions over, by kind and reason.', {
    kind: SESSION_KIND,
    reason: END_REASON,
  }),
  mouthpiece_session_duration_seconds: histogram(
    'front',
    'Length of sessions that are over.',
    SESSION_LENGTH,
    { kind: SESSION_KIND },
  ),
  mouthpiece_session_setup_seconds: histogram(
    'front',
    'Time of each step of setting a session up: token to socket (tokens used within a minute), socket to offer, offer to answer, answer to ICE, first ICE check to DTLS, DTLS to first frame sent; total is from the offer to the first frame sent.',
    SETUP,
    { step: ['socket', 'offer', 'answer', 'ice', 'dtls', 'first_frame', 'total'] },
    { exemplar: 'session_id' },
  ),
  mouthpiece_audio_received_seconds_total: counter(
    'front',
    'Speech received from clients, in seconds of audio.',
    { input: ['socket', 'track'] },
  ),
  mouthpiece_audio_dropped_seconds_total: counter(
    'front',
    'Speech thrown away: the backlog was full, or the client interrupted.',
    { reason: ['backlog_full', 'interrupted'] },
  ),

  // ── workers as the front sees them ─────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_workers: gauge('front', 'Media workers, by state.', {
    state: ['starting', 'ready', 'draining'],
  }),
  mouthpiece_worker_restarts_total: counter(
    'front',
    'Workers replaced because they died or hung.',
    { reason: ['exit', 'unresponsive', 'start_failed'] },
  ),
  mouthpiece_worker_load_limit_ratio: gauge(
    'front',
    'Load of a worker above which new sessions are refused (MAX_WORKER_LOAD).',
  ),
  mouthpiece_worker_sessions_limit: gauge(
    'front',
    'Sessions a worker takes at most (MAX_SESSIONS_PER_WORKER).',
  ),

  // ── a worker's thread ──────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_worker_sessions: gauge(
    'worker',
    'Sessions on the worker, by state.',
    { state: SESSION_STATE },
    { perWorker: true },
  ),
  mouthpiece_worker_load_ratio: gauge(
    'worker',
    'Share of its core the worker used over the last seconds.',
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_cpu_seconds_total: counter(
    'worker',
    'CPU time of the worker thread.',
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_event_loop_delay_seconds: histogram(
    'worker',
    'How late a timer of the worker thread fires, sampled ten times a second.',
    LOOP_DELAY,
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_gc_seconds_total: counter(
    'worker',
    'Time in garbage collection on the worker thread.',
    { kind: GC },
    { perWorker: true },
  ),
  mouthpiece_worker_heap_used_bytes: gauge(
    'worker',
    'JavaScript heap in use on the worker thread.',
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_ticks_total: counter(
    'worker',
    'Turns of the frame loop.',
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_tick_duration_seconds: histogram(
    'worker',
    'Time of one turn of the frame loop, all due sessions together.',
    LATENESS,
  ),

  // ── frames ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_frames_sent_total: counter('worker', 'Video frames handed to the transport.', {
    codec: CODEC,
    activity: ['idle', 'speaking'],
  }),
  mouthpiece_frames_skipped_total: counter('worker', 'Frames that were due and not sent.', {
    reason: ['late', 'rate_control', 'overload', 'error'],
  }),
  mouthpiece_frames_repeated_total: counter(
    'worker',
    "Frames of sessions with a user's own network that showed the last mouth once more, since theirs was not ready.",
  ),
  mouthpiece_frame_lateness_seconds: histogram(
    'worker',
    'From the moment a frame was due to its last packet handed to the socket.',
    LATENESS,
    {},
    { perWorker: true },
  ),
  mouthpiece_stage_duration_seconds: histogram(
    'worker',
    "Time of one stage for one frame (drain: reading the audio lane; inference: one batched run, and each mouth that a user's own network makes, on the inference thread; packetize: cutting into RTP payloads; send: ciphering and the socket; audio: one packet encoded).",
    STAGE,
    { stage: ['drain', 'features', 'inference', 'render', 'encode', 'packetize', 'send', 'audio'] },
  ),
  mouthpiece_inference_batch_sessions: histogram(
    'worker',
    'Sessions in one run of the speech model.',
    BATCH,
  ),
  mouthpiece_key_frames_total: counter('worker', 'Key frames encoded.', {
    codec: CODEC,
    cause: ['start', 'request', 'other'],
  }),
  mouthpiece_encoded_bytes_total: counter('worker', 'Bytes that came out of the video encoders.', {
    codec: CODEC,
  }),

  // ── speech ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_audio_to_lips_seconds: histogram(
    'worker',
    "From the arrival of an utterance's first speech to its first frame with moving lips leaving. Pace: burst (what a start needs came faster than real time), " +
      "paced (real time: the look-ahead of 60 ms has to come in first), paced_network (paced, for a user's own network, which looks further ahead).",
    LIPS,
    { input: ['socket', 'track'], pace: ['burst', 'paced', 'paced_network'] },
    { exemplar: 'session_id' },
  ),
  mouthpiece_interrupt_seconds: histogram(
    'worker',
    'From SKIP or PLAY_IMMEDIATE arriving to the first packet without the old speech.',
    LIPS,
  ),
  mouthpiece_av_offset_seconds: histogram(
    'worker',
    'Media time of the picture minus that of the sound at the moment both are sent, once a second per speaking session; negative: the sound is ahead.',
    OFFSET,
  ),
  mouthpiece_utterances_total: counter('worker', 'Utterances begun (SPEAK sent).'),
  mouthpiece_speech_seconds_total: counter(
    'worker',
    'Speech played out to peers, in seconds of audio.',
  ),
  mouthpiece_audio_buffer_seconds: histogram(
    'worker',
    'Speech waiting to be played, sampled once a second per speaking session.',
    DEPTH,
  ),
  mouthpiece_audio_underruns_total: counter(
    'worker',
    'Times the speech ran dry in the middle of an utterance.',
  ),

  // ── transport ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_rtp_packets_sent_total: counter('worker', 'RTP packets sent for the first time.', {
    media: MEDIA,
  }),
  mouthpiece_rtp_bytes_sent_total: counter('worker', 'RTP payload bytes sent for the first time.', {
    media: MEDIA,
  }),
  mouthpiece_rtp_packets_retransmitted_total: counter(
    'worker',
    'RTP packets sent again: asked for (RTX, RFC 4588), or copies on a path that loses packets.',
  ),
  mouthpiece_rtp_packets_received_total: counter('worker', "RTP packets of peers' microphones."),
  mouthpiece_rtp_nacks_received_total: counter(
    'worker',
    'Packets asked for again by NACK (RFC 4585).',
  ),
  mouthpiece_rtp_key_frame_requests_total: counter('worker', 'Key frames asked for by receivers.', {
    kind: ['pli', 'fir'],
  }),
  mouthpiece_rtp_packets_lost_total: counter(
    'worker',
    'Packets that receivers reported lost (RFC 3550 section 6.4.1).',
  ),
  mouthpiece_rtp_fraction_lost_ratio: histogram(
    'worker',
    'Fraction lost as last reported, once a second per session.',
    LOSS,
  ),
  mouthpiece_rtp_round_trip_seconds: histogram(
    'worker',
    'Round trip from receiver reports, once a second per session.',
    NETWORK,
  ),
  mouthpiece_rtp_jitter_seconds: histogram(
    'worker',
    'Interarrival jitter as receivers report it, once a second per session.',
    NETWORK,
  ),
  mouthpiece_send_rate_target_bytes_per_second: histogram(
    'worker',
    'What the path is believed to carry (REMB, receiver reports), once a second per session.',
    RATE,
  ),
  mouthpiece_send_rate_actual_bytes_per_second: histogram(
    'worker',
    'RTP payload really sent, once a second per session.',
    RATE,
  ),
  mouthpiece_peers_closed_total: counter('worker', 'Peer connections over, by reason.', {
    reason: [
      'closed',
      'connect_timeout',
      'ice_failed',
      'dtls_failed',
      'not_authentic',
      'timeout',
      'failed',
    ],
  }),
  mouthpiece_stun_requests_total: counter(
    'front',
    'Datagrams at our own STUN server, by what became of them.',
    { outcome: ['answered', 'rate_limited', 'not_stun', 'send_failed'] },
  ),
  mouthpiece_datagrams_received_total: counter(
    'worker',
    "Datagrams that reached a worker's socket.",
  ),
  mouthpiece_datagrams_rejected_total: counter(
    'worker',
    'Datagrams thrown away before they could do harm.',
    {
      reason: [
        'unknown_source',
        'stun_integrity',
        'stun_replayed',
        'stun_unknown_user',
        'stun_malformed',
        'dtls_record',
        'dtls_plaintext',
        'dtls_renegotiation',
        'sctp_malformed',
        'srtp_auth',
        'rate_limited',
        'too_large',
        'other',
      ],
    },
  ),
  mouthpiece_datagrams_unsent_total: counter(
    'worker',
    'Datagrams that a worker did not send, by reason.',
    { reason: ['queue_full', 'refused', 'unproven_address'] },
  ),

  // ── storage ────────────────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_redis_command_duration_seconds: histogram(
    'front',
    'Round trip of one Redis command or script.',
    REQUEST,
    { command: { atMost: 48 } },
  ),
  mouthpiece_redis_errors_total: counter('front', 'Redis commands that failed.', {
    cause: ['timeout', 'connection', 'reply', 'other'],
  }),
  mouthpiece_redis_connected: gauge('front', '1 while Redis answers.'),
  mouthpiece_history_pending_records: gauge(
    'front',
    'Session records waiting for Redis to come back.',
  ),

  // ── offline jobs ───────────────────────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_jobs: gauge('front', 'Offline jobs now.', {
    kind: JOB_KIND,
    state: ['queued', 'running'],
  }),
  mouthpiece_jobs_refused_total: counter('front', 'Jobs refused because the queue was full.', {
    kind: JOB_KIND,
  }),
  mouthpiece_jobs_finished_total: counter('front', 'Jobs over, by result.', {
    kind: JOB_KIND,
    result: ['completed', 'failed', 'cancelled'],
  }),
  mouthpiece_job_wait_seconds: histogram('front', "From a job's acceptance to its start.", JOB, {
    kind: JOB_KIND,
  }),
  mouthpiece_job_duration_seconds: histogram('front', "From a job's start to its end.", JOB, {
    kind: JOB_KIND,
  }),
  mouthpiece_job_oldest_queued_seconds: gauge(
    'front',
    'Age of the oldest job still waiting; 0 when none waits.',
    { kind: JOB_KIND },
  ),
  mouthpiece_job_realtime_factor: histogram(
    'front',
    'Seconds of video made per second of work.',
    SPEED,
  ),
} as const;

export type Catalogue = typeof CATALOGUE;
export type MetricName = keyof Catalogue;
export const METRIC_NAMES = Object.keys(CATALOGUE) as MetricName[];

/** Names of one type that one kind of thread may write. */
export type NameOf<T extends MetricType, W extends Writer> = {
  [N in MetricName]: Catalogue[N]['type'] extends T
    ? Catalogue[N]['writer'] extends W
      ? N
      : never
    : never;
}[MetricName];

export type LabelsOf<N extends MetricName> = {
  readonly [
    L in keyof Catalogue[N]['labels']
  ]: Catalogue[N]['labels'][L] extends readonly (infer V)[] ? V : string;
};

/** The labels argument of a metric: absent when it has none. */
export type LabelArguments<N extends MetricName> = keyof Catalogue[N]['labels'] extends never
  ? []
  : [labels: LabelsOf<N>];

export interface Counter {
  add(amount?: number): void;
}
export interface Gauge {
  set(value: number): void;
  add(amount: number): void;
}
export interface Histogram {
  observe(value: number, exemplar?: Exemplar): void;
}

/** Whom an observation was made on, so that a slow bucket leads to one session or request. Made once, by `exemplarOf`. */
export interface Exemplar {
  readonly id: string;
  readonly words: readonly [number, number, number, number];
}

/** How a thread writes metrics. Resolve handles once, where a part is built; `add`, `set` and `observe` are cheap enough for every frame. */
export interface Meter<W extends Writer> {
  counter<N extends NameOf<'counter', W>>(name: N, ...labels: LabelArguments<N>): Counter;
  gauge<N extends NameOf<'gauge', W>>(name: N, ...labels: LabelArguments<N>): Gauge;
  histogram<N extends NameOf<'histogram', W>>(name: N, ...labels: LabelArguments<N>): Histogram;
}
