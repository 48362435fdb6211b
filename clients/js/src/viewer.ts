// A viewer of a session whose agent has a connection of its own: it can only watch, and needs no key.
import type { Codec } from './connection.ts';
import type { SessionError } from './events.ts';
import { RETRYABLE, Retry } from './retry.ts';
import { ShownFace } from './shown-face.ts';
import { type SessionStats, StatsReader } from './stats.ts';
import { WhepConnection } from './whep.ts';

/** Options of a viewer. */
export interface ViewerOptions {
  /** From `POST /sessions`, by way of your own server. */
  readonly viewerUrl: string | URL;
  /** Of the viewer; default: the one in the URL. */
  readonly token?: string;
  /** Default: those that the server names. */
  readonly iceServers?: RTCIceServer[];
  /** 'relay' forces TURN. */
  readonly iceTransportPolicy?: RTCIceTransportPolicy;
  /** Preferred video codec; default: the browser's own order. */
  readonly codec?: Codec;
  /** Shows the face: see `attach`. */
  readonly video?: HTMLVideoElement;
  /** Connect again when the connection is lost; default: true. */
  readonly reconnect?: boolean;
  /** For how long, in seconds: that of `POST /sessions`; default: 60. */
  readonly graceSeconds?: number;
  /** Ends it, also while it is being set up. */
  readonly signal?: AbortSignal;
}

/** What a viewer does. */
export type ViewerState = 'connecting' | 'connected' | 'reconnecting' | 'ended';

/** The details of a viewer's events by their names. */
export interface ViewerEvents {
  /** Media flows. Again after each reconnection. */
  started: null;
  state: ViewerState;
  /** The connection was lost; the next attempt begins in so many milliseconds. */
  reconnecting: {
    readonly error: SessionError;
    readonly attempt: number;
    readonly delayMs: number;
  };
  /** The browser allows no sound before the user does something on the page. */
  autoplay: { readonly muted: boolean };
  /**
   * The last event. `reason` is `closed` (by this side), `over` (the session), `taken_over` (it is
   * watched elsewhere), or `error`.
   */
  end: { readonly reason: string; readonly error: SessionError | null };
}

/** A viewer by WHEP. Its events are in `ViewerEvents`. */
export class Viewer extends ShownFace<ViewerEvents> {
  readonly #options: ViewerOptions;
  readonly #stats = new StatsReader();
  readonly #retry: Retry;
  #connection: WhepConnection;
  #hasStarted = false;

  constructor(options: ViewerOptions) {
    super(options);
    this.#options = options;
    this.#retry = new Retry((options.graceSeconds ?? 60) * 1000);
    this.#connection = this.#connect();
    this.closeWith(options.signal);
  }

  get peer(): RTCPeerConnection {
    return this.#connection.peer;
  }

  /** Figures of the connection, since the last call where they are rates. */
  async stats(): Promise<SessionStats> {
    return { ...(await this.#stats.read(this.peer)), socketRoundTripMs: null };
  }

  /** Stops watching. The session waits for a viewer, for its grace time. */
  close(): void {
    this.#connection.close();
    this.#end('closed', null);
  }

  #connect(): WhepConnection {
    const { viewerUrl, token, iceServers, iceTransportPolicy = 'all', codec } = this.#options;
    return new WhepConnection({
      viewerUrl,
      token,
      iceServers,
      iceTransportPolicy,
      codec,
      onTrack: (track) => this.playback.show(track),
      onConnected: () => {
        this.#hasStarted = true;
        this.#retry.succeeded();
        this.become('connected');
        this.emit('started', null);
      },
      onRestart: () => this.become('reconnecting'),
      onEnd: (error) => this.#lost(error),
    });
  }

  #lost(error: SessionError): void {
    const { reconnect = true } = this.#options;
    if (error.code === 'VIEWER_REPLACED') {
      this.#end('taken_over', null);
      return;
    }
    if (error.code === 'NOT_FOUND' && this.#hasStarted) {
      this.#end('over', null);
      return;
    }
    const next =
      reconnect && this.#hasStarted && RETRYABLE.includes(error.code)
        ? this.#retry.next(() => {
            this.#connection = this.#connect();
          })
        : undefined;
    if (next === undefined) {
      this.#end('error', error);
    } else {
      this.become('reconnecting');
      this.emit('reconnecting', { error, ...next });
    }
  }

  #end(reason: string, error: SessionError | null): void {
    this.#retry.close();
    this.ended(reason, error);
  }
}

/** Watches a session, and resolves when media flows. @throws SessionError */
export const watch = async (options: ViewerOptions): Promise<Viewer> =>
  await new Viewer(options).started();
