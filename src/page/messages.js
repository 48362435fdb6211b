// The texts for errors and for the end of a session. Each error text says what to do.
// @ts-check

/** By the code of the server or of its client. @type {Record<string, string>} */
const BY_CODE = {
  UNREACHABLE:
    'The server does not answer. Is it still running? Start it with “npm start” and reload this page.',
  INVALID_API_KEY:
    'The server does not know this API key. Enter the one in the file api-key in its data directory.',
  INVALID_FACE_ID: 'This face no longer exists on the server. Choose another one.',
  INVALID_EMOTION: 'This face has no such emotion.',
  FACE_NOT_READY: 'This face is still being created. It will be ready in a few seconds.',
  RATE_LIMITED: 'Too many requests or sessions for this key. Wait a moment and try again.',
  SERVER_OVERLOADED: 'The server is full. End another session, or try again in a minute.',
  SERVER_DRAINING: 'The server is shutting down. Try again once it is back.',
  SESSION_IN_USE: 'This session is already open in another tab. Close that one first.',
  INVALID_SESSION_TOKEN: 'The session token has expired. Connect again to get a new one.',
  SOCKET_FAILED:
    'The WebSocket could not be opened. A proxy between here and the server may be blocking it.',
  CONNECTION_LOST: 'The connection to the server was lost. Check the network and connect again.',
  ICE_FAILED:
    'No media path to the server was found. Usual reasons: a firewall or VPN blocks UDP; ' +
    'the server is behind NAT and ANNOUNCED_IPS is not set; or the network needs a TURN ' +
    'server in ICE_SERVERS.',
  CONNECT_TIMEOUT:
    'The media path was not established in time. Check that UDP reaches the server, and ' +
    'that ANNOUNCED_IPS is an address that this device can reach.',
  DTLS_FAILED: 'This browser and the server could not agree on encryption. Use a current browser.',
  CERTIFICATE_MISMATCH:
    'The certificate of this browser does not match its offer. Reload the page and connect again.',
  OFFER_TIMEOUT: 'The browser took too long to send its offer. Connect again.',
  OFFER_FAILED:
    'This browser could not create a WebRTC offer. Use a current Chrome, Edge, Firefox or Safari.',
  INVALID_OFFER:
    'The server could not use the offer of this browser. Try another video codec under “Connection”.',
  ANSWER_FAILED:
    'This browser could not use the server’s answer. Try another video codec under “Connection”.',
  WORKER_LOST:
    'The media worker of this session stopped, and a new one was started. Connect again.',
  PEER_LOST:
    'The server received nothing from this browser for too long. Check the network and connect again.',
  MESSAGE_TOO_LARGE: 'A message was too large for the server.',
  QUEUE_FULL: 'The server has too much to do. Try again in a minute.',
  INVALID_HOST: 'The address of this page cannot be used. Open the page by another name.',
  BODY_TOO_LARGE: 'That file is too large for the server.',
  UNSUPPORTED_MEDIA_TYPE: 'The server accepts JPEG, PNG and WebP pictures.',
  NOT_IMPLEMENTED: 'This server does not support that yet.',
  STORE_UNAVAILABLE: 'The database of the server does not answer. Try again shortly.',
  STORAGE_UNAVAILABLE: 'The file storage of the server does not answer. Try again shortly.',
  INTERNAL_ERROR: 'The server failed. Its log has the details.',
  NOT_FOUND: 'The server no longer has the requested data. Reload the page.',
  ORIGIN_NOT_ALLOWED:
    'This server does not accept sessions from this page’s address. Add it to ALLOWED_ORIGINS.',
  TOO_MANY_CONNECTIONS: 'The server has too many connections. Try again in a minute.',
  REQUEST_TIMEOUT: 'The upload took too long. Check the network and try again.',
  CONVERSATIONS_UNAVAILABLE: 'This server cannot hold conversations. Its log says why.',
  CONVERSATIONS_INSTALLING:
    'The server is installing what it needs for conversations. Try again in half a minute.',
  ROOM_CLOSED:
    'This conversation is over, or its link is no longer valid: each opens its room once. Ask for a ' +
    'new link.',
  CONVERSATION_FAILED:
    'The conversation ended: a service of speech or language failed. Try again in a minute.',
  HTTP_404: 'This server does not support that.',
};

/** By the warning of a new face. @type {Record<string, string>} */
const WARNINGS = {
  ROTATED: 'The photo was turned upright.',
  TURNED: 'The head is turned: a photo from the front looks better.',
  MOUTH_OPEN: 'The mouth is open and was closed: a closed one looks better.',
  CHIN_COVERED: 'Something covers the chin or touches a lip.',
  EYES_HIDDEN: 'The eyes cannot be seen, so they do not blink.',
  EYES_CLOSED: 'The eyes are closed.',
  DARK: 'The photo is dark.',
  OVEREXPOSED: 'The photo is overexposed.',
  BLURRED: 'The photo is blurred.',
  LOW_RESOLUTION: 'The photo has few pixels for this size.',
  CROPPED: 'There is little space around the head, so it moves less.',
  OTHER_FACES: 'There are other faces in the photo: crop it if the wrong one was used.',
  EXTENDED: 'The picture shows more than the photo: what is missing is out of focus.',
  BACKGROUND_KEPT:
    'The background could not be told from the person and was kept: a plain wall works.',
};

/** By the reason for the end of a session. @type {Record<string, string>} */
const ENDS = {
  stop: 'Finished',
  done: 'Finished',
  idle_limit: 'Ended: no speech for too long',
  length_limit: 'Ended: the session reached its time limit',
  taken_over: 'Ended: opened in another place',
  peer_closed: 'Not connected',
  server_stopped: 'Ended: the server is stopping',
};

/**
 * The text for an error: by its code, else its own message.
 * @param {unknown} error
 * @returns {string}
 */
export function errorMessage(error) {
  const { code, message } = /** @type {{ code?: string, message?: string }} */ (error ?? {});
  if (code && BY_CODE[code]) {
    return BY_CODE[code];
  }
  if (code && message && message !== code) {
    return message;
  }
  if (code) {
    return `The server reported ${code}.`;
  }
  return message || 'Something unexpected happened.';
}

/** The text for a warning of a new face. @param {string} code */
export const warningMessage = (code) => WARNINGS[code] ?? code;

/**
 * The text for the end of a session.
 * @param {string} reason The word after STOP, or of the client.
 * @returns {string}
 */
export const endMessage = (reason) => ENDS[reason.toLowerCase()] ?? 'Not connected';
