// A complete client of the live path in one file without dependencies: token → socket → offer → answer → tracks → events. Copy it.
// @ts-check

/**
 * @typedef {'vp8' | 'h264'} Codec
 * @typedef {'connecting' | 'idle' | 'speaking' | 'ended'} SessionState
 *
 * @typedef {object} TokenOptions What POST /compose/token takes; only `faceId` is required.
 * @property {string} faceId A face id, or `faceId/emotionId`.
 * @property {boolean} [handleSilence] true (default): idle video goes on when the audio runs out; false: the picture freezes.
 * @property {number} [maxSessionLength] Seconds, a hard limit.
 * @property {number} [maxIdleTime] Seconds without speech.
 * @property {string} [model] Names a renderer.
 *
 * @typedef {object} ConnectOptions
 * @property {string} sessionToken From `createToken`. May be used again to reconnect.
 * @property {string} [baseUrl] Where the service is; this page's origin by default.
 * @property {RTCIceServer[]} [iceServers] From `getIceServers`.
 * @property {RTCIceTransportPolicy} [iceTransportPolicy] 'relay' forces TURN.
 * @property {Codec} [codec] Preferred video codec; the browser's own order by default.
 * @property {MediaStreamTrack} [microphone] Sent as Opus over the peer connection: the face speaks what this track hears.
 * @property {AbortSignal} [signal] Ends the session, also while it is being set up.
 */

/** What the REST interface refused, with its code, so that a page can say it in its own words. */
export class RequestError extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
    this.code = code;
  }
}

/** Why a session could not be set up or ended early. `code` is the server's, or one of this file: SOCKET_FAILED, CONNECTION_LOST, ICE_FAILED, OFFER_FAILED, ANSWER_FAILED. */
export class SessionError extends Error {
  /** @param {string} code @param {string} [message] */
  constructor(code, message = code) {
    super(message);
    this.name = 'SessionError';
    this.code = code;
  }
}

/**
 * One call of the REST interface.
 * @param {string} path Begins with a slash.
 * @param {{ baseUrl?: string, apiKey?: string, method?: string, json?: unknown, body?: BodyInit, signal?: AbortSignal }} [options]
 * @returns {Promise<any>} The parsed JSON body, or null when there is none.
 * @throws {RequestError}
 */
export async function request(
  path,
  { baseUrl = location.origin, apiKey, method, json, body, signal } = {},
) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (apiKey) {
    headers['x-service-api-key'] = apiKey;
  }
  if (json !== undefined) {
    headers['content-type'] = 'application/json';
  }
  let response;
  try {
    response = await fetch(new URL(path, baseUrl), {
      method: method ?? (json !== undefined || body ? 'POST' : 'GET'),
      headers,
      body: json === undefined ? (body ?? null) : JSON.stringify(json),
      signal: signal ?? null,
    });
  } catch (error) {
    if (signal?.aborted) {
      throw error;
    }
    throw new RequestError(0, 'UNREACHABLE', 'The server does not answer.');
  }
  const text = await response.text();
  /** @type {any} */
  let answer = null;
  try {
    answer = text === '' ? null : JSON.parse(text);
  } catch {
    /* not JSON: told by its status below */
  }
  if (response.ok) {
    return answer;
  }
  // Three shapes of refusal: {session_token, detail: CODE}, {detail: [{loc, msg}]}, {error, code}.
  if (Array.isArray(answer?.detail)) {
    const problems = answer.detail.map(
      (/** @type {{ loc: string[], msg: string }} */ { loc, msg }) =>
        `${loc.slice(1).join('.') || loc[0]}: ${msg}`,
    );
    throw new RequestError(response.status, 'VALIDATION_FAILED', problems.join('; '));
  }
  const code = answer?.code ?? answer?.detail ?? `HTTP_${response.status}`;
  throw new RequestError(response.status, code, answer?.error ?? code);
}

/**
 * Makes a session token. Do this on your server in production: the API key must not reach a stranger's browser.
 * @param {TokenOptions & { apiKey: string, baseUrl?: string }} options
 * @returns {Promise<string>}
 */
export async function createToken({ apiKey, baseUrl, ...json }) {
  return (await request('/compose/token', { apiKey, json, ...(baseUrl && { baseUrl }) }))
    .session_token;
}

