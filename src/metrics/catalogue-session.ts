// Metrics of the catalogue: tokens and sessions, as the main thread sees them.
import { type EndReason, SESSION_ENDS } from '../base/session-ends.ts';
import { SESSION_KINDS } from '../base/session-kinds.ts';
import { SESSION_STATES, ERROR_CODES } from './catalogue-common.ts';
import { counter, gauge, histogram } from './metric-family.ts';

// Bucket bounds, in seconds unless noted. Each objective is a bound, so that its SLO is an exact
// ratio of buckets.
const SETUP_BUCKETS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30];
const SESSION_LENGTH_BUCKETS = [1, 5, 15, 60, 300, 900, 1800, 3600, 14_400];
const END_REASONS = Object.keys(SESSION_ENDS) as EndReason[];

/** Metrics of tokens and sessions. */
export const SESSION_METRICS = {
  // ── tokens and sessions ────────────────────────────────────────────────────────────────────────
  mouthpiece_tokens_issued_total: counter('front', 'Session tokens issued.'),
  mouthpiece_tokens_refused_total: counter(
    'front',
    'Token requests refused, by the code in the answer.',
    { code: ERROR_CODES },
  ),
  mouthpiece_sessions: gauge('front', 'Sessions now, by kind and state.', {
    kind: SESSION_KINDS,
    state: SESSION_STATES,
  }),
  mouthpiece_sessions_started_total: counter(
    'front',
    'Sessions whose socket presented a valid token.',
    { kind: SESSION_KINDS },
  ),
  mouthpiece_sessions_refused_total: counter(
    'front',
    'Session sockets refused, by the code in the ERROR message.',
    { code: ERROR_CODES },
  ),
  mouthpiece_sessions_ended_total: counter('front', 'Sessions ended, by kind and reason.', {
    kind: SESSION_KINDS,
    reason: END_REASONS,
  }),
  mouthpiece_session_duration_seconds: histogram(
    'front',
    'Length of ended sessions.',
    SESSION_LENGTH_BUCKETS,
    { kind: SESSION_KINDS },
  ),
  mouthpiece_session_setup_seconds: histogram(
    'front',
    'Time of each step of setting a session up: token to socket (tokens used within a ' +
      'minute), socket to offer, offer to answer, answer to ICE, first ICE check to DTLS, ' +
      'DTLS to first frame sent; total is from the offer to the first frame sent.',
    SETUP_BUCKETS,
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
    'Speech dropped: the backlog was full, or the client interrupted.',
    { reason: ['backlog_full', 'interrupted'] },
  ),
} as const;
