// A session's video encoder: key frames on request, and the bitrate that the path allows.
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { PictureSize } from '../../media/face-look.ts';
import { i420Bytes, LARGEST_PICTURE, PICTURE_SIZE } from '../../media/picture.ts';
import { FPS } from '../../media/timeline.ts';
import { KEY_FRAME_BIT, type VideoEncoder, native } from '../../native/addon.ts';

/** Smaller changes of the bitrate are not passed on to the encoder. */
const BITRATE_STEP = 0.05;

/**
 * A buffer for any coded frame: a frame is never larger than its picture and some headers. Rate
 * control keeps it a hundred times smaller, so the sessions of a thread share one buffer.
 */
export const newCodedFrameBuffer = (): Uint8Array =>
  new Uint8Array(i420Bytes(LARGEST_PICTURE, 1) + 65_536);

/**
 * The video encoder of one session, at FPS. Codes a key frame at the start and on request, and
 * follows the bitrate in kbit/s that congestion control allows.
 */
export class VideoTrack {
  readonly codec: VideoCodec;
  /** The coded frame: `length` bytes, valid until somebody else codes into the same buffer. */
  readonly data: Uint8Array;
  /** 0 when rate control dropped the frame. */
  length = 0;
  isKey = false;
  /** Why the last key frame was one. `other`: the encoder's own choice. */
  keyFrameCause: 'start' | 'request' | 'other' = 'start';
  /** Target for the encoder. */
  bitrateKbps: number;
  /** What it produces, smoothed over a second. */
  actualKbps = 0;

  readonly #encoder: VideoEncoder;
  /** Why the next frame must be a key frame, if it must. */
  #keyFrameDue: 'start' | 'request' | undefined = 'start';
  #prepared: Uint8Array | undefined = undefined;

  /** @param data from `newCodedFrameBuffer`; by default its own */
  constructor(
    codec: VideoCodec,
    bitrateKbps: number,
    data = newCodedFrameBuffer(),
    { width, height }: PictureSize = { width: PICTURE_SIZE, height: PICTURE_SIZE },
  ) {
    this.codec = codec;
    this.bitrateKbps = bitrateKbps;
    this.data = data;
    this.#encoder = new native.VideoEncoder({
      codec,
      width,
      height,
      fps: FPS,
      bitrateKbps,
    });
  }

  /**
   * Codes the first picture on another thread (see `VideoEncoder.prepare`); `takePrepared` then
   * gives it. Nothing else may be coded before it settles.
   * @throws Error with the codec's message
   */
  async prepare(picture: Uint8Array): Promise<void> {
    this.#prepared = await this.#encoder.prepare(picture);
  }

  /**
   * Puts the prepared frame into `data`.
   * @returns false when there is none, or it was taken before
   */
  takePrepared(): boolean {
    if (this.#prepared === undefined) {
      return false;
    }
    this.data.set(this.#prepared);
    this.#coded(this.#prepared.length, true);
    this.#prepared = undefined;
    return true;
  }

  requestKeyFrame(): void {
    this.#keyFrameDue ??= 'request';
  }

  setBitrate(kbps: number): void {
    if (Math.abs(kbps - this.bitrateKbps) < this.bitrateKbps * BITRATE_STEP) {
      return;
    }
    this.bitrateKbps = kbps;
    this.#encoder.setBitrate(kbps);
  }

  /** Whether the next frame's blocks may be BLOCK_SHIFTED: a key frame needs all of its pixels. */
  get takesShifts(): boolean {
    return this.codec === 'vp8' && this.#keyFrameDue === undefined;
  }

  /**
   * Codes `picture` into `data`.
   * @param dirty one byte per macroblock: where the picture differs from the one before (see
   * `macroblocks`); BLOCK_SHIFTED only while `takesShifts`
   * @param motion two numbers per macroblock, where the renderer knows how the picture moved (see
   * `VideoEncoder.encode`)
   * @returns false when rate control dropped the frame
   */
  encode(picture: Uint8Array, dirty: Uint8Array, motion?: Int16Array): boolean {
    const isKeyForced = this.#keyFrameDue !== undefined;
    const result = this.#encoder.encode(picture, this.data, isKeyForced, dirty, motion);
    this.#coded(result & ~KEY_FRAME_BIT, (result & KEY_FRAME_BIT) !== 0);
    return this.length > 0;
  }

  #coded(bytes: number, isKey: boolean): void {
    this.length = bytes;
    this.isKey = isKey;
    if (isKey) {
      this.keyFrameCause = this.#keyFrameDue ?? 'other';
      this.#keyFrameDue = undefined;
    }
    this.actualKbps += ((bytes * 8 * FPS) / 1000 - this.actualKbps) / FPS;
  }

  close(): void {
    this.#encoder.close();
  }
}
