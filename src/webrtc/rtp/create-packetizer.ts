// Selects the packetizer of a video codec.
import type { VideoCodec } from '../../media/coded-frame.ts';
import { H264Packetizer } from './h264.ts';
import type { Packetizer } from './packetizer.ts';
import { Vp8Packetizer } from './vp8.ts';

/** A new packetizer for one video stream. */
export const createPacketizer = (codec: VideoCodec): Packetizer =>
  codec === 'vp8' ? new Vp8Packetizer() : new H264Packetizer();
