// The types of the native addon (`native/`), and the addon itself.
import { createRequire } from 'node:module';

/** Codec settings that do not change during a session. Bitrates in kbit/s. */
export interface VideoEncoderOptions {
  readonly codec: 'vp8' | 'h264';
  readonly width: number;
  readonly height: number;
  readonly fps: number;
  readonly bitrateKbps: number;
}

/**
 * A video encoder without delay. Belongs to the thread that made it. The codec is set up with the
 * first picture.
 */
export interface VideoEncoder {
  /**
   * Sets up the codec and codes the first picture as a key frame, 10 to 25 ms in all, on a thread
   * of libuv's pool: the calling thread only copies the picture. Until it settles, everything but
   * `close` throws.
   * @returns the coded frame
   * @throws Error when something was coded before; rejects with the codec's message
   */
  prepare(picture: Uint8Array): Promise<Uint8Array>;
  /**
   * Encodes one I420 picture (`i420Bytes(width, height)` bytes) into `out`. `dirty` has one byte
   * per macroblock: 1 where it may differ from the last picture. The encoder skips the others. VP8
   * takes BLOCK_SHIFTED as well, with `motion`: such a block is predicted and its pixels are not read.
   * `motion` has two numbers for each: where what it shows was in the last picture, right and below
   * of where it is now, in quarters of a pixel. VP8 searches motion if it is not told; H.264 does
   * always.
   * @returns bytes written, with KEY_FRAME_BIT for a key frame; 0 when rate control dropped the
   *   frame
   * @throws TypeError for wrong sizes, RangeError when `out` is too small, Error with the codec's
   *   message otherwise
   */
  encode(
    picture: Uint8Array,
    out: Uint8Array,
    forceKey: boolean,
    dirty: Uint8Array | null,
    motion?: Int16Array,
  ): number;
  setBitrate(kbps: number): void;
  /** Frees the codec. Idempotent; `encode` throws afterwards. */
  close(): void;
}

/** Flag in the result of `VideoEncoder.encode`. */
export const KEY_FRAME_BIT = 0x4000_0000;

/** Settings of an Opus encoder. */
export interface OpusEncoderOptions {
  readonly sampleRate: number;
  readonly channels: 1 | 2;
  readonly bitrate: number; // bit/s
  readonly complexity?: number; // 0..10, default 5
  readonly inbandFec?: boolean;
}

/** libopus, for speech. */
export interface OpusEncoder {
  /** Encodes one frame (2.5 to 60 ms of interleaved s16). @returns bytes written to `out`. */
  encode(pcm: Int16Array, out: Uint8Array): number;
  setBitrate(bitrate: number): void;
  setPacketLoss(percent: number): void;
  close(): void;
}

/** libopus. */
export interface OpusDecoder {
  /**
   * Decodes `packet`. For null, conceals a lost packet of `out.length / channels` samples. With
   * `recoverPrevious`, `packet` follows a lost one, and `out`, of the lost one's length, is filled
   * from its in-band redundancy; decode the packet itself next.
   * @returns samples per channel
   * @throws Error for a corrupt packet
   */
  decode(packet: Uint8Array | null, out: Int16Array, recoverPrevious?: boolean): number;
  close(): void;
}

/** The Speex resampler. */
export interface Resampler {
  /**
   * Takes all of `input` (interleaved s16) and writes what is ready. The output is in phase with
   * the input; its end waits for the second half of the filter (1.5 ms at 16 kHz and medium
   * quality). `out` must hold ceil(n * outputRate / inputRate) samples per channel.
   * @returns samples per channel written
   */
  process(input: Int16Array, out: Int16Array): number;
  reset(): void;
  close(): void;
}

/**
 * Log-mel features of the speech model, with a causal level normaliser. One per session. Training
 * uses the same C++.
 */
export interface MelFrontEnd {
  /**
   * Takes the speech samples of one video frame (533 or 534 at 16 kHz) and writes
   * FEATURES_PER_FRAME x MEL_BANDS values from `out[offset]` on. Windows reach back into earlier
   * samples only.
   */
  step(pcm: Int16Array, sampleCount: number, out: Float32Array, offset: number): void;
  reset(): void;
}

/**
 * A parsed face asset: immutable, shared by all renderers of a thread. Keeps the bytes and does not
 * copy them.
 */
