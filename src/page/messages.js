// Everything the page says about trouble, in words that tell what to do next.
// @ts-check

/** @type {Record<string, string>} */
const BY_CODE = {
  UNREACHABLE:
    'The server does not answer. Is it still running? Start it with “npm start” and reload this page.',
  INVALID_API_KEY:
    'The server does not know this API key. Enter the one in the file api-key in its data directory.',
  INVALID_FACE_ID: 'This face is gone from the server. Choose another one.',
  INVALID_EMOTION: 'This face has no such emotion.',
  FACE_NOT_READY: 'This face is still being made. It will be ready in a few seconds.',
  RATE_LIMITED: 'Too many requests or sessions for this key. Wait a moment and try again.',
  SERVER_OVERLOADED:
    'The server is full: it has no room for another session. End one, or try again in a minute.',
  SERVER_DRAINING: 'The server is shutting down. Try again once it is back.',
  SESSION_IN_USE: 'This session is already open in another tab. Close that one first.',
  INVALID_SESSION_TOKEN: 'The session token has expired. Connect again to get a new one.',
  SOCKET_FAILED:
    'The WebSocket could not be opened. A proxy between here and the server may be blocking it.',
  CONNECTION_LOST: 'The connection to the server broke. Check the network and connect again.',
  ICE_FAILED:
    'No media path to the server was found. Usual reasons: UDP is blocked by a firewall or VPN; the server is behind NAT and ANNOUNCED_IPS is not set; or a strict network needs a TURN server in ICE_SERVERS.',
  CONNECT_TIMEOUT:
    'The media path did not come up in time. Check that UDP reaches the server, and that ANNOUNCED_IPS names an address this device can reach.',
  DTLS_FAILED: 'This browser and the server could not agree on encryption. Use a current browser.',
  CERTIFICATE_MISMATCH:
    'The offer of this browser was altered on its way. Reload the page and connect again.',
  OFFER_TIMEOUT: 'The browser took too long to make its offer. Connect again.',
  OFFER_FAILED:
    'This browser could not make a WebRTC offer. Use a current Chrome, Edge, Firefox or Safari.',
  INVALID_OFFER:
    'The server could not use what this browser offered. Try another video codec under “Connection”.',
  ANSWER_FAILED:
    'This browser could not use the server’s answer. Try another video codec under “Connection”.',
  WORKER_LOST: 'The media worker of this session stopped. A new one is up already: connect again.',
  PEER_LOST:
    'The server heard nothing from this browser for too long. Check the network and connect again.',
  MESSAGE_TOO_LARGE: 'A message was too large for the server.',
  QUEUE_FULL: 'The server has too many videos to render. Try again in a minute.',
  BODY_TOO_LARGE: 'That file is too large for the server.',
  UNSUPPORTED_MEDIA_TYPE: 'The server takes JPEG, PNG and WebP pictures.',
  NOT_IMPLEMENTED: 'This server does not offer that yet.',
  STORE_UNAVAILABLE: 'The server’s database does not answer. Try again shortly.',
  INTERNAL_ERROR: 'Something went wrong in the server. Its log says what.',
  NOT_FOUND: 'The server no longer has what this page asked for. Reload the page.',
  ORIGIN_NOT_ALLOWED:
    'This server takes no sessions from pages of this address. ALLOWED_ORIGINS names those it takes.',
  TOO_MANY_CONNECTIONS: 'The server has too many connections. Try again in a minute.',
  REQUEST_TIMEOUT: 'The upload took too long. Check the network and try again.',
  HTTP_404: 'This server does not offer that.',
};

/** @type {Record<string, string>} */
const ENDS = {
  stop: 'Finished',
  done: 'Finished',
  idle_limit: 'Ended: nothing was said for a while',
  length_limit: 'Ended: the session reached its time limit',
  taken_over: 'Ended: opened again elsewhere',
  peer_closed: 'Not connected',
  server_stopped: 'Ended: the server is stopping',
};

/** @param {unknown} error @returns {string} */
export function errorMessage(error) {
  const { code, message } = /** @type {{ code?: string, message?: string }} */ (error ?? {});
  if (code && BY_CODE[code]) {
    return BY_CODE[code];
  }
  if (code && message && message !== code) {
    return message;
  }
  if (code) {
    return `The server said ${code}.`;
  }
  return message || 'Something unexpected happened.';
}

/** @param {string} reason What follows STOP, or how the session ended. @returns {string} */
export const endMessage = (reason) => ENDS[reason.toLowerCase()] ?? 'Not connected';