/**
 * @param {{ apiKey: string, baseUrl?: string }} options
 * @returns {Promise<RTCIceServer[]>}
 */
export const getIceServers = ({ apiKey, baseUrl }) =>
  request('/compose/ice', { apiKey, ...(baseUrl && { baseUrl }) });

/** The usual piece of speech in one message: 187.5 ms. */
export const CHUNK_BYTES = 6000;

/**
 * A live session. Events, all plain `CustomEvent`s:
 * - `state`: detail is the SessionState.
 * - `start` (the peer connection is up), `speak`, `silent`, `ack`.
 * - `rate`, `closing`: detail is the server's reason.
 * - `end`: detail is `{reason: string, error: SessionError | null}`; the last event.
 */
export class Session extends EventTarget {
  /** Audio and video of the face; put it into a `<video>`'s srcObject. */
  stream = new MediaStream();
  /** @type {SessionState} */
  state = 'connecting';
  /** @type {string | null} */
  id = null;
  /** @type {{ fps: number, width: number, height: number } | null} */
  videoMetadata = null;
  /** Milliseconds between `ping` and `pong` on the socket; null until measured. @type {number | null} */
  socketRoundTripMs = null;
  /** @type {RTCPeerConnection} */
  peer;
  /** @type {WebSocket} */
  socket;

