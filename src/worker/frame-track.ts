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
}

/** `draw`, `encode` and `send` each frame in this order; the fields tell what they did last. */
export class FrameTrack {
  readonly renderer: Renderer;
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
  #isClosed = false;

  constructor({ renderer, audioRenderer, freezesInSilence }: FrameTrackOptions) {
    this.renderer = renderer;
    this.audioRenderer = audioRenderer;
    this.#freezesInSilence = freezesInSilence;
  }

  /**
   * Sets up the encoder and codes the first picture on another thread, while ICE and DTLS connect.
   * On this thread it would make a frame of every other session 10 to 25 ms late. Takes the place of
   * an encoder of another codec.
   * @param output shared by the sessions of this thread: see `VideoTrack`
   */
  async open(codec: VideoCodec, bitrateKbps: number, output: Uint8Array): Promise<void> {
    const video = new VideoTrack(codec, bitrateKbps, output);
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
      this.renderer.draw(frame, this.articulation.values, isSpeaking);
    }
  }

  encode(): void {
    const { picture, dirty, motion } = this.renderer;
    this.isCoded = this.isPrepared || this.video!.encode(picture, dirty, motion);
  }

  send(peer: Peer, mediaMs: number, nowMs: number): void {
    const { data, length, isKey } = this.video!;
    this.packets = this.isCoded ? peer.sendVideo(data, length, isKey, mediaMs, nowMs) : 0;
  }

  close(): void {
    this.#isClosed = true;
    this.video?.close();
    this.audioRenderer?.close();
  }
}
