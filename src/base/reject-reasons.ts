// Why datagrams are dropped: the transport names a reason, the metrics label it.

/** Why a datagram was dropped: the labels of mouthpiece_datagrams_rejected_total. */
export const REJECT_REASONS = [
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
] as const;
/** One of REJECT_REASONS. */
export type RejectReason = (typeof REJECT_REASONS)[number];
