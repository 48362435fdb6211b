// A live session: a face that speaks what it is given. It outlives its connection.
import { type Codec, Connection, type ServerEvent } from './connection.ts';
import {
  type Command,
  Emitter,
  SessionError,
  type SessionEvents,
  type SessionState,
} from './events.ts';
import { addressOf } from './rest.ts';
import { type SpeechSource, messagesOf, speechChunks } from './speech.ts';
import { type SessionStats, StatsReader } from './stats.ts';

/** Options of a session. */
export interface ConnectOptions {
  /** From `createToken`, by way of your own server. */
  readonly sessionToken: string;
  /** Address of the service; default: the origin of the page. */
  readonly baseUrl?: string;
  /** From `getIceServers`. */
  readonly iceServers?: RTCIceServer[];
  /** 'relay' forces TURN. */
  readonly iceTransportPolicy?: RTCIceTransportPolicy;
  /** Preferred video codec; default: the browser's own order. */
  readonly codec?: Codec;
  /** Sent as Opus over the peer connection: the face speaks its sound, or a conversation hears it. */
  readonly microphone?: MediaStreamTrack;
  /**
   * Ask for the motion of the face: true or 'arkit', as blend shapes (`motion` events and
   * `weightsAt`); 'visemes', as `viseme` events; 'all', both.
   */
  readonly motion?: boolean | 'arkit' | 'visemes' | 'all';
  /** Shows the face: see `attach`. */
  readonly video?: HTMLVideoElement;
  /** Connect again with the same token when the connection is lost; default: true. */
  readonly reconnect?: boolean;
  /** Ends the session, also while it is being set up. */
  readonly signal?: AbortSignal;
}

/** Options of `speak`. */
export interface SpeakOptions {
  /** Once the first of it is there, forget all speech that was sent before. */
  readonly interrupt?: boolean;
  /** 'opus': each chunk is one packet. The token must say so too (`audioInputFormat`). */
  readonly format?: 'pcm16' | 'opus';
}

/** Frame rate and size of the video. */
export interface VideoMetadata {
  readonly fps: number;
  readonly width: number;
  readonly height: number;
}

/**
 * Errors after which the same token may work again; /docs/protocol says so of each code. Others are
 * final.
 */
export const RETRYABLE: readonly string[] = [
  'CONNECTION_LOST',
  'SOCKET_FAILED',
  'SESSION_IN_USE',
  'FACE_NOT_READY',
  'RATE_LIMITED',
  'SERVER_OVERLOADED',
  'SERVER_DRAINING',
  'OFFER_TIMEOUT',
  'CONNECT_TIMEOUT',
  'ICE_FAILED',
  'DTLS_FAILED',
  'CERTIFICATE_MISMATCH',
  'PEER_LOST',
  'JOIN_TIMEOUT',
  'ROOM_JOIN_FAILED',
  'ROOM_LOST',
  'WORKER_LOST',
  'STORE_UNAVAILABLE',
  'INTERNAL_ERROR',
];

/** A session that had started is connected again for this long. */
const RECONNECT_MS = 180_000;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8000;
/** Five seconds. */
const MAX_MOTION_FRAMES = 150;

/** A live session. Its events are in `SessionEvents`. */
export class Session extends Emitter<SessionEvents> {
  /** Audio and video of the face. It stays the same when the session reconnects. */
  readonly stream = new MediaStream();
  state: SessionState = 'connecting';
  /** The id of the session on the server, of its present connection. */
  id: string | null = null;
  videoMetadata: VideoMetadata | null = null;
  /** Milliseconds from `ping` to its answer on the WebSocket; null until measured. */
  socketRoundTripMs: number | null = null;

  readonly #options: ConnectOptions;
  readonly #stats = new StatsReader();
  readonly #over = new AbortController();
  #connection: Connection;
  #hasStarted = false;
  /** Changed by `interrupt`: ends the speech that is being sent. */
  #speech = new AbortController();
  /** Speech waits for the speech before it. */
  #sending: Promise<unknown> = Promise.resolve();
  /** What ended it. */
  #error: SessionError | null = null;
  #lostMs = 0;
  #attempt = 0;
  #video: HTMLVideoElement | undefined = undefined;
  /** By RTP timestamp, the oldest first. */
  readonly #motion = new Map<number, readonly number[]>();

  constructor(options: ConnectOptions) {
    super();
    this.#options = options;
    this.#connection = this.#connect();
    if (options.video) {
      this.attach(options.video);
    }
    options.signal?.addEventListener('abort', () => this.close(), { once: true });
    if (options.signal?.aborted) {
      this.close();
    }
  }

