// What the packetisers have in common: a coded frame goes in, RTP payloads come out one by one, written into the caller's buffer.
import type { VideoCodec } from '../../media/coded-frame.ts';
import { H264Packetizer } from './h264.ts';
import { Vp8Packetizer } from './vp8.ts';

export interface Packetizer {
  /** Begins a frame; `frame` must stay as it is until `next` has returned its last payload. */
  start(frame: Uint8Array, length: number, maxPayloadBytes: number): void;
  /** Writes the next payload to `out` at `offset`. @returns its bytes; 0 when the frame is finished. */
  next(out: Uint8Array, offset: number): number;
  /** True once the payload written last was the frame's last one: the packet that gets the RTP marker bit. */
  readonly isDone: boolean;
}

export const createPacketizer = (codec: VideoCodec): Packetizer =>
  codec === 'vp8' ? new Vp8Packetizer() : new H264Packetizer();
