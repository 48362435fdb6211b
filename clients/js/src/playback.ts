// The picture and the sound of a face: one stream for all connections, shown in a video element.

/** What is told to the owner. */
export interface PlaybackOptions {
  readonly video: HTMLVideoElement | undefined;
  /** The browser allows no sound yet; or again. */
  readonly onAutoplay: (muted: boolean) => void;
}

/** The stream, and the element that plays it. */
export class Playback {
  /** It stays the same when the connection does not. */
  readonly stream = new MediaStream();
  readonly #onAutoplay: (muted: boolean) => void;
  readonly #over = new AbortController();
  #video: HTMLVideoElement | undefined = undefined;
  #speakerId = '';

  constructor({ video, onAutoplay }: PlaybackOptions) {
    this.#onAutoplay = onAutoplay;
    if (video) {
      this.attach(video);
    }
  }

  /** Puts a track of a new connection in the place of the old one. */
  show(track: MediaStreamTrack): void {
    for (const old of this.stream.getTracks()) {
      if (old.kind === track.kind) {
        this.stream.removeTrack(old);
      }
    }
    this.stream.addTrack(track);
  }

  /**
   * Shows the face in a video element. Where the browser allows no sound yet, it plays muted, tells
   * so, and turns the sound on at the next click or key of the user.
   */
  attach(video: HTMLVideoElement): void {
    this.#video = video;
    video.playsInline = true;
    video.srcObject = this.stream;
    if (this.#speakerId !== '') {
      this.setSpeaker(this.#speakerId).catch(() => {});
    }
    video.play().catch((error: unknown) => {
      if ((error as DOMException).name !== 'NotAllowedError' || video.muted) {
        return;
      }
      video.muted = true;
      void video.play().catch(() => {});
      this.#onAutoplay(true);
      for (const type of ['pointerdown', 'keydown']) {
        document.addEventListener(type, () => this.unmute(), {
          once: true,
          signal: this.#over.signal,
        });
      }
    });
  }

  /** Turns on the sound of the element. Call it from a click. */
  unmute(): void {
    if (this.#video?.muted) {
      this.#video.muted = false;
      void this.#video.play().catch(() => {});
      this.#onAutoplay(false);
    }
  }

  /**
   * Plays the sound on another device.
   * @param deviceId of an `audiooutput`; '' is the default one
   * @throws DOMException when there is none, or the user forbids it
   * @throws Error where the browser cannot choose
   */
  async setSpeaker(deviceId: string): Promise<void> {
    this.#speakerId = deviceId;
    if (this.#video) {
      if (!('setSinkId' in this.#video)) {
        throw new Error('This browser cannot choose where sound is played.');
      }
      await this.#video.setSinkId(deviceId);
    }
  }

  close(): void {
    this.#over.abort();
  }
}