  /** The present peer connection. */
  get peer(): RTCPeerConnection {
    return this.#connection.peer;
  }

  /** Resolves when the session has started. @throws SessionError that ended it before */
  async started(): Promise<this> {
    while (this.state === 'connecting' || this.state === 'reconnecting') {
      const stop = new AbortController();
      const error = await new Promise<SessionError | undefined>((resolve) => {
        const { signal } = stop;
        this.addEventListener('started', () => resolve(undefined), { signal });
        this.addEventListener(
          'end',
          ({ detail }) => resolve(detail.error ?? new SessionError('CLOSED')),
          { signal },
        );
      });
      stop.abort();
      if (error) {
        throw error;
      }
    }
    if (this.state === 'ended') {
      throw this.#error ?? new SessionError('CLOSED');
    }
    return this;
  }

  // ── speech ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Appends speech to what the face will say. It may come much faster than real time.
   * @returns true when all of it was sent, false when it was interrupted or the session ended
   * @throws Error when the source fails
   */
  async speak(source: SpeechSource, options: SpeakOptions = {}): Promise<boolean> {
    if (options.interrupt) {
      this.#dropSpeech();
    }
    const { signal } = this.#speech;
    const sent = this.#sending.then(() => this.#send(source, options, signal));
    this.#sending = sent.catch(() => {});
    return await sent;
  }

