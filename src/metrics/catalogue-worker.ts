// Metrics of the catalogue: workers: threads, frames and speech.
import { LOOP_DELAY_BUCKETS, SESSION_STATES, GC_KINDS } from './catalogue-common.ts';
import { counter, gauge, histogram } from './metric-family.ts';

// Bucket bounds, in seconds unless noted. Each objective is a bound, so that its SLO is an exact
// ratio of buckets.
const STAGE_BUCKETS = [0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];
const LATENESS_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.033, 0.05, 0.1, 0.25, 1];
const LIPS_BUCKETS = [
  0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.085, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, 1,
];
const AV_OFFSET_BUCKETS = [
  -0.125, -0.08, -0.045, -0.03, -0.015, 0, 0.015, 0.03, 0.045, 0.08, 0.125,
];
const BUFFER_BUCKETS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];
const BATCH_BUCKETS = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64]; // sessions
const CODECS = ['vp8', 'h264'] as const;

/** Metrics of worker threads, frames and speech. */
export const WORKER_METRICS = {
  // ── workers as the main thread sees them ───────────────────────────────────────────────────────
  mouthpiece_workers: gauge('front', 'Media workers, by state.', {
    state: ['starting', 'ready', 'draining'],
  }),
  mouthpiece_worker_restarts_total: counter(
    'front',
    'Workers replaced because they exited or hung.',
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

  // ── worker threads ─────────────────────────────────────────────────────────────────────────────
  mouthpiece_worker_sessions: gauge(
    'worker',
    'Sessions on the worker, by state.',
    { state: SESSION_STATES },
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
    LOOP_DELAY_BUCKETS,
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_gc_seconds_total: counter(
    'worker',
    'Time in garbage collection on the worker thread.',
    { kind: GC_KINDS },
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
    'Ticks of the frame scheduler.',
    {},
    { perWorker: true },
  ),
  mouthpiece_worker_tick_duration_seconds: histogram(
    'worker',
    'Time of one tick of the frame scheduler, all due sessions together.',
    LATENESS_BUCKETS,
  ),

  // ── frames ─────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_frames_sent_total: counter('worker', 'Video frames handed to the transport.', {
    codec: CODECS,
    activity: ['idle', 'speaking'],
  }),
  mouthpiece_frames_skipped_total: counter('worker', 'Frames that were due and not sent.', {
    reason: ['late', 'rate_control', 'overload', 'error'],
  }),
  mouthpiece_frames_repeated_total: counter(
    'worker',
    "Frames of sessions with a user's own network that repeated the last mouth image, " +
      'because the new one was late.',
  ),
  mouthpiece_frame_lateness_seconds: histogram(
    'worker',
    'From the moment a frame was due to its last packet handed to the socket.',
    LATENESS_BUCKETS,
    {},
    { perWorker: true },
  ),
  mouthpiece_stage_duration_seconds: histogram(
    'worker',
    'Time of one stage for one frame (drain: reading the speech ring; inference: one ' +
      "batched run, and each run of a user's own network on the inference thread; packetize: " +
      'splitting into RTP payloads; send: encryption and the socket; audio: one packet ' +
      'encoded).',
    STAGE_BUCKETS,
    { stage: ['drain', 'features', 'inference', 'render', 'encode', 'packetize', 'send', 'audio'] },
  ),
  mouthpiece_inference_batch_sessions: histogram(
    'worker',
    'Sessions in one run of the speech model.',
    BATCH_BUCKETS,
  ),
  mouthpiece_key_frames_total: counter('worker', 'Key frames encoded.', {
    codec: CODECS,
    cause: ['start', 'request', 'other'],
  }),
  mouthpiece_encoded_bytes_total: counter('worker', 'Bytes that the video encoders produced.', {
    codec: CODECS,
  }),

  // ── speech ─────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_audio_to_lips_seconds: histogram(
    'worker',
    "From the arrival of an utterance's first speech to its first frame with moving lips " +
      'leaving. Pace: burst (what a start needs came faster than real time), ' +
      'paced (real time: the look-ahead of 60 ms has to arrive first), paced_network ' +
      "(paced, with a user's own network, which looks further ahead).",
    LIPS_BUCKETS,
    { input: ['socket', 'track'], pace: ['burst', 'paced', 'paced_network'] },
    { exemplar: 'session_id' },
  ),
  mouthpiece_interrupt_seconds: histogram(
    'worker',
    'From SKIP or PLAY_IMMEDIATE arriving to the first packet without the old speech.',
    LIPS_BUCKETS,
  ),
  mouthpiece_av_offset_seconds: histogram(
    'worker',
    'Media time of the picture minus that of the sound at the moment both are sent, once a ' +
      'second per speaking session; negative: the sound is ahead.',
    AV_OFFSET_BUCKETS,
  ),
  mouthpiece_utterances_total: counter('worker', 'Utterances begun (SPEAK sent).'),
  mouthpiece_speech_seconds_total: counter(
    'worker',
    'Speech played out to peers, in seconds of audio.',
  ),
  mouthpiece_audio_buffer_seconds: histogram(
    'worker',
    'Speech waiting to be played, sampled once a second per speaking session.',
    BUFFER_BUCKETS,
  ),
  mouthpiece_audio_underruns_total: counter(
    'worker',
    'Times that no speech was left in the middle of an utterance.',
  ),
} as const;
