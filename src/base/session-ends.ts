// The one table of the ways in which a session ends.
import type { ErrorCode } from './errors.ts';

interface SessionEnd {
  /**
   * Last message to the client before its socket closes. Undefined: the client is gone. A more
   * exact error takes its place where one is known (the fault in an offer, for example).
   */
  readonly closeMessage: string | undefined;
  /** Counted in mouthpiece_errors_total under this code. Undefined: not an error. */
  readonly errorCode: ErrorCode | undefined;
}

const stop = (closeMessage: string): SessionEnd => ({ closeMessage, errorCode: undefined });

const failure = (errorCode: ErrorCode): SessionEnd => ({
  closeMessage: `ERROR ${errorCode}`,
  errorCode,
});

/** Keys are values of the label `reason` of mouthpiece_sessions_ended_total. */
export const SESSION_ENDS = {
  /** The client sent DONE and everything was played. */
  done: stop('STOP'),
  idle_limit: stop('STOP idle_limit'),
  length_limit: stop('STOP length_limit'),
  client_closed: { closeMessage: undefined, errorCode: undefined },
  peer_closed: stop('STOP peer_closed'),
  /** Media stopped arriving from the peer, and it did not say why. */
  peer_lost: failure('PEER_LOST'),
  connect_timeout: failure('CONNECT_TIMEOUT'),
  offer_timeout: failure('OFFER_TIMEOUT'),
  /** Nobody joined the room of the session, or nobody came back to it. */
  join_timeout: failure('JOIN_TIMEOUT'),
  /** The LiveKit room could not be joined. */
  room_refused: failure('ROOM_JOIN_FAILED'),
  /** The connection to the LiveKit server was lost, and could not be restored. */
  room_lost: failure('ROOM_LOST'),
  /** The avatar was removed from its room, or the room was closed. */
  room_closed: stop('STOP room_closed'),
  /** The agent left the room of its avatar. */
  agent_left: stop('STOP agent_left'),
  ice_failed: failure('ICE_FAILED'),
  dtls_failed: failure('DTLS_FAILED'),
  /** The DTLS certificate does not have the fingerprint that the offer names. */
  certificate_mismatch: failure('CERTIFICATE_MISMATCH'),
  invalid_offer: failure('INVALID_OFFER'),
  /** The worker thread ended or stopped answering. */
  worker_lost: failure('WORKER_LOST'),
  server_stopped: stop('STOP server_stopped'),
  /** A newer connection with the same token took the session's place. */
  taken_over: stop('STOP taken_over'),
  /** The client exceeded its message budget for long. Its dropped messages were counted already. */
  rate_limited: { closeMessage: 'ERROR RATE_LIMITED', errorCode: undefined },
  /** A provider of the conversation failed, or its thread. The message says which. */
  conversation_failed: failure('CONVERSATION_FAILED'),
  error: failure('INTERNAL_ERROR'),
} as const satisfies Record<string, SessionEnd>;

export type EndReason = keyof typeof SESSION_ENDS;
