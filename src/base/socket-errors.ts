// The one table of the errors that a session's WebSocket can tell, and what a client does then.
import type { ErrorCode } from './errors.ts';

/**
 * What helps after an error:
 * - now: connect again with the same token.
 * - later: the same, after a second or more.
 * - new_token: connect with a new token.
 * - no: the same request fails again.
 */
export type Retry = 'now' | 'later' | 'new_token' | 'no';

/** Code of an ERROR message → what helps. What each one means is its message in ERRORS. */
export const SOCKET_ERRORS = {
  INVALID_SESSION_TOKEN: 'new_token',
  INVALID_API_KEY: 'no',
  SESSION_IN_USE: 'later',
  INVALID_FACE_ID: 'no',
  FACE_NOT_READY: 'later',
  RATE_LIMITED: 'later',
  SERVER_OVERLOADED: 'later',
  SERVER_DRAINING: 'later',
  CONVERSATIONS_UNAVAILABLE: 'no',
  CONVERSATION_FAILED: 'no',
  ROOM_CLOSED: 'no',
  INVALID_OFFER: 'no',
  OFFER_TIMEOUT: 'now',
  CONNECT_TIMEOUT: 'now',
  ICE_FAILED: 'now',
  DTLS_FAILED: 'now',
  CERTIFICATE_MISMATCH: 'now',
  PEER_LOST: 'now',
  JOIN_TIMEOUT: 'now',
  AGENT_LOST: 'no',
  ROOM_JOIN_FAILED: 'later',
  ROOM_LOST: 'later',
  MESSAGE_TOO_LARGE: 'no',
  WORKER_LOST: 'now',
  STORE_UNAVAILABLE: 'later',
  STORAGE_UNAVAILABLE: 'later',
  INTERNAL_ERROR: 'later',
} as const satisfies Partial<Record<ErrorCode, Retry>>;

/** A code that can follow ERROR. */
export type SocketErrorCode = keyof typeof SOCKET_ERRORS;

/** The code as a socket tells it: INTERNAL_ERROR for one that is not in the table. */
export const socketErrorOf = (code: ErrorCode): SocketErrorCode =>
  Object.hasOwn(SOCKET_ERRORS, code) ? (code as SocketErrorCode) : 'INTERNAL_ERROR';
