// Rates and conversions between speech samples, video frames, model steps and RTP timestamps. All
// conversions are here.

/** Hz: the PCM that clients send, and the input of the features. */
export const SPEECH_RATE = 16_000;
/** Hz: the RTP clock of Opus, whatever the input (RFC 7587 section 4.1). */
export const AUDIO_RATE = 48_000;
/** Hz: the RTP clock of VP8 (RFC 7741) and H.264 (RFC 6184). */
export const VIDEO_CLOCK = 90_000;
/** Video frames per second. */
export const FPS = 30;
/** Duration of a video frame. */
export const FRAME_MS = 1000 / FPS;
/** Duration of an Opus packet. */
export const AUDIO_PACKET_MS = 20;
/** Speech samples of an Opus packet: 320. */
export const SPEECH_PACKET_SAMPLES = (SPEECH_RATE * AUDIO_PACKET_MS) / 1000;

/**
 * Feature frames per second: three per video frame, so that each video frame is one model step of
 * fixed shape.
 */
export const FEATURE_RATE = 90;
/** Feature frames per video frame: 3. */
export const FEATURES_PER_FRAME = FEATURE_RATE / FPS;
/** Values of a feature frame. */
export const MEL_BANDS = 40;

/**
 * First speech sample of video frame `frame`. 16,000 / 30 is not an integer: frames have 533 or 534
 * samples, any three frames have exactly 1600, and no error accumulates.
 */
export const speechSampleOfFrame = (frame: number): number =>
  Math.floor((frame * SPEECH_RATE) / FPS);

/** Samples of model step `step`: those of the video frame with the same number. */
export const speechSamplesInStep = (step: number): number =>
  speechSampleOfFrame(step + 1) - speechSampleOfFrame(step);

/** RTP timestamp of a media time, from a random 32-bit offset (RFC 3550 section 5.1). */
export const rtpTimestamp = (mediaMs: number, clockRate: number, offset: number): number =>
  (offset + Math.round((mediaMs * clockRate) / 1000)) >>> 0;
