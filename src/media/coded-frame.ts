// The video codecs of encoders and peers.

/** As named in metrics and statistics. */
export type VideoCodec = 'vp8' | 'h264';
