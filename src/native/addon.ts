// The typed door to the native addon (`native/`): everything that JavaScript may ask of C++.
import { createRequire } from 'node:module';

/** Codec settings that do not change during a session. Bitrates in kbit/s. */
export interface VideoEncoderOptions {
  readonly codec: 'vp8' | 'h264';
  readonly width: number;
  readonly height: number;
  readonly fps: number;
  readonly bitrateKbps: number;
  /** libvpx cpu-used (negative: real-time speed); ignored by OpenH264. Default -12. */
  readonly speed?: number;
}

/** One encoder with zero frames of delay. Not thread-safe: belongs to the thread that made it. The codec is set up with the first picture. */
export interface VideoEncoder {
  /**
   * Sets up the codec and codes the first picture as a key frame, 10 to 25 ms in all, on a thread of libuv's pool: the calling thread loses only the time that a copy
   * of the picture takes. Until it settles everything but `close` throws.
   * @returns the coded frame
   * @throws Error when something was coded before; rejects with the codec's own words
   */
  prepare(picture: Uint8Array): Promise<Uint8Array>;
  /**
   * Encodes one I420 picture (`i420Bytes(width, height)` bytes) into `out`.
   * `dirty`, if given, is one byte per macroblock (1: may have changed since the last picture) and lets the encoder skip the rest.
   * @returns `KEY_FRAME_BIT | bytes` for a key frame, else bytes; 0 when rate control dropped the frame.
   * @throws TypeError on wrong sizes, RangeError when `out` is too small, Error with the codec's own words otherwise.
   */
  encode(picture: Uint8Array, out: Uint8Array, forceKey: boolean, dirty: Uint8Array | null): number;
  setBitrate(kbps: number): void;
  /** Frees the codec now rather than when collected. Idempotent; `encode` afterwards throws. */
  close(): void;
}

export const KEY_FRAME_BIT = 0x4000_0000;

export interface OpusEncoderOptions {
  readonly sampleRate: number;
  readonly channels: 1 | 2;
  readonly bitrate: number; // bit/s
  readonly complexity?: number; // 0..10, default 5
  readonly inbandFec?: boolean;
}

export interface OpusEncoder {
  /** Encodes one frame (2.5 to 60 ms of interleaved s16). @returns bytes written to `out`. */
  encode(pcm: Int16Array, out: Uint8Array): number;
  setBitrate(bitrate: number): void;
  setPacketLoss(percent: number): void;
  close(): void;
}

export interface OpusDecoder {
  /**
   * Decodes `packet`, or conceals a lost one of `out.length / channels` samples when it is null.
   * With `recoverPrevious`, `packet` follows a lost one, and `out` (of the lost one's length) is filled from its in-band
   * redundancy; decode the packet itself next.
   * @returns samples per channel. @throws on a corrupt packet.
   */
  decode(packet: Uint8Array | null, out: Int16Array, recoverPrevious?: boolean): number;
  close(): void;
}

export interface Resampler {
  /**
   * Takes all of `input` (interleaved s16), writes what is ready. Output is in phase with the input; the end of it waits for the filter's
   * second half (1.5 ms at 16 kHz and medium quality). `out` must hold ceil(n * outRate / inRate) per channel.
   * @returns samples per channel written
   */
  process(input: Int16Array, out: Int16Array): number;
  reset(): void;
  close(): void;
}

/** Log-mel front end of the speech model, with its causal level normaliser. One per session; the same C++ that training uses. */
export interface MelFrontEnd {
  /**
   * Consumes the speech samples of one video frame (533 or 534 at 16 kHz) and writes FEATURES_PER_FRAME x MEL_BANDS float32
   * at `out[offset]`. Windows reach back into earlier samples only.
   */
  step(pcm: Int16Array, sampleCount: number, out: Float32Array, offset: number): void;
  reset(): void;
}

/** A face asset parsed and ready to draw: immutable, shared by all renderers of a thread. The bytes are kept, not copied. */
export interface FaceAsset {
  readonly width: number;
  readonly height: number;
  /**
   * Derives what drawing needs, 4 ms (the first time 20), on a thread of libuv's pool. Until it settles no renderer can be made.
   * @throws Error when that is going on; rejects when the landmarks make no face
   */
  prepare(): Promise<void>;
}

export interface FaceRenderer {
  /**
   * Draws one frame into `picture` (I420, the same buffer every time: only what changed is redrawn) and marks the changed
   * macroblocks in `dirty`. `articulation` has ARTICULATION_SIZE channels, `pose` POSE_SIZE.
   */
  render(
    articulation: Float32Array,
    pose: Float32Array,
    picture: Uint8Array,
    dirty: Uint8Array,
  ): void;
  /** `emotion` indexes EMOTIONS; `strength` 0..1. Takes effect smoothly over a few frames. */
  setEmotion(emotion: number, strength: number): void;
  /** Forget what `picture` holds: the next render draws everything. */
  invalidate(): void;
}

export interface NativeAddon {
  readonly VideoEncoder: new (options: VideoEncoderOptions) => VideoEncoder;
  readonly OpusEncoder: new (options: OpusEncoderOptions) => OpusEncoder;
  readonly OpusDecoder: new (options: { sampleRate: number; channels: 1 | 2 }) => OpusDecoder;
  readonly Resampler: new (options: {
    inputRate: number;
    outputRate: number;
    channels: number;
    quality?: 'low' | 'medium' | 'high';
  }) => Resampler;
  readonly MelFrontEnd: new () => MelFrontEnd;
  /** With `deferred` the first renderer, or `prepare`, derives what drawing needs, and finds what is wrong with it. */
  readonly FaceAsset: new (bytes: Uint8Array, deferred?: boolean) => FaceAsset;
  readonly FaceRenderer: new (asset: FaceAsset) => FaceRenderer;
  /** Row strides are tight. `rgba` is width*height*4 bytes, alpha ignored. BT.601 limited range, as WebRTC receivers assume. */
  rgbaToI420(rgba: Uint8Array, width: number, height: number, i420: Uint8Array): void;
  i420ToRgba(i420: Uint8Array, width: number, height: number, rgba: Uint8Array): void;
  /** Keeps the calling thread, and those it starts from now on, on these CPUs (sched_setaffinity). @throws with errno's text. */
  pinThread(cpus: Int32Array): void;
  /** CPUs that this process may run on (cgroup and affinity mask honoured). */
  allowedCpus(): number[];
  /** The calling thread runs before every ordinary one that wants the same CPU (SCHED_RR). @throws with errno's text: only root, or a limit on rtprio, may. */
  makeThreadRealtime(): void;
  setThreadName(name: string): void;
  threadId(): number;
  /** CPU milliseconds of the calling thread (CLOCK_THREAD_CPUTIME_ID). */
  threadCpuMs(): number;
  /** Bytes that malloc has given out in this process and has not been given back, of all threads: what is alive, however much of the rest the system still counts. NaN without glibc 2.33. */
  allocatedBytes(): number;
}

const require = createRequire(import.meta.url);

/** Loaded once per process; every worker thread gets its own instance data. */
export const native = require('../../native/build/mouthpiece.node') as NativeAddon;
