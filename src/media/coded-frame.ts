// What leaves an encoder and goes into packets.

export type VideoCodec = 'vp8' | 'h264';

/** A coded frame as it lies in its encoder's reused output buffer: valid until the next encode of the same session. */
export interface CodedFrame {
  readonly codec: VideoCodec;
  readonly data: Uint8Array;
  /** Bytes of `data` that are this frame; 0 when the encoder dropped it. */
  length: number;
  isKey: boolean;
}