  /** @param {ConnectOptions} options */
  constructor({
    sessionToken,
    baseUrl = location.origin,
    iceServers = [],
    iceTransportPolicy = 'all',
    codec,
    microphone,
    signal,
  }) {
    super();
    this.peer = new RTCPeerConnection({
      iceServers,
      iceTransportPolicy,
      bundlePolicy: 'max-bundle',
    });
    const url = new URL('/compose/webrtc/p2p', baseUrl);
    url.protocol = url.protocol.replace('http', 'ws');
    url.search = new URLSearchParams({
      session_token: sessionToken,
      enableSFU: 'false',
    }).toString();
    this.socket = new WebSocket(url);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onmessage = ({ data }) => this.#receive(String(data));
    // A server that ends a session says STOP or ERROR first, so a bare close is a connection that broke.
    this.socket.onclose = () =>
      this.#end(
        'closed',
        new SessionError(this.state === 'connecting' ? 'SOCKET_FAILED' : 'CONNECTION_LOST'),
      );
    this.peer.ontrack = ({ track, receiver }) => {
      // The least delay the network allows; browsers that cannot, ignore it.
      if ('jitterBufferTarget' in receiver) {
        receiver.jitterBufferTarget = 0;
      }
      this.stream.addTrack(track);
    };
    this.peer.onconnectionstatechange = () => {
      if (this.peer.connectionState === 'failed') {
        this.#end('ice_failed', new SessionError('ICE_FAILED'));
      }
    };
    signal?.addEventListener('abort', () => this.close(), { once: true });
    this.#offer(codec, microphone).catch((error) =>
      this.#end('offer_failed', new SessionError('OFFER_FAILED', String(error?.message ?? error))),
    );
  }

  /** Resolves once media flows; rejects with the SessionError that ended the session before. @returns {Promise<this>} */
  started() {
    return new Promise((resolve, reject) => {
      if (this.state === 'idle' || this.state === 'speaking') {
        resolve(this);
      }
      this.addEventListener('start', () => resolve(this), { once: true });
      this.addEventListener(
        'end',
        (event) =>
          reject(/** @type {CustomEvent} */ (event).detail.error ?? new SessionError('CLOSED')),
        { once: true },
      );
    });
  }

  /**
   * Appends speech to what the face will say: 16 kHz mono. May be sent much faster than real time.
   * @param {Int16Array} pcm
   */
  speak(pcm) {
    const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      this.#send(bytes.slice(at, at + CHUNK_BYTES));
    }
  }

  /** Drops all that is buffered and says this now. @param {Int16Array} pcm */
  playImmediate(pcm) {
    const command = new TextEncoder().encode('PLAY_IMMEDIATE');
    // Command and first piece are one message; the rest follows as usual, so that no message grows beyond the server's limit.
    const first = pcm.subarray(0, CHUNK_BYTES / 2);
    const message = new Uint8Array(command.length + first.byteLength);
    message.set(command);
    message.set(new Uint8Array(first.buffer, first.byteOffset, first.byteLength), command.length);
    this.#send(message);
    this.speak(pcm.subarray(first.length));
  }

  /** Stops speaking at once and forgets all audio sent so far. */
  skip() {
    this.#send('SKIP');
  }

  /** The last audio was sent: the server plays it out, says STOP and closes. */
  done() {
    this.#send('DONE');
  }

  /** Measures the socket's round trip into `socketRoundTripMs`. */
  ping() {
    this.#send(`ping ${performance.now()}`);
  }

  close() {
    this.#end('closed', null);
  }

  /** @param {Codec | undefined} codec @param {MediaStreamTrack | undefined} microphone */
  async #offer(codec, microphone) {
    const video = this.peer.addTransceiver('video', { direction: 'recvonly' });
    if (microphone) {
      this.peer.addTransceiver(microphone, { direction: 'sendrecv' });
    } else {
      this.peer.addTransceiver('audio', { direction: 'recvonly' });
    }
    if (codec) {
      preferCodec(video, codec);
    }
    await this.peer.setLocalDescription(await this.peer.createOffer());
    // No candidate is waited for: the server takes checks from addresses it was not told of, as long as it is reachable itself.
    await opened(this.socket);
    const { type, sdp } = /** @type {RTCSessionDescription} */ (this.peer.localDescription);
    this.#send(JSON.stringify({ type, sdp }));
  }

  /** @param {string} text */
  #receive(text) {
    if (text.startsWith('{')) {
      this.#receiveJson(JSON.parse(text));
      return;
    }
    const [word = '', ...rest] = text.split(/\s+/);
    const reason = rest.join(' ');
    switch (word.toUpperCase()) {
      case 'START':
        this.#become('idle');
        this.#emit('start');
        break;
      case 'SPEAK':
        this.#become('speaking');
        this.#emit('speak');
        break;
      case 'SILENT':
        this.#become('idle');
        this.#emit('silent');
        break;
      case 'ACK':
        this.#emit('ack');
        break;
      case 'PONG':
        this.socketRoundTripMs = performance.now() - Number(reason);
        break;
      case 'RATE':
        this.#emit('rate', reason);
        break;
      case 'CLOSING':
        this.#emit('closing', reason);
        break;
      case 'STOP':
        this.#end(reason || 'stop', null);
        break;
      case 'ERROR':
        this.#end('error', new SessionError(rest[0] ?? 'ERROR', reason));
        break;
      default: // Words of later versions are no error.
    }
  }

  /** @param {any} message */
  #receiveJson(message) {
    if ('sdp' in message) {
      this.peer
        .setRemoteDescription(message)
        .catch((error) =>
          this.#end('answer_failed', new SessionError('ANSWER_FAILED', String(error))),
        );
    } else if ('destination' in message) {
      this.id = message.session_id;
    } else if ('video_metadata' in message) {
      this.videoMetadata = message.video_metadata;
    }
  }

  /** @param {string | Uint8Array<ArrayBuffer>} message */
  #send(message) {
    if (this.socket.readyState === WebSocket.OPEN) {
      this.socket.send(message);
    }
  }

  /** @param {SessionState} state */
  #become(state) {
    if (this.state === state || this.state === 'ended') {
      return;
    }
    this.state = state;
    this.#emit('state', state);
  }

  /** @param {string} reason @param {SessionError | null} error */
  #end(reason, error) {
    if (this.state === 'ended') {
      return;
    }
    this.#become('ended');
    this.socket.close();
    this.peer.close();
    this.#emit('end', { reason, error });
  }

  /** @param {string} type @param {unknown} [detail] */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** @param {RTCRtpTransceiver} transceiver @param {Codec} codec */
function preferCodec(transceiver, codec) {
  const all = RTCRtpReceiver.getCapabilities('video')?.codecs ?? [];
  const isWanted = (/** @type {{ mimeType: string }} */ { mimeType }) =>
    mimeType.toLowerCase() === `video/${codec}`;
  if (all.some(isWanted)) {
    transceiver.setCodecPreferences([
      ...all.filter(isWanted),
      ...all.filter((one) => !isWanted(one)),
    ]);
  }
}

/** @param {WebSocket} socket @returns {Promise<void>} */
function opened(socket) {
  if (socket.readyState === WebSocket.OPEN) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    socket.addEventListener('open', () => resolve(), { once: true });
  });
}
