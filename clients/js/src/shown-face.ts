// What a session and a viewer have in common: a state, and a face that is shown.
import { Emitter, SessionError, nextStart } from './events.ts';
import { Playback } from './playback.ts';

/** Events that both have. */
interface ShownEvents {
  started: unknown;
  state: string;
  autoplay: { readonly muted: boolean };
  end: { readonly reason: string; readonly error: SessionError | null };
}

/** What both are made from. */
interface ShownOptions {
  readonly video?: HTMLVideoElement;
}

/** A face that is shown, whatever its present connection. */
export abstract class ShownFace<Events extends ShownEvents> extends Emitter<Events> {
  state: Events['state'] = 'connecting';
  protected readonly playback: Playback;
  /** What ended it. */
  #error: SessionError | null = null;

  constructor({ video }: ShownOptions) {
    super();
    this.playback = new Playback({
      video,
      onAutoplay: (muted) => this.emit('autoplay', { muted }),
    });
  }

  /** The present peer connection. */
  abstract get peer(): RTCPeerConnection;

  /** Ends it. */
  abstract close(): void;

  /** Audio and video of the face. It stays the same when the connection is another. */
  get stream(): MediaStream {
    return this.playback.stream;
  }

  /** Resolves when media flows. @throws SessionError that ended it before */
  async started(): Promise<this> {
    while (this.state === 'connecting' || this.state === 'reconnecting') {
      await nextStart(this);
    }
    if (this.state === 'ended') {
      throw this.#error ?? new SessionError('CLOSED');
    }
    return this;
  }

  /**
   * Shows the face in a video element. Where the browser allows no sound yet, it plays muted, tells
   * `autoplay`, and turns the sound on at the next click or key of the user.
   */
  attach(video: HTMLVideoElement): void {
    this.playback.attach(video);
  }

  /** Turns on the sound of the attached video. Call it from a click. */
  unmute(): void {
    this.playback.unmute();
  }

  /**
   * Plays the sound on another device.
   * @param deviceId of `listDevices`; '' is the default one
   * @throws DOMException when there is none, or the user forbids it
   * @throws Error where the browser cannot choose
   */
  async setSpeaker(deviceId: string): Promise<void> {
    await this.playback.setSpeaker(deviceId);
  }

  /** Ends when the option `signal` says so. For the end of a constructor. */
  protected closeWith(signal: AbortSignal | undefined): void {
    signal?.addEventListener('abort', () => this.close(), { once: true });
    if (signal?.aborted) {
      this.close();
    }
  }

  protected become(state: Events['state']): void {
    if (this.state !== state && this.state !== 'ended') {
      this.state = state;
      this.emit('state', state);
    }
  }

  /** Tells the end, once. */
  protected ended(reason: string, error: SessionError | null): void {
    if (this.state !== 'ended') {
      this.#error = error;
      this.playback.close();
      this.become('ended');
      this.emit('end', { reason, error });
    }
  }
}