  async #send(
    source: SpeechSource,
    { interrupt = false, format }: SpeakOptions,
    signal: AbortSignal,
  ): Promise<boolean> {
    let isFirst = interrupt;
    for await (const chunk of speechChunks(source, signal)) {
      if (this.state === 'reconnecting' || this.state === 'connecting') {
        await this.started().catch(() => {});
      }
      for (const message of messagesOf(chunk, format === 'opus')) {
        if (signal.aborted || !this.#connection.send(isFirst ? atOnce(message) : message)) {
          return false;
        }
        isFirst = false;
      }
      await this.#connection.drained();
    }
    return !signal.aborted;
  }

  /** Falls silent, and forgets all speech so far: `interrupted` follows. Ends a reply, too. */
  interrupt(): void {
    this.#dropSpeech();
    this.command({ type: 'interrupt' });
  }

  /** The speech so far is an utterance: the event `flushed` tells, once, when it is over. */
  async flush(id = ''): Promise<void> {
    await this.#sending;
    this.command({ type: 'flush', id });
  }

  /** Tells the face what to do. A command that cannot be obeyed gives the event `rejected`. */
  command(command: Command): void {
    this.#connection.send(JSON.stringify(command));
  }

  /** Forgets the speech that has not been sent. */
  #dropSpeech(): void {
    this.#speech.abort();
    this.#speech = new AbortController();
    this.#sending = Promise.resolve();
  }

  /** Ends the session once what was sent has been spoken. */
  async finish(): Promise<void> {
    await this.#sending;
    this.#connection.send('DONE');
  }

  /** Ends the session. */
  close(): void {
    this.#connection.close();
    this.#end('closed', null);
  }

  // ── picture and sound ──────────────────────────────────────────────────────────────────────────

  /**
   * Shows the face in a video element. Where the browser allows no sound yet, it plays muted, tells
   * `autoplay`, and turns the sound on at the next click or key of the user.
   */
  attach(video: HTMLVideoElement): void {
    this.#video = video;
    video.playsInline = true;
    video.srcObject = this.stream;
    video.play().catch((error: unknown) => {
      if ((error as DOMException).name !== 'NotAllowedError' || video.muted) {
        return;
      }
      video.muted = true;
      void video.play().catch(() => {});
      this.emit('autoplay', { muted: true });
      for (const type of ['pointerdown', 'keydown']) {
        document.addEventListener(type, () => this.unmute(), {
          once: true,
          signal: this.#over.signal,
        });
      }
    });
  }

  /** Turns on the sound of the attached video. Call it from a click. */
  unmute(): void {
    if (this.#video?.muted) {
      this.#video.muted = false;
      void this.#video.play().catch(() => {});
      this.emit('autoplay', { muted: false });
    }
  }

  /**
   * What the face does in a frame, with the option `motion`: 52 weights in the order of
   * `ARKIT_BLEND_SHAPES`. Undefined when they have not come, or are older than five seconds.
   * @param rtpTimestamp of the frame, from `requestVideoFrameCallback`
   */
  weightsAt(rtpTimestamp: number): readonly number[] | undefined {
    return this.#motion.get(rtpTimestamp);
  }

  #keepMotion(rtp: number, weights: readonly number[]): void {
    this.#motion.set(rtp, weights);
    const [oldest] = this.#motion.keys();
    if (this.#motion.size > MAX_MOTION_FRAMES) {
      this.#motion.delete(oldest!);
    }
  }

  /** Figures of the connection, since the last call where they are rates. */
  async stats(): Promise<SessionStats> {
    this.ping();
    return { ...(await this.#stats.read(this.peer)), socketRoundTripMs: this.socketRoundTripMs };
  }

  /** Measures `socketRoundTripMs`. */
  ping(): void {
    this.#connection.send(`ping ${performance.now()}`);
  }

  // ── the connection ─────────────────────────────────────────────────────────────────────────────

  #connect(): Connection {
    const { sessionToken, baseUrl, iceServers = [], codec, microphone, motion } = this.#options;
    const socketUrl = addressOf('/compose/webrtc/p2p', baseUrl);
    socketUrl.protocol = socketUrl.protocol.replace('http', 'ws');
    socketUrl.search = new URLSearchParams({
      session_token: sessionToken,
      events: 'json',
      ...(motion && { motion: motion === true ? 'arkit' : motion }),
    }).toString();
    return new Connection({
      socketUrl,
      iceServers,
      iceTransportPolicy: this.#options.iceTransportPolicy ?? 'all',
      codec,
      microphone,
      onTrack: (track) => this.#show(track),
      onEvent: (event) => this.#receive(event),
      onEnd: (reason, error) => this.#lost(reason, error),
    });
  }

  /** Puts a track of a new connection in the place of the old one. */
  #show(track: MediaStreamTrack): void {
    for (const old of this.stream.getTracks()) {
      if (old.kind === track.kind) {
        this.stream.removeTrack(old);
      }
    }
    this.stream.addTrack(track);
  }

  #receive(event: ServerEvent): void {
    const { type, ...detail } = event;
    switch (type) {
      case 'session':
        this.id = detail['session_id'] as string;
        return;
      case 'video':
        this.videoMetadata = detail as unknown as VideoMetadata;
        return;
      case 'pong':
        this.socketRoundTripMs = performance.now() - Number(detail['payload']);
        return;
      case 'motion':
        this.#keepMotion(detail['rtp'] as number, detail['weights'] as number[]);
        break;
      case 'started':
        this.#hasStarted = true;
        this.#attempt = 0;
        this.#become('idle');
        break;
      case 'speaking':
        this.#become('speaking');
        break;
      case 'silent':
        this.#become('idle');
        break;
      default:
    }
    // An event of a later version has no listeners.
    this.emit(type as 'started', detail);
  }

  #lost(reason: string, error: SessionError | null): void {
    const { reconnect = true } = this.#options;
    const nowMs = performance.now();
    if (this.state !== 'reconnecting') {
      this.#lostMs = nowMs;
    }
    if (
      error === null ||
      !reconnect ||
      !this.#hasStarted ||
      !RETRYABLE.includes(error.code) ||
      nowMs - this.#lostMs > RECONNECT_MS
    ) {
      this.#end(reason, error);
      return;
    }
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#attempt++);
    this.#become('reconnecting');
    this.emit('reconnecting', { error, attempt: this.#attempt, delayMs });
    const again = (): void => {
      clearTimeout(timer);
      removeEventListener('online', again);
      if (this.state === 'reconnecting') {
        this.#connection = this.#connect();
      }
    };
    const timer = setTimeout(again, delayMs);
    addEventListener('online', again, { signal: this.#over.signal });
  }

  #become(state: SessionState): void {
    if (this.state !== state && this.state !== 'ended') {
      this.state = state;
      this.emit('state', state);
    }
  }

  #end(reason: string, error: SessionError | null): void {
    if (this.state === 'ended') {
      return;
    }
    this.#error = error;
    this.#speech.abort();
    this.#over.abort();
    this.#become('ended');
    this.emit('end', { reason, error });
  }
}

/** Speech that takes the place of all speech before it. */
function atOnce(message: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const command = new TextEncoder().encode('PLAY_IMMEDIATE');
  const whole = new Uint8Array(command.length + message.length);
  whole.set(command);
  whole.set(message, command.length);
  return whole;
}

/** Connects, and resolves when the face is there. @throws SessionError */
export const connect = async (options: ConnectOptions): Promise<Session> =>
  await new Session(options).started();
