// Sends the media of one peer: packetizes frames, duplicates packets on lossy paths, reports to the
// receiver.
import { isDeepStrictEqual } from 'node:util';
import type { VideoCodec } from '../../media/coded-frame.ts';
import { monotonicMs } from '../../base/time.ts';
import { NO_SOUND } from '../../media/audio-level.ts';
import { AUDIO_RATE, VIDEO_CLOCK } from '../../media/timeline.ts';
import type { AnswerPlan, MediaPlan } from '../sdp/answer.ts';
import type { SrtpSender } from '../srtp/srtp.ts';
import { createPacketizer } from './create-packetizer.ts';
import type { MediaStats } from './media-stats.ts';
import type { Packetizer } from './packetizer.ts';
import { ReceiverFeedback } from './receiver-feedback.ts';
import { bye } from './rtcp.ts';
import {
  RtpStream,
  type DatagramSink,
  type MediaStreams,
  newSsrcs,
  type Ssrcs,
  type StreamOptions,
} from './rtp-stream.ts';
import { SenderReporter } from './sender-reporter.ts';

/** The limits and the clock of a sender. */
export interface MediaSenderOptions {
  readonly minBitrateKbps: number;
  readonly maxBitrateKbps: number;
  /** Target bitrate before the first feedback. Default: 600. */
  readonly startBitrateKbps?: number | undefined;
  /** Wall-clock time minus monotonic time, taken once: NTP times then never jump. */
  readonly wallOffsetMs: number;
  /** Canonical name of both streams (RFC 3550 section 6.5.1). */
  readonly cname: string;
  /** Send packets twice on lossy paths (default: true). Not to an SFU. */
  readonly isRedundant?: boolean;
}

/** What a sender needs to know of what was negotiated. */
export type MediaSections = Pick<AnswerPlan, 'video' | 'videoCodec' | 'audio'>;

/** What the receiver asks of the encoder. None of these may throw. */
export interface MediaSenderListener {
  onKeyFrameRequest(): void;
  onTargetBitrate(kbps: number): void;
}

/** Packets kept for retransmission: 1.5 s at 1500 kbit/s. A power of two. */
const VIDEO_HISTORY_PACKETS = 256;
/** Keeps the latest packet, for its duplicate. A power of two. */
const AUDIO_HISTORY_PACKETS = 2;

/** Packets `first` to `first + count - 1` of a stream. */
interface PacketRange {
  first: number;
  count: number;
}

/** Times are `monotonicMs()`; media times are milliseconds from the start of the session. */
export class MediaSender {
  /** The streams that were negotiated, also those that are inactive for now. */
  readonly #streams: MediaStreams = { video: undefined, audio: undefined };
  /** SSRCs in an offer that is not answered yet. */
  readonly #announced: { video?: Ssrcs; audio?: Ssrcs } = {};
  readonly #wallOffsetMs: number;
  readonly #stats: MediaStats;
  #packetizer: Packetizer = createPacketizer('vp8');
  #codec: VideoCodec = 'vp8';
  #sendsVideo = false;
  #sendsAudio = false;
  readonly #feedback: ReceiverFeedback;
  readonly #reporter: SenderReporter;
  readonly #sink: DatagramSink;
  readonly #nextBuffer: () => Buffer;
  /** The packets of the latest video frame, and the latest audio packet. */
  readonly #latestVideo: PacketRange = { first: 0, count: 0 };
  readonly #latestAudio: PacketRange = { first: 0, count: 0 };
  /** Time that the latest `sendVideo` spent in the packetizer. */
  packetizeMs = 0;
  #srtp: SrtpSender | undefined = undefined;

