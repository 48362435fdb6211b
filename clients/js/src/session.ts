// A live session: a face that speaks what it is given. It outlives its connection.
import { type Codec, Connection, type ServerEvent } from './connection.ts';
import { openMicrophone } from './devices.ts';
import type { Command, SessionError, SessionEvents } from './events.ts';
import { addressOf } from './rest.ts';
import { RETRYABLE, Retry } from './retry.ts';
import { ShownFace } from './shown-face.ts';
import { drained } from './socket.ts';
import type { SpeechSource } from './speech.ts';
import { type SpeakOptions, SpeechQueue } from './speech-queue.ts';
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

/** Frame rate and size of the video. */
export interface VideoMetadata {
  readonly fps: number;
  readonly width: number;
  readonly height: number;
}

/** A session that had started is connected again for this long. */
const RECONNECT_MS = 180_000;
/** Five seconds. */
const MAX_MOTION_FRAMES = 150;

/** A live session. Its events are in `SessionEvents`. */
export class Session extends ShownFace<SessionEvents> {
  /** The id of the session on the server, of its present connection. */
  id: string | null = null;
  videoMetadata: VideoMetadata | null = null;
  /** Milliseconds from `ping` to its answer on the WebSocket; null until measured. */
  socketRoundTripMs: number | null = null;

  readonly #options: ConnectOptions;
  readonly #stats = new StatsReader();
  readonly #retry = new Retry(RECONNECT_MS);
  readonly #speech: SpeechQueue;
  #connection: Connection;
  #microphone: MediaStreamTrack | undefined;
  /** The one that `setMicrophone` opened. */
  #opened: MediaStreamTrack | undefined;
  #hasStarted = false;
  /** By RTP timestamp, the oldest first. */
  readonly #motion = new Map<number, readonly number[]>();

  constructor(options: ConnectOptions) {
    super(options);
    this.#options = options;
    this.#microphone = options.microphone;
    this.#speech = new SpeechQueue({
      ready: async () => {
        if (this.state === 'reconnecting' || this.state === 'connecting') {
          await this.started().catch(() => {});
        }
      },
      send: (message) => this.#connection.send(message),
      drained: () => drained(this.#connection.socket),
    });
    this.#connection = this.#connect();
    this.closeWith(options.signal);
  }

  get peer(): RTCPeerConnection {
    return this.#connection.peer;
  }

  // ── speech ─────────────────────────────────────────────────────────────────────────────────────

  /**
   * Appends speech to what the face will say. It may come much faster than real time.
   * @returns true when all of it was sent, false when it was interrupted or the session ended
   * @throws Error when the source fails
   */
  async speak(source: SpeechSource, options?: SpeakOptions): Promise<boolean> {
    return await this.#speech.speak(source, options);
  }

  /** Falls silent, and forgets all speech so far: `interrupted` follows. Ends a reply, too. */
  interrupt(): void {
    this.#speech.drop();
    this.command({ type: 'interrupt' });
  }

  /** The speech so far is an utterance: the event `flushed` tells, once, when it is over. */
  async flush(id = ''): Promise<void> {
    await this.#speech.sent();
    this.command({ type: 'flush', id });
  }

  /** Tells the face what to do. A command that cannot be obeyed gives the event `rejected`. */
  command(command: Command): void {
    this.#connection.send(JSON.stringify(command));
  }

  /** Ends the session once what was sent has been spoken. */
  async finish(): Promise<void> {
    await this.#speech.sent();
    this.#connection.send('DONE');
  }

  /** Ends the session. */
  close(): void {
    this.#connection.close();
    this.#end('closed', null);
  }

  // ── picture and sound ──────────────────────────────────────────────────────────────────────────

  /**
   * Sends another microphone instead of the option `microphone`.
   * @param microphone a track, or the id of `listDevices`: that one is opened, and stopped when it is
   * replaced or the session ends
   * @throws DOMException when the user forbids it, or it is not there
   * @throws Error when the session began without a microphone
   */
  async setMicrophone(microphone: MediaStreamTrack | string): Promise<void> {
    const isOurs = typeof microphone === 'string';
    const track = isOurs ? await openMicrophone(microphone) : microphone;
    try {
      await this.#connection.replaceMicrophone(track);
    } catch (error) {
      if (isOurs) {
        track.stop();
      }
      throw error;
    }
    this.#opened?.stop();
    this.#opened = isOurs ? track : undefined;
    this.#microphone = track;
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
    const { sessionToken, baseUrl, iceServers = [], codec, motion } = this.#options;
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
      microphone: this.#microphone,
      onTrack: (track) => this.playback.show(track),
      onEvent: (event) => this.#receive(event),
      onEnd: (reason, error) => this.#lost(reason, error),
    });
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
        this.#retry.succeeded();
        this.become('idle');
        break;
      case 'speaking':
        this.become('speaking');
        break;
      case 'silent':
        this.become('idle');
        break;
      default:
    }
    // An event of a later version has no listeners.
    this.emit(type as 'started', detail);
  }

  #lost(reason: string, error: SessionError | null): void {
    const { reconnect = true } = this.#options;
    const isLost = error !== null && reconnect && this.#hasStarted;
    const next =
      isLost && RETRYABLE.includes(error.code)
        ? this.#retry.next(() => {
            this.#connection = this.#connect();
          })
        : undefined;
    if (next === undefined) {
      this.#end(reason, error);
    } else {
      this.become('reconnecting');
      this.emit('reconnecting', { error: error!, ...next });
    }
  }

  #end(reason: string, error: SessionError | null): void {
    this.#speech.drop();
    this.#retry.close();
    this.#opened?.stop();
    this.ended(reason, error);
  }
}

/** Connects, and resolves when the face is there. @throws SessionError */
export const connect = async (options: ConnectOptions): Promise<Session> =>
  await new Session(options).started();
