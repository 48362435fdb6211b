// The only place that turns speech samples, video frames, feature steps and RTP ticks into one another.

export const SPEECH_RATE = 16_000; // Hz, PCM that clients send and features are made of
export const AUDIO_RATE = 48_000; // Hz, Opus on the wire (RFC 7587: the RTP clock is always 48 kHz)
export const VIDEO_CLOCK = 90_000; // Hz, RTP clock of VP8 (RFC 7741) and H.264 (RFC 6184)
export const FPS = 30;
export const FRAME_MS = 1000 / FPS;
export const AUDIO_PACKET_MS = 20;
export const SPEECH_PACKET_SAMPLES = (SPEECH_RATE * AUDIO_PACKET_MS) / 1000; // 320

/** Feature frames a second. Three to a video frame, so that each video frame is exactly one model step of fixed shape. */
export const FEATURE_RATE = 90;
export const FEATURES_PER_FRAME = FEATURE_RATE / FPS;
export const MEL_BANDS = 40;

/**
 * First speech sample after video frame `frame` (16 000 / 30 is no integer, so frames hold 533 or 534 samples; over any
 * three frames the sum is exact, and no error accumulates).
 */
export const speechSampleOfFrame = (frame: number): number =>
  Math.floor((frame * SPEECH_RATE) / FPS);

/** Samples that model step `step` consumes: those of the video frame of the same number. */
export const speechSamplesInStep = (step: number): number =>
  speechSampleOfFrame(step + 1) - speechSampleOfFrame(step);

/** RTP timestamp of a media time, from a random 32-bit offset (RFC 3550 section 5.1). */
export const rtpTimestamp = (mediaMs: number, clockRate: number, offset: number): number =>
  (offset + Math.round((mediaMs * clockRate) / 1000)) >>> 0;