  /**
   * @param nextBuffer gives the buffer for the next datagram
   * @param sink sends it
   */
  constructor(
    sections: MediaSections,
    options: MediaSenderOptions,
    listener: MediaSenderListener,
    stats: MediaStats,
    nextBuffer: () => Buffer,
    sink: DatagramSink,
  ) {
    this.#wallOffsetMs = options.wallOffsetMs;
    this.#stats = stats;
    this.#nextBuffer = nextBuffer;
    this.#sink = (datagram, length) => {
      stats.packetsSent++;
      stats.bytesSent += length;
      sink(datagram, length);
    };
    this.update(sections);
    const reporter = (this.#reporter = new SenderReporter(this.#streams, options, stats));
    this.#feedback = new ReceiverFeedback(
      {
        streams: this.#streams,
        isRedundant: options.isRedundant ?? true,
        minBitrateKbps: options.minBitrateKbps,
        maxBitrateKbps: options.maxBitrateKbps,
        startBitrateKbps: options.startBitrateKbps,
        wallOffsetMs: options.wallOffsetMs,
      },
      {
        onKeyFrameRequest: () => {
          listener.onKeyFrameRequest();
        },
        onTargetBitrate: (kbps) => {
          listener.onTargetBitrate(kbps);
        },
        onRetransmit: (stream, sequenceNumber, nowMs) => {
          this.#retransmit(stream, sequenceNumber, nowMs);
        },
        get sentKbps() {
          return reporter.sentKbps;
        },
      },
      stats,
    );
  }

  get video(): RtpStream | undefined {
    return this.#streams.video;
  }
  get audio(): RtpStream | undefined {
    return this.#streams.audio;
  }

  /**
   * Takes over what was negotiated. A stream goes on if its section, payload types and extensions
   * are the same, and begins again otherwise.
   * @returns whether the receiver needs a key frame: its video is new, or was inactive
   */
  update({ video, videoCodec = 'vp8', audio }: MediaSections): boolean {
    if (videoCodec !== this.#codec) {
      this.#codec = videoCodec;
      this.#packetizer = createPacketizer(videoCodec);
    }
    const before = { ...this.#streams };
    const wasSending = this.#sendsVideo;
    this.#streams.video = this.#streamFor('video', video && videoOptions(video));
    this.#streams.audio = this.#streamFor('audio', audio && audioOptions(audio));
    this.#sendsVideo = video?.sends ?? false;
    this.#sendsAudio = audio?.sends ?? false;
    const isSameVideo = this.#streams.video === before.video;
    if (!isSameVideo) {
      this.#latestVideo.count = 0;
    }
    if (this.#streams.audio !== before.audio) {
      this.#latestAudio.count = 0;
    }
    return this.#sendsVideo && !(wasSending && isSameVideo);
  }

  /** The stream that is there, if it has these options, or a new one. */
  #streamFor(kind: 'video' | 'audio', options: StreamOptions | undefined): RtpStream | undefined {
    const stream = this.#streams[kind];
    if (options === undefined || isDeepStrictEqual(stream?.options, options)) {
      return options && stream;
    }
    const ssrcs = this.#announced[kind];
    delete this.#announced[kind];
    return new RtpStream(options, ssrcs);
  }

  /** The SSRCs for an offer: those of the stream, or of the one that is to come. */
  ssrcsOf(kind: 'video' | 'audio'): Ssrcs {
    return this.#streams[kind] ?? (this.#announced[kind] ??= newSsrcs());
  }

  /** Requests a key frame from the encoder. */
  requestKeyFrame(nowMs: number): void {
    this.#feedback.requestKeyFrame(nowMs);
  }

  /** Packets can be sent from now on. */
  start(srtp: SrtpSender, nowMs: number): void {
    this.#srtp = srtp;
    this.#feedback.start(nowMs);
  }

  /** Sends RTCP BYE for both streams. Nothing is sent after it. */
  stop(): void {
    const { video, audio } = this.#streams;
    const ssrcs = [video, audio].flatMap((stream) => (stream === undefined ? [] : [stream.ssrc]));
    this.#sendRtcp(bye(ssrcs));
    this.#srtp = undefined;
  }

  /**
   * Sends one coded frame.
   * @returns packets sent; 0 before `start`, while the video is inactive, and during a key-frame
   * recovery.
   */
  sendVideo(
    frame: Uint8Array,
    length: number,
    isKey: boolean,
    mediaMs: number,
    nowMs: number,
  ): number {
    const stream = this.#streams.video;
    const srtp = this.#srtp;
    if (
      stream === undefined ||
      !this.#sendsVideo ||
      srtp === undefined ||
      length === 0 ||
      !this.#feedback.admitFrame(isKey, nowMs)
    ) {
      return 0;
    }
    this.#reporter.onMedia(mediaMs, nowMs);
    const timestamp = stream.timestampOf(mediaMs);
    this.#stats.videoTimestamp = timestamp;
    const wallMs = nowMs + this.#wallOffsetMs;
    if (this.#feedback.isVideoDuplicated) {
      this.#sendDuplicates(stream, this.#latestVideo, nowMs);
    }
    this.#latestVideo.first = stream.nextSequence;
    this.#packetizer.start(frame, length, stream.maxPayloadBytes);
    let packets = 0;
    this.packetizeMs = 0;
    for (;;) {
      const startMs = monotonicMs();
      const bytes = this.#packetizer.next(stream.packet, stream.headerBytes);
      this.packetizeMs += monotonicMs() - startMs;
      if (bytes === 0) {
        break;
      }
      stream.send(
        bytes,
        timestamp,
        this.#packetizer.isDone,
        wallMs,
        srtp,
        this.#nextBuffer(),
        this.#sink,
      );
      packets++;
    }
    this.#latestVideo.count = packets;
    return packets;
  }

  /**
   * Sends one Opus packet.
   * @param audioLevel its level and whether it is speech, as a byte (RFC 6464)
   * @returns packets sent: 1, or 0 before `start`, while the audio is inactive, and for a packet that
   * does not fit.
   */
  sendAudio(
    packet: Uint8Array,
    length: number,
    mediaMs: number,
    nowMs: number,
    isTalkSpurtStart: boolean,
    audioLevel = NO_SOUND,
  ): number {
    const stream = this.#streams.audio;
    const srtp = this.#srtp;
    if (
      stream === undefined ||
      !this.#sendsAudio ||
      srtp === undefined ||
      length === 0 ||
      length > stream.maxPayloadBytes
    ) {
      return 0;
    }
    this.#reporter.onMedia(mediaMs, nowMs);
    if (this.#feedback.isAudioDuplicated) {
      this.#sendDuplicates(stream, this.#latestAudio, nowMs);
    }
    this.#latestAudio.first = stream.nextSequence;
    this.#latestAudio.count = 1;
    stream.packet.set(
      length === packet.length ? packet : packet.subarray(0, length),
      stream.headerBytes,
    );
    stream.stampAudioLevel(audioLevel);
    stream.send(
      length,
      stream.timestampOf(mediaMs),
      isTalkSpurtStart,
      nowMs + this.#wallOffsetMs,
      srtp,
      this.#nextBuffer(),
      this.#sink,
    );
    return 1;
  }

  /** Processes one decrypted RTCP packet. @returns false if it is malformed. */
  receive(rtcp: Buffer, nowMs: number): boolean {
    return this.#feedback.receive(rtcp, nowMs);
  }

  /**
   * Sends what is due: deferred key-frame requests, sender reports. Call it a few times a second.
   */
  poll(nowMs: number): void {
    this.#feedback.poll(nowMs);
    if (this.#srtp === undefined) {
      return;
    }
    const reports = this.#reporter.poll(nowMs);
    if (reports !== undefined) {
      this.#sendRtcp(reports);
    }
  }

  /**
   * Sends packets again, one frame or audio packet later. Skips those that were retransmitted
   * meanwhile.
   */
  #sendDuplicates(stream: RtpStream, { first, count }: PacketRange, nowMs: number): void {
    for (let n = 0; n < count; n++) {
      const sequenceNumber = (first + n) & 0xffff;
      if (stream.timesRetransmitted(sequenceNumber) === 0) {
        this.#retransmit(stream, sequenceNumber, nowMs);
      }
    }
  }

  #retransmit(stream: RtpStream, sequenceNumber: number, nowMs: number): void {
    if (this.#srtp === undefined) {
      return;
    }
    stream.retransmit(
      sequenceNumber,
      nowMs,
      nowMs + this.#wallOffsetMs,
      this.#srtp,
      this.#nextBuffer(),
      this.#sink,
    );
    this.#stats.packetsRetransmitted++;
  }

  #sendRtcp(plain: Buffer): void {
    if (this.#srtp === undefined) {
      return;
    }
    const sealed = this.#srtp.protectRtcp(plain);
    this.#sink(sealed, sealed.length);
  }
}

const videoOptions = (plan: MediaPlan): StreamOptions => ({
  payloadType: plan.codec.payloadType,
  clockRate: VIDEO_CLOCK,
  mid: plan.section.mid,
  extensions: plan.extensions,
  historyPackets: plan.feedback.includes('nack') ? VIDEO_HISTORY_PACKETS : 0,
  rtxPayloadType: plan.rtxPayloadType,
});

const audioOptions = (plan: MediaPlan): StreamOptions => ({
  payloadType: plan.codec.payloadType,
  clockRate: AUDIO_RATE,
  mid: plan.section.mid,
  extensions: plan.extensions,
  historyPackets: AUDIO_HISTORY_PACKETS,
  rtxPayloadType: undefined,
});
