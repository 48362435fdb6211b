// Metrics of the catalogue: transport: RTP, RTCP, ICE, DTLS and datagrams.
import { REJECT_REASONS } from '../base/reject-reasons.ts';
import { counter, histogram } from './metric-family.ts';

// Bucket bounds, in seconds unless noted. Each objective is a bound, so that its SLO is an exact
// ratio of buckets.
const NETWORK_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];
const LOSS_BUCKETS = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]; // ratio
const RATE_BUCKETS = [100e3, 150e3, 200e3, 300e3, 400e3, 600e3, 800e3, 1e6, 1.25e6, 1.5e6, 2e6].map(
  (bits) => bits / 8,
); // byte/s
const MEDIA = ['audio', 'video'] as const;

/** Metrics of RTP, RTCP, ICE, DTLS and datagrams. */
export const TRANSPORT_METRICS = {
  // ── transport ──────────────────────────────────────────────────────────────────────────────────
  mouthpiece_rtp_packets_sent_total: counter('worker', 'RTP packets sent for the first time.', {
    media: MEDIA,
  }),
  mouthpiece_rtp_bytes_sent_total: counter('worker', 'RTP payload bytes sent for the first time.', {
    media: MEDIA,
  }),
  mouthpiece_rtp_packets_retransmitted_total: counter(
    'worker',
    'RTP packets sent again: on request (RTX, RFC 4588), or as copies on a path that loses packets.',
  ),
  mouthpiece_rtp_packets_received_total: counter(
    'worker',
    'RTP packets received: audio tracks of peers.',
  ),
  mouthpiece_rtp_nacks_received_total: counter(
    'worker',
    'Packets requested again by NACK (RFC 4585).',
  ),
  mouthpiece_rtp_key_frame_requests_total: counter('worker', 'Key frames requested by receivers.', {
    kind: ['pli', 'fir'],
  }),
  mouthpiece_rtp_packets_lost_total: counter(
    'worker',
    'Packets that receivers reported lost (RFC 3550 section 6.4.1).',
  ),
  mouthpiece_rtp_fraction_lost_ratio: histogram(
    'worker',
    'Fraction lost as last reported, once a second per session.',
    LOSS_BUCKETS,
  ),
  mouthpiece_rtp_round_trip_seconds: histogram(
    'worker',
    'Round trip from receiver reports, once a second per session.',
    NETWORK_BUCKETS,
  ),
  mouthpiece_rtp_jitter_seconds: histogram(
    'worker',
    'Interarrival jitter as receivers report it, once a second per session.',
    NETWORK_BUCKETS,
  ),
  mouthpiece_send_rate_target_bytes_per_second: histogram(
    'worker',
    'Estimated capacity of the path (REMB, receiver reports), once a second per session.',
    RATE_BUCKETS,
  ),
  mouthpiece_send_rate_actual_bytes_per_second: histogram(
    'worker',
    'RTP payload sent, once a second per session.',
    RATE_BUCKETS,
  ),
  mouthpiece_peers_closed_total: counter('worker', 'Peer connections ended, by reason.', {
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
    'Datagrams at the built-in STUN server, by outcome.',
    { outcome: ['answered', 'rate_limited', 'not_stun', 'send_failed'] },
  ),
  mouthpiece_datagrams_received_total: counter(
    'worker',
    "Datagrams that reached a worker's socket.",
  ),
  mouthpiece_datagrams_rejected_total: counter(
    'worker',
    'Datagrams dropped as invalid, by reason.',
    {
      reason: REJECT_REASONS,
    },
  ),
  mouthpiece_datagrams_unsent_total: counter(
    'worker',
    'Datagrams that a worker did not send, by reason.',
    { reason: ['queue_full', 'refused', 'unproven_address'] },
  ),
} as const;
