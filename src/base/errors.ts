// The one table of errors: code → HTTP status and the sentence a person can act on. Codes are never reused.

export const ERRORS = {
  INVALID_API_KEY: {
    status: 401,
    message: 'The API key is missing or not valid. Send it in the x-service-api-key header.',
  },
  INVALID_SESSION_TOKEN: {
    status: 401,
    message:
      'The session token is missing, unknown or expired. Create one with POST /compose/token.',
  },
  SESSION_IN_USE: {
    status: 409,
    message: 'This token already has a live session. Close that one first.',
  },
  INVALID_FACE_ID: { status: 400, message: 'No such face. GET /faces lists those you can use.' },
  FACE_NOT_READY: {
    status: 409,
    message: 'The face is not ready. See GET /faces/legacy/generation_status.',
  },
  INVALID_EMOTION: {
    status: 400,
    message: 'No such emotion. Use neutral, happy, sad, surprised, angry or calm.',
  },
  RATE_LIMITED: {
    status: 429,
    message:
      'Too many requests or sessions for this API key. Try again after the time in Retry-After.',
  },
  SERVER_OVERLOADED: {
    status: 429,
    message: 'No worker has room for another session. Try again shortly, or use another server.',
  },
  SERVER_DRAINING: {
    status: 429,
    message: 'This server is shutting down and takes no new sessions. Use another server.',
  },
  VALIDATION_FAILED: {
    status: 422,
    message: 'The request does not match the interface description.',
  },
  BODY_TOO_LARGE: { status: 413, message: 'The request body is over the limit for this path.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'The content type is not one this path takes.' },
  NOT_FOUND: { status: 404, message: 'There is nothing at this path.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: 'This path does not take that method. The Allow header lists those it takes.',
  },
  CONFLICT: {
    status: 409,
    message: 'Somebody else changed this meanwhile. Read it again and repeat the change.',
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    message: 'Web pages of this origin may not open sessions here (ALLOWED_ORIGINS).',
  },
  UPGRADE_REQUIRED: {
    status: 426,
    message: 'This path speaks WebSocket: open it with ws:// or wss://.',
  },
  TOO_MANY_CONNECTIONS: {
    status: 429,
    message: 'The server holds as many connections as it may. Try again shortly.',
  },
  REQUEST_TIMEOUT: { status: 408, message: 'The request body did not arrive in time.' },
  PRECONDITION_FAILED: {
    status: 412,
    message:
      'The record is no longer the version named in If-Match. Read it again and repeat the change.',
  },
  GONE: { status: 410, message: 'This endpoint was removed.' },
  RANGE_NOT_SATISFIABLE: { status: 416, message: 'The requested range lies outside the file.' },
  QUEUE_FULL: {
    status: 429,
    message: 'The queue of offline jobs is full. Try again after the time in Retry-After.',
  },
  NOT_IMPLEMENTED: { status: 501, message: 'This part of the interface is not served yet.' },
  INTERNAL_ERROR: {
    status: 500,
    message: 'Something went wrong on our side. Quote the request id when you report it.',
  },
  STORE_UNAVAILABLE: {
    status: 500,
    message: 'The database does not answer at present. Try again shortly.',
  },
  IMAGE_REJECTED: {
    status: 400,
    message: 'The image could not be used. Send a JPEG, PNG or WebP photograph of one face.',
  },
  // Reasons that only travel on a session's WebSocket or in its history.
  INVALID_OFFER: { status: 400, message: 'The SDP offer could not be used.' },
  OFFER_TIMEOUT: {
    status: 408,
    message: 'No offer arrived within 30 seconds of opening the socket.',
  },
  CONNECT_TIMEOUT: {
    status: 408,
    message:
      'No UDP from the client reached the server in time. Check the firewall and ANNOUNCED_IPS.',
  },
  ICE_FAILED: {
    status: 408,
    message:
      "The client answered none of the server's STUN checks. Check the firewall on the way back.",
  },
  DTLS_FAILED: {
    status: 400,
    message:
      'The DTLS handshake failed. Use DTLS 1.2, ECDHE-ECDSA-AES128-GCM-SHA256, P-256, DTLS-SRTP.',
  },
  CERTIFICATE_MISMATCH: {
    status: 400,
    message:
      'The client did not prove the certificate that its offer names. Connect again with a new offer.',
  },
  MESSAGE_TOO_LARGE: { status: 413, message: 'A message was larger than 1 MiB.' },
  WORKER_LOST: {
    status: 500,
    message: 'The media worker of this session died. Connect again with the same token.',
  },
  PEER_LOST: { status: 408, message: 'Nothing was heard from the peer for too long.' },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** An error meant for whoever sent the request: its code is in the table, its message safe to show. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string = ERRORS[code].message, retryAfterSeconds?: number) {
    super(message);
    this.name = 'ServiceError';
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }
}

/** The shape in which an error crosses threads: a posted Error loses its class and its own fields. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
}

export const toWireError = (error: unknown): WireError =>
  error instanceof ServiceError
    ? { code: error.code, message: error.message }
    : { code: 'INTERNAL_ERROR', message: error instanceof Error ? error.message : String(error) };

export const fromWireError = (error: WireError): ServiceError =>
  new ServiceError(error.code, error.message);
