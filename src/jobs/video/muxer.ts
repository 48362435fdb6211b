// Muxes coded frames and sound into HLS segments (fragmented MP4), as they fill up, and into one
// MP4 file with its index in front.
import { registerAacEncoder } from '@mediabunny/aac-encoder';
import {
  AudioSample,
  AudioSampleSource,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedVideoPacketSource,
  FilePathTarget,
  Mp4OutputFormat,
  NullTarget,
  Output,
  Quality,
} from 'mediabunny';
import { AUDIO_RATE, FPS } from '../../media/timeline.ts';
import { segmentCount } from './hls.ts';

/**
 * Samples of an AAC frame. The encoder of FFmpeg has a delay of one frame, which an edit list
 * compensates (ISO 14496-12 section 8.6.6).
 */
const AAC_FRAME = 1024;
/** Bits a second, by channel count. */
const AAC_BITRATE = { 1: 96_000, 2: 160_000 } as const;

/** What to mux, and where to. */
export interface MuxerOptions {
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  readonly channels: 1 | 2;
  /**
   * Number of frames of the whole video: reserves the space of the MP4 index before the first
   * frame.
   */
  readonly frames: number;
  /** Path of the MP4 file. An existing file is overwritten. */
  readonly mp4File: string;
  /** Gets the initialisation segment, once. */
  readonly onInit: (bytes: Uint8Array) => void;
  /** Gets each media segment in order. */
  readonly onSegment: (bytes: Uint8Array) => void;
}

/** Writes both outputs of one video. */
export class Muxer {
  readonly #options: MuxerOptions;
  readonly #hls: Output;
  readonly #mp4: Output;
  readonly #hlsVideo = new EncodedVideoPacketSource('avc');
  readonly #mp4Video = new EncodedVideoPacketSource('avc');
  readonly #hlsAudio: AudioSampleSource;
  readonly #mp4Audio = new EncodedAudioPacketSource('aac');
  /** Samples per channel added so far. */
  #sound = 0;
  /**
   * Fragments so far, and those of the last segment: the end of the sound comes in a fragment of
   * its own.
   */
  #fragments = 0;
  readonly #lastSegment: Uint8Array[] = [];

  private constructor(options: MuxerOptions) {
    this.#options = options;
    const { channels, frames, mp4File } = options;
    registerAacEncoder();
    this.#hlsAudio = new AudioSampleSource({
      codec: 'aac',
      quality: new Quality({ bitrate: AAC_BITRATE[channels] }),
      onEncodedPacket: (packet, meta) => this.#mp4Audio.add(packet, meta),
    });
    this.#hls = new Output({ format: this.#fragmentedFormat(), target: new NullTarget() });
    this.#hls.addVideoTrack(this.#hlsVideo, { frameRate: FPS });
    this.#hls.addAudioTrack(this.#hlsAudio);
    this.#mp4 = new Output({
      format: new Mp4OutputFormat({ fastStart: 'reserve' }),
      target: new FilePathTarget(mp4File, { chunkSize: 1 << 20 }),
    });
    this.#mp4.addVideoTrack(this.#mp4Video, { frameRate: FPS, maximumPacketCount: frames + 1 });
    this.#mp4.addAudioTrack(this.#mp4Audio, {
      maximumPacketCount: Math.ceil(((frames / FPS) * AUDIO_RATE) / AAC_FRAME) + 4,
    });
  }

  /** Creates a muxer and begins both outputs. */
  static async start(options: MuxerOptions): Promise<Muxer> {
    const muxer = new Muxer(options);
    await muxer.#mp4.start();
    await muxer.#hls.start();
    return muxer;
  }

  /**
   * Adds a frame.
   * @param annexB an H.264 access unit with start codes. The muxer keeps it: pass a copy.
   */
  async addFrame(frame: number, annexB: Uint8Array, isKey: boolean): Promise<void> {
    const packet = new EncodedPacket(annexB, isKey ? 'key' : 'delta', frame / FPS, 1 / FPS);
    const { width, height } = this.#options;
    const meta =
      frame > 0
        ? undefined
        : {
            decoderConfig: {
              codec: codecString(annexB),
              codedWidth: width,
              codedHeight: height,
              // The colour space of the pictures: BT.601 limited range, as in every WebRTC stream.
              colorSpace: {
                primaries: 'smpte170m',
                transfer: 'smpte170m',
                matrix: 'smpte170m',
                fullRange: false,
              } as const,
            },
          };
    await this.#mp4Video.add(packet, meta);
    await this.#hlsVideo.add(packet, meta);
  }

  /**
   * Adds sound.
   * @param samples interleaved at AUDIO_RATE. The muxer keeps them: pass a copy.
   */
  async addSound(samples: Int16Array<ArrayBuffer>): Promise<void> {
    const { channels } = this.#options;
    if (samples.length === 0) {
      return;
    }
    const sample = new AudioSample({
      data: samples,
      format: 's16',
      numberOfChannels: channels,
      sampleRate: AUDIO_RATE,
      timestamp: (this.#sound - AAC_FRAME) / AUDIO_RATE,
    });
    this.#sound += samples.length / channels;
    await this.#hlsAudio.add(sample);
    sample.close();
  }

  /** Completes both outputs. */
  async finish(): Promise<void> {
    await this.#hls.finalize();
    this.#options.onSegment(Buffer.concat(this.#lastSegment));
    await this.#mp4.finalize();
  }

  /** Abandons the outputs that are not complete. */
  async cancel(): Promise<void> {
    const open = [this.#hls, this.#mp4].filter(({ state }) => state !== 'finalized');
    await Promise.allSettled(open.map((output) => output.cancel()));
  }

  /** The HLS output. A fragment begins at each key frame. */
  #fragmentedFormat(): Mp4OutputFormat {
    let ftyp: Uint8Array = new Uint8Array(0);
    let moof: Uint8Array = new Uint8Array(0);
    return new Mp4OutputFormat({
      fastStart: 'fragmented',
      minimumFragmentDuration: 0.5,
      onFtyp: (data) => {
        ftyp = data;
      },
      onMoov: (data) => {
        this.#options.onInit(Buffer.concat([ftyp, data]));
      },
      onMoof: (data) => {
        moof = data;
      },
      onMdat: (data) => {
        this.#fragments++;
        if (this.#fragments < segmentCount(this.#options.frames)) {
          this.#options.onSegment(Buffer.concat([moof, data]));
        } else {
          this.#lastSegment.push(moof, data);
        }
      },
    });
  }
}

/**
 * The `codecs` parameter (RFC 6381): the three bytes after the SPS header.
 * @throws Error when the access unit has no SPS
 */
function codecString(annexB: Uint8Array): string {
  for (let i = 2; i + 4 < annexB.length; i++) {
    if (
      annexB[i - 2] !== 0 ||
      annexB[i - 1] !== 0 ||
      annexB[i] !== 1 ||
      (annexB[i + 1]! & 31) !== 7
    ) {
      continue;
    }
    return `avc1.${Buffer.from(annexB.subarray(i + 2, i + 5)).toString('hex')}`;
  }
  throw new Error('the first frame carries no sequence parameter set');
}
