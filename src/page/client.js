// A complete client for live sessions in one file without dependencies: token, WebSocket, offer,
// answer, tracks, events. Made to be copied.
// @ts-check

/**
 * @typedef {'vp8' | 'h264'} Codec
 * @typedef {'connecting' | 'idle' | 'speaking' | 'ended'} SessionState
 *
 * @typedef {object} TokenOptions The body of POST /compose/token; only `faceId` is required.
 * @property {string} faceId A face id, or `faceId/emotionId`.
 * @property {boolean} [handleSilence] true (default): idle video continues when the audio ends;
 * false: the picture freezes.
 * @property {number} [maxSessionLength] Seconds, a hard limit.
 * @property {number} [maxIdleTime] Seconds without speech.
 * @property {string} [model] Name of a renderer.
 *
 * @typedef {object} ConnectOptions
 * @property {string} sessionToken From `createToken`. Can be used again to reconnect.
 * @property {string} [baseUrl] Address of the service; by default the origin of this page.
 * @property {RTCIceServer[]} [iceServers] From `getIceServers`.
 * @property {RTCIceTransportPolicy} [iceTransportPolicy] 'relay' forces TURN.
 * @property {Codec} [codec] Preferred video codec; by default the browser's own order.
 * @property {MediaStreamTrack} [microphone] Sent as Opus over the peer connection: the face speaks
 * the sound of this track.
 * @property {AbortSignal} [signal] Ends the session, also while it is being set up.
 */

/** An error response of the REST API, with its code, so that a page can show a text of its own. */
export class RequestError extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
    this.code = code;
  }
}

/**
 * Why a session could not start, or ended early. `code` is the server's, or one of this file:
 * SOCKET_FAILED, CONNECTION_LOST, ICE_FAILED, OFFER_FAILED, ANSWER_FAILED.
 */
export class SessionError extends Error {
  /** @param {string} code @param {string} [message] */
  constructor(code, message = code) {
    super(message);
    this.name = 'SessionError';
    this.code = code;
  }
}

/**
 * Calls the REST API.
 * @param {string} path Begins with a slash.
 * @param {{ baseUrl?: string, apiKey?: string, method?: string, json?: unknown, body?: BodyInit,
 * signal?: AbortSignal }} [options]
 * @returns {Promise<any>} The parsed JSON body; null when there is none.
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
    /* not JSON: the status below decides */
  }
  if (response.ok) {
    return answer;
  }
  // An error body has one of three shapes: {session_token, detail: CODE}, {detail: [{loc, msg}]},
  // {error, code}.
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
 * Creates a session token. In production do this on your own server: the API key must not reach the
 * browsers of users.
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

/** Bytes of speech in one message: 187.5 ms. */
export const CHUNK_BYTES = 6000;

/**
 * A live session. It fires these `CustomEvent`s:
 * - `state`: detail is the SessionState.
 * - `start` (the peer connection is up), `speak`, `silent`, `ack`.
 * - `rate`, `closing`: detail is the server's reason.
 * - `conversation`: in a conversation; detail has one of `state`, `caption`, `problem`.
 * - `end`: detail is `{reason: string, error: SessionError | null}`; the last event.
 */
export class Session extends EventTarget {
  /** Audio and video of the face, for the srcObject of a `<video>`. */
  stream = new MediaStream();
  /** @type {SessionState} */
  state = 'connecting';
  /** @type {string | null} */
  id = null;
  /** @type {{ fps: number, width: number, height: number } | null} */
  videoMetadata = null;
  /**
   * Milliseconds from `ping` to `pong` on the WebSocket; null until measured. @type {number | null}
   */
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
    // A server that ends a session sends STOP or ERROR first. Without them the connection was lost.
    this.socket.onclose = () =>
      this.#end(
        'closed',
        new SessionError(this.state === 'connecting' ? 'SOCKET_FAILED' : 'CONNECTION_LOST'),
      );
    this.peer.ontrack = ({ track, receiver }) => {
      // Ask for the shortest delay that the network allows. Some browsers ignore it.
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

  /**
   * Resolves when the session has started.
   * @returns {Promise<this>} Rejects with the SessionError that ended the session before it
   * started.
   */
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
   * Appends speech (16 kHz mono) to what the face will say. It may be sent much faster than real
   * time.
   * @param {Int16Array} pcm
   */
  speak(pcm) {
    const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      this.#send(bytes.slice(at, at + CHUNK_BYTES));
    }
  }

  /** Drops all buffered speech and speaks this at once. @param {Int16Array} pcm */
  playImmediate(pcm) {
    const command = new TextEncoder().encode('PLAY_IMMEDIATE');
    // The command and the first chunk are one message. The rest follows as usual, so that no
    // message exceeds the server's limit.
    const first = pcm.subarray(0, CHUNK_BYTES / 2);
    const message = new Uint8Array(command.length + first.byteLength);
    message.set(command);
    message.set(new Uint8Array(first.buffer, first.byteOffset, first.byteLength), command.length);
    this.#send(message);
    this.speak(pcm.subarray(first.length));
  }

  /** Stops speaking at once and drops all audio sent so far. */
  skip() {
    this.#send('SKIP');
  }

  /** Ends the session after the audio sent so far: the server plays it, sends STOP and closes. */
  done() {
    this.#send('DONE');
  }

  /** Measures `socketRoundTripMs`, the round trip on the WebSocket. */
  ping() {
    this.#send(`ping ${performance.now()}`);
  }

  /** Ends the session. */
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
    // Do not wait for ICE candidates: a reachable server accepts checks from addresses that were
    // not signalled (peer-reflexive candidates).
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
      default: // Ignore messages of later versions.
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
    } else if ('conversation' in message) {
      this.#emit('conversation', message.conversation);
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
