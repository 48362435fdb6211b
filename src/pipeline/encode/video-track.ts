// A session's video encoder: key frames on demand, the bitrate that the path allows, and one output buffer for the whole thread.
import type { VideoCodec } from '../../media/coded-frame.ts';
import { PICTURE_SIZE, i420Bytes } from '../../media/picture.ts';
import { FPS } from '../../media/timeline.ts';
import { KEY_FRAME_BIT, type VideoEncoder, native } from '../../native/addon.ts';

/** A frame can not be larger than the picture it codes; rate control keeps it some hundred times smaller. */
const output = new Uint8Array(i420Bytes(PICTURE_SIZE, PICTURE_SIZE) + 65_536);

/** Changes below this share are not worth telling the encoder. */
const BITRATE_STEP = 0.05;

export class VideoTrack {
  readonly codec: VideoCodec;
  bitrateKbps: number;
  actualKbps = 0;
  /** The frame coded last; valid until any session of this thread encodes again. */
  readonly data = output;
  length = 0;
  isKey = false;
  /** Why the next frame must be a key frame, if it must. */
  keyCause: 'start' | 'request' | undefined = 'start';

  readonly #encoder: VideoEncoder;
  #prepared: Uint8Array | undefined = undefined;

  constructor(codec: VideoCodec, bitrateKbps: number) {
    this.codec = codec;
    this.bitrateKbps = bitrateKbps;
    this.#encoder = new native.VideoEncoder({
      codec,
      width: PICTURE_SIZE,
      height: PICTURE_SIZE,
      fps: FPS,
      bitrateKbps,
    });
  }

  /**
   * Codes the first picture, which `takePrepared` then gives, off this thread: see `VideoEncoder.prepare`. Nothing else may be coded before.
   * @throws Error with the codec's own words
   */
  async prepare(picture: Uint8Array): Promise<void> {
    this.#prepared = await this.#encoder.prepare(picture);
  }

  /** Puts the frame that was prepared, if any, into `data`, as `encode` would have. @returns false when there is none, or it was taken */
  takePrepared(): boolean {
    if (this.#prepared === undefined) {
      return false;
    }
    output.set(this.#prepared);
    this.isKey = true;
    this.#count(this.#prepared.length);
    this.#prepared = undefined;
    return true;
  }

  requestKeyFrame(): void {
    this.keyCause ??= 'request';
  }

  setBitrate(kbps: number): void {
    if (Math.abs(kbps - this.bitrateKbps) < this.bitrateKbps * BITRATE_STEP) {
      return;
    }
    this.bitrateKbps = kbps;
    this.#encoder.setBitrate(kbps);
  }

  /** Codes `picture` into `data`. @returns false when rate control dropped the frame. */
  encode(picture: Uint8Array, dirty: Uint8Array): boolean {
    const result = this.#encoder.encode(picture, output, this.keyCause !== undefined, dirty);
    this.isKey = (result & KEY_FRAME_BIT) !== 0;
    this.#count(result & ~KEY_FRAME_BIT);
    return this.length > 0;
  }

  #count(bytes: number): void {
    this.length = bytes;
    this.actualKbps += ((bytes * 8 * FPS) / 1000 - this.actualKbps) / FPS;
  }

  close(): void {
    this.#encoder.close();
  }
}
