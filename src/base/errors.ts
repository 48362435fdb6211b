// All error codes with their HTTP status and message.

/**
 * Error code → HTTP status and message. Each message says what the client can do. A code keeps its
 * meaning for ever: never reuse one.
 */
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
    message:
      'This token already has a live session. Close that session first, or create another token.',
  },
  INVALID_FACE_ID: {
    status: 400,
    message: 'There is no such face. GET /faces lists the faces that you can use.',
  },
  FACE_NOT_READY: {
    status: 409,
    message: 'The face is not ready yet. GET /faces/legacy/generation_status shows its progress.',
  },
  INVALID_EMOTION: {
    status: 400,
    message: 'There is no such emotion. Use neutral, happy, sad, surprised, angry or calm.',
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
    message: 'This server is shutting down and accepts no new sessions. Use another server.',
  },
  INVALID_HOST: {
    status: 400,
    message: 'The Host header must be a host name or an address, with or without a port.',
  },
  VALIDATION_FAILED: {
    status: 422,
    message: 'The request does not match the API description. See /docs for this path.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    message: 'The request body is larger than the limit of this path. Send a smaller one.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    message: 'This path does not accept the content type. See /docs for the one that it needs.',
  },
  NOT_FOUND: { status: 404, message: 'There is nothing at this path. See /docs for all paths.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message:
      'This path does not accept the method. The Allow header lists the methods that it accepts.',
  },
  CONFLICT: {
    status: 409,
    message:
      'Another request changed the record at the same time. Read it again and repeat the change.',
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    message:
      'Web pages of this origin may not open sessions. The operator can add it to ALLOWED_ORIGINS.',
  },
  OPERATOR_REQUIRED: {
    status: 403,
    message:
      'This path needs the API key of an operator (npm run keys -- create --operator). ' +
      'The first key of a server is one.',
  },
  INVALID_RELAY_TICKET: {
    status: 401,
    message:
      'The ticket with which another server passes a client on is not valid. Give all servers of a ' +
      'Redis the same SECRETS_KEY, and clocks that agree within a minute.',
  },
  NODE_UNREACHABLE: {
    status: 503,
    message: 'The server that runs this session does not answer. Try again shortly.',
  },
  UPGRADE_REQUIRED: {
    status: 426,
    message: 'This path is a WebSocket. Open it with ws:// or wss://.',
  },
  TOO_MANY_CONNECTIONS: {
    status: 429,
    message:
      'The server has reached its limit of connections. Try again after the time in Retry-After.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    message: 'The request body arrived too slowly. Send it again, over a faster connection.',
  },
  PRECONDITION_FAILED: {
    status: 412,
    message:
      'The record is no longer the version named in If-Match. Read it again and repeat the change.',
  },
  GONE: { status: 410, message: 'This endpoint was removed. See /docs for the current ones.' },
  RANGE_NOT_SATISFIABLE: {
    status: 416,
    message:
      'The requested range lies outside of the file. Content-Range gives the size of the file.',
  },
  QUEUE_FULL: {
    status: 429,
    message: 'The queue of offline jobs is full. Try again after the time in Retry-After.',
  },
  NOT_IMPLEMENTED: {
    status: 501,
    message: 'This part of the API is not available yet. See /docs for what is.',
  },
  INTERNAL_ERROR: {
    status: 500,
    message: 'The server failed. Try again, and name the request id when you report the failure.',
  },
  STORE_UNAVAILABLE: {
    status: 500,
    message: 'The database of the server does not respond. Try again shortly.',
  },
  STORAGE_UNAVAILABLE: {
    status: 503,
    message:
      'The storage of faces and videos does not respond. Try again after the time in Retry-After.',
  },
  IMAGE_REJECTED: {
    status: 400,
    message: 'The image could not be used. Send a JPEG, PNG or WebP photograph of one face.',
  },
  CONVERSATIONS_UNAVAILABLE: {
    status: 409,
    message:
      'Conversations are not available on this server: their libraries are missing or cannot be ' +
      'loaded. Its log says why.',
  },
  CONVERSATIONS_INSTALLING: {
    status: 429,
    message:
      'The libraries of conversations are being installed, which takes about a minute. Try again.',
  },
  ROOM_CLOSED: {
    status: 404,
    message:
      'The room is closed: its conversation is over, or its link was used before or is older than two ' +
      'minutes. Request a new link.',
  },
  CONVERSATION_FAILED: {
    status: 409,
    message: 'The conversation cannot go on: a provider of speech or language failed.',
  },
  // Reasons that are sent only on the WebSocket of a session or stored in its history.
  INVALID_OFFER: {
    status: 400,
    message: 'The SDP offer could not be used. Send the offer of an RTCPeerConnection.',
  },
  OFFER_TIMEOUT: {
    status: 408,
    message: 'No offer arrived within 30 seconds. Send the offer as soon as the socket is open.',
  },
  INVALID_ROOM_TOKEN: {
    status: 401,
    message:
      'The LiveKit token is not valid, or its room is over. WSS /compose/webrtc/livekit gives another.',
  },
  INVALID_JOIN_REQUEST: {
    status: 400,
    message:
      'The parameter join_request is missing or malformed. Use a LiveKit client of 2025 or newer.',
  },
  LIVEKIT_URL_REFUSED: {
    status: 400,
    message:
      'livekit_url is refused. Use wss:// and a public host, or one that the operator lists.',
  },
  ROOM_JOIN_FAILED: {
    status: 400,
    message: 'The LiveKit room could not be joined. Check livekit_url and livekit_token.',
  },
  ROOM_LOST: {
    status: 408,
    message: 'The LiveKit server of the room could not be reached for a minute.',
  },
  JOIN_TIMEOUT: {
    status: 408,
    message:
      'Nobody came to watch in time. Join the LiveKit room with the livekit_token of the socket ' +
      'within 30 seconds, or give the viewerUrl of the session to a viewer within its graceSeconds.',
  },
  AGENT_LOST: {
    status: 408,
    message:
      'The server of the agent was away for longer than the graceSeconds of its session. ' +
      'Create another one with POST /sessions.',
  },
  VIEWER_REPLACED: {
    status: 409,
    message:
      'Another viewer opened the session, and this peer connection gave way to it. Do not connect ' +
      'again by yourself: ask the person.',
  },
  PRECONDITION_REQUIRED: {
    status: 428,
    message: 'A restart of ICE needs the header If-Match: *.',
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
  MESSAGE_TOO_LARGE: {
    status: 413,
    message: 'A message was larger than 1 MiB. Send smaller messages.',
  },
  WORKER_LOST: {
    status: 500,
    message: 'The media worker of this session failed. Connect again with the same token.',
  },
  PEER_LOST: {
    status: 408,
    message:
      'Nothing arrived from the peer for too long. Check the network of the client and connect again.',
  },
} as const satisfies Record<string, { status: number; message: string }>;

/** A code in ERRORS. */
export type ErrorCode = keyof typeof ERRORS;

/** An error for the client: its code is in ERRORS, and its message may be shown. */
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

/** An error in a message between threads: a posted Error loses its class and its own fields. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Any error other than a ServiceError becomes INTERNAL_ERROR with its own message. */
export const toWireError = (error: unknown): WireError =>
  error instanceof ServiceError
    ? { code: error.code, message: error.message }
    : { code: 'INTERNAL_ERROR', message: error instanceof Error ? error.message : String(error) };
