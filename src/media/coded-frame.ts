// The codecs that an encoder and a peer can agree on.

export type VideoCodec = 'vp8' | 'h264';
