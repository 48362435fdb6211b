// The one table of the ways in which a session ends.
import type { SocketErrorCode } from './socket-errors.ts';

interface SessionEnd {
  /**
   * Code of the ERROR that the client is told before its socket closes. A more exact message takes
   * its place where one is known (the fault in an offer, for example). With neither `error` nor
   * `stop` the client is gone.
   */
  readonly error: SocketErrorCode | undefined;
  /** Counted in mouthpiece_errors_total under this code. Undefined: not an error. */
  readonly errorCode: SocketErrorCode | undefined;
  /** Of a STOP: its reason ('' for none), and what the client can make of it. */
  readonly stop: { readonly reason: string; readonly advice: string } | undefined;
}

const stop = (reason: string, advice: string): SessionEnd => ({
  error: undefined,
  errorCode: undefined,
  stop: { reason, advice },
});

const failure = (errorCode: SocketErrorCode): SessionEnd => ({
  error: errorCode,
  errorCode,
  stop: undefined,
});

/** Keys are values of the label `reason` of mouthpiece_sessions_ended_total. */
export const SESSION_ENDS = {
  /** The client sent DONE and everything was played. */
  done: stop('', 'Everything that was sent before DONE has been played. Nothing to do.'),
  idle_limit: stop(
    'idle_limit',
    'Nobody spoke for maxIdleTime of the token. Connect again when there is speech.',
  ),
  length_limit: stop(
    'length_limit',
    'The session reached maxSessionLength of its token. Connect again for another one.',
  ),
  client_closed: { error: undefined, errorCode: undefined, stop: undefined },
  peer_closed: stop(
    'peer_closed',
    'The client closed its peer connection. Connect again with the same token to go on.',
  ),
  /** Media stopped arriving from the peer, and it did not say why. */
  peer_lost: failure('PEER_LOST'),
  connect_timeout: failure('CONNECT_TIMEOUT'),
  offer_timeout: failure('OFFER_TIMEOUT'),
  /** Nobody came to watch the session in its room or over WHEP, or nobody came back. */
  join_timeout: failure('JOIN_TIMEOUT'),
  /** The LiveKit room could not be joined. */
  room_refused: failure('ROOM_JOIN_FAILED'),
  /** The connection to the LiveKit server was lost, and could not be restored. */
  room_lost: failure('ROOM_LOST'),
  /** The avatar was removed from its room, or the room was closed. */
  room_closed: stop(
    'room_closed',
    'The avatar was removed from its room, or the room was closed. Begin a new session.',
  ),
  /** The agent left the room of its avatar. */
  agent_left: stop(
    'agent_left',
    'The agent left the room of its avatar. Begin a new session when it is back.',
  ),
  /** The agent's server did not come to its session, or did not come back to it. */
  agent_lost: failure('AGENT_LOST'),
  ice_failed: failure('ICE_FAILED'),
  dtls_failed: failure('DTLS_FAILED'),
  /** The DTLS certificate does not have the fingerprint that the offer names. */
  certificate_mismatch: failure('CERTIFICATE_MISMATCH'),
  invalid_offer: failure('INVALID_OFFER'),
  /** The worker thread ended or stopped answering. */
  worker_lost: failure('WORKER_LOST'),
  server_stopped: stop(
    'server_stopped',
    'The server shuts down. Connect again: with the same token where several servers share Redis.',
  ),
  /** DELETE /sessions/{id}. */
  deleted: stop(
    'deleted',
    'The session was ended by its owner or an operator. Do not connect again by yourself.',
  ),
  /** A newer connection with the same token took the session's place. */
  taken_over: stop(
    'taken_over',
    'A newer connection with the same token goes on. Do not connect again from here.',
  ),
  /** The client exceeded its message budget for long. Its dropped messages were counted already. */
  rate_limited: { error: 'RATE_LIMITED', errorCode: undefined, stop: undefined },
  /** A provider of the conversation failed, or its thread. The message says which. */
  conversation_failed: failure('CONVERSATION_FAILED'),
  error: failure('INTERNAL_ERROR'),
} as const satisfies Record<string, SessionEnd>;

/** Why a session ends. */
export type EndReason = keyof typeof SESSION_ENDS;
