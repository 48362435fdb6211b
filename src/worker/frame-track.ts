// The picture of one session: draws, codes and sends one frame at a time.
import type { VideoCodec } from '../media/coded-frame.ts';
import { VideoTrack } from '../pipeline/encode/video-track.ts';
import { ArticulationTrack } from '../pipeline/features/articulation-track.ts';
import type { AudioDrivenRenderer, Renderer } from '../pipeline/render/renderer.ts';
import type { Peer } from '../webrtc/peer.ts';

/** How the frames of one session are drawn. */
export interface FrameTrackOptions {
  readonly renderer: Renderer;
  /** `renderer`, when it takes the speech itself: then the articulation model is not run. */
  readonly audioRenderer: AudioDrivenRenderer | undefined;
  /** While nobody speaks, the picture stays as it is. */
  readonly freezesInSilence: boolean;
  /**
   * Each coded frame waits until the next one is due, 33 ms. In a room of somebody else's LiveKit
   * server viewers show the picture 34 to 85 ms before its sound (measured): the server passes both
   * on without a common clock, and takes no playout delay of a publisher.
   */
  readonly delaysFrames?: boolean;
}

/** A coded frame that waits. Its buffer is used again. */
interface WaitingFrame {
  data: Uint8Array;
  /** 0: none waits. */
  length: number;
  isKey: boolean;
  mediaMs: number;
}

/** `draw`, `encode` and `send` each frame in this order; the fields tell what they did last. */
export class FrameTrack {
  #renderer: Renderer;
  readonly audioRenderer: AudioDrivenRenderer | undefined;
  readonly articulation = new ArticulationTrack();
  /** Undefined until `open` has settled. */
  video: VideoTrack | undefined = undefined;
  /** The frame is the one that `open` coded: the speech of this moment shows in the next one. */
  isPrepared = false;
  /** False when rate control dropped the frame. */
  isCoded = false;
  /** RTP packets of the frame. */
  packets = 0;

  readonly #freezesInSilence: boolean;
  readonly #delaysFrames: boolean;
  readonly #waiting: WaitingFrame = {
    data: new Uint8Array(0),
    length: 0,
    isKey: false,
    mediaMs: 0,
  };
  #isClosed = false;

  constructor({ renderer, audioRenderer, freezesInSilence, delaysFrames }: FrameTrackOptions) {
    this.#renderer = renderer;
    this.audioRenderer = audioRenderer;
    this.#freezesInSilence = freezesInSilence;
    this.#delaysFrames = delaysFrames ?? false;
  }

  get renderer(): Renderer {
    return this.#renderer;
  }

  /** Another face goes on, of the same size, from the next frame on. Not with an `audioRenderer`. */
  replaceRenderer(renderer: Renderer): void {
    this.#renderer = renderer;
    this.video?.requestKeyFrame();
  }

  /**
   * Sets up the encoder and codes the first picture on another thread, while ICE and DTLS connect.
   * On this thread it would make a frame of every other session 10 to 25 ms late. Takes the place of
   * an encoder of another codec.
   * @param output shared by the sessions of this thread: see `VideoTrack`
   */
  async open(codec: VideoCodec, bitrateKbps: number, output: Uint8Array): Promise<void> {
    const video = new VideoTrack(codec, bitrateKbps, output, this.renderer.size);
    if (this.video === undefined) {
      this.renderer.draw(0, this.articulation.values, false);
    }
    await video.prepare(this.renderer.picture);
    if (this.#isClosed) {
      video.close();
    } else {
      this.video?.close();
      this.video = video;
    }
  }

  /**
   * @param frame number of the frame; a fraction for a picture between two
   * @param articulation from the model; undefined while the speech stream rests
   */
  draw(frame: number, articulation: Float32Array | undefined, isSpeaking: boolean): void {
    this.articulation.update(articulation);
    this.isPrepared = this.video!.takePrepared();
    if (this.isPrepared || (this.#freezesInSilence && articulation === undefined)) {
      this.renderer.hold();
    } else {
      this.renderer.mayShift = this.video!.takesShifts;
      this.renderer.draw(frame, this.articulation.values, isSpeaking);
    }
  }

  encode(): void {
    const { picture, dirty, motion } = this.renderer;
    this.isCoded = this.isPrepared || this.video!.encode(picture, dirty, motion);
  }

  send(peer: Peer, mediaMs: number, nowMs: number): void {
    const { data, length, isKey } = this.video!;
    if (!this.#delaysFrames) {
      this.packets = this.isCoded ? peer.sendVideo(data, length, isKey, mediaMs, nowMs) : 0;
      return;
    }
    const waiting = this.#waiting;
    this.packets =
      waiting.length === 0
        ? 0
        : peer.sendVideo(waiting.data, waiting.length, waiting.isKey, waiting.mediaMs, nowMs);
    this.#wait(this.isCoded ? length : 0, mediaMs);
  }

  /** A copy: the buffer of coded frames is shared by the sessions of this thread. */
  #wait(length: number, mediaMs: number): void {
    const { data, isKey } = this.video!;
    const waiting = this.#waiting;
    if (waiting.data.length < length) {
      waiting.data = new Uint8Array(2 * length);
    }
    waiting.data.set(data.subarray(0, length));
    waiting.length = length;
    waiting.isKey = isKey;
    waiting.mediaMs = mediaMs;
  }

  /** The peer is gone: what waits was meant for it. */
  forgetPeer(): void {
    this.#waiting.length = 0;
  }

  close(): void {
    this.#isClosed = true;
    this.video?.close();
    this.audioRenderer?.close();
  }
}