export interface FaceAsset {
  readonly width: number;
  readonly height: number;
  /**
   * Derives what drawing needs on a thread of libuv's pool: 4 ms, the first time 20. No renderer
   * can be made until it settles.
   * @throws Error while that is going on; rejects when the landmarks are not those of a face
   */
  prepare(): Promise<void>;
}

/** Draws one session's face. */
export interface FaceRenderer {
  /**
   * Draws one frame into `picture` and marks the changed macroblocks in `dirty`. `picture` is I420
   * and must be the same buffer every time: only what changed is drawn. `articulation` has
   * ARTICULATION_SIZE channels, `pose` has POSE_SIZE. `motion` gets two numbers for each macroblock
   * that changed: where what it shows was in the picture before, right and below of where it is now,
   * in quarters of a pixel. With `mayShift` a block that moved as a whole is not drawn in most frames,
   * but BLOCK_SHIFTED.
   */
  render(
    articulation: Float32Array,
    pose: Float32Array,
    picture: Uint8Array,
    dirty: Uint8Array,
    motion?: Int16Array,
    mayShift?: boolean,
  ): void;
  /** `emotion` is an index into EMOTIONS, `strength` 0 to 1. Takes effect over a few frames. */
  setEmotion(emotion: number, strength: number): void;
  /** The next `render` draws everything. */
  invalidate(): void;
}

/**
 * Filters a plane of width * height values, rows without padding. It may be empty. `out` is other
 * memory of the same size; `reach` is in pixels.
 */
export type PlaneFilter = (
  source: Float32Array,
  width: number,
  height: number,
  reach: number,
  out: Float32Array,
) => void;

/** Everything that JavaScript can call in C++. */
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
  /**
   * With `deferred`, `prepare` or the first renderer derives what drawing needs, and reports what
   * is wrong.
   */
  readonly FaceAsset: new (bytes: Uint8Array, deferred?: boolean) => FaceAsset;
  readonly FaceRenderer: new (asset: FaceAsset) => FaceRenderer;
  /**
   * Rows have no padding. `rgba` has width * height * 4 bytes; alpha is ignored. BT.601 limited
   * range, as WebRTC receivers assume.
   */
  rgbaToI420(rgba: Uint8Array, width: number, height: number, i420: Uint8Array): void;
  i420ToRgba(i420: Uint8Array, width: number, height: number, rgba: Uint8Array): void;
  /** Blurs a plane. `sigma` in pixels; edge pixels are repeated outside of the plane. */
  readonly gaussianBlur: PlaneFilter;
  /**
   * The largest value within a radius of each pixel: a square window, as far as it is in the plane. No
   * value may be negative.
   */
  readonly largestWithin: PlaneFilter;
  readonly smallestWithin: PlaneFilter;
  /**
   * Keeps the calling thread, and those that it starts later, on these CPUs (sched_setaffinity).
   * @throws Error with errno's text
   */
  pinThread(cpus: Int32Array): void;
  /** CPUs that this process may run on, by cgroup and affinity mask. */
  allowedCpus(): number[];
  /**
   * Runs the calling thread before every ordinary one on the same CPU (SCHED_RR).
   * @throws Error with errno's text: only root, or a limit on rtprio, allows it
   */
  makeThreadRealtime(): void;
  setThreadName(name: string): void;
  threadId(): number;
  /** CPU milliseconds of the calling thread (CLOCK_THREAD_CPUTIME_ID). */
  threadCpuMs(): number;
  /**
   * Locks a whole file that is open for writing, for this descriptor alone (F_OFD_SETLK), until it
   * is closed or the process ends. @returns false when another descriptor has it locked
   * @throws Error with errno's text
   */
  lockFile(descriptor: number): boolean;
  /** Whether another descriptor of any process has the file locked. Locks nothing. */
  isFileLocked(descriptor: number): boolean;
  /**
   * Bytes that malloc has given out to all threads of this process and that are not freed: live
   * memory, whatever the resident size. NaN before glibc 2.33.
   */
  allocatedBytes(): number;
}

const require = createRequire(import.meta.url);

/** The addon. Loaded once per process; each thread has its own instance data. */
export const native = require('../../native/build/mouthpiece.node') as NativeAddon;
