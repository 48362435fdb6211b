// The sending half of a peer's media: frames become packets, and the receiver's reports become retransmissions, key frames and a bitrate.
import { monotonicMs } from '../../base/time.ts';
import { AUDIO_RATE, VIDEO_CLOCK } from '../../media/timeline.ts';
import { createPacketizer, type Packetizer } from './packetizer.ts';
import { BitrateController } from '../congestion/bitrate-controller.ts';
import { LossWindow } from '../congestion/loss-window.ts';
import type { PeerStats } from '../peer.ts';
import { PacketDuplication } from './packet-duplication.ts';
import { DelayDetector } from '../congestion/delay-detector.ts';
import { bye, compactNtp, parseRtcp, senderReport, type RtcpHandler } from './rtcp.ts';
import { RtpStream, type DatagramSink } from './rtp-stream.ts';
import type { AnswerPlan } from '../sdp/answer.ts';
import type { SrtpSender } from '../srtp/srtp.ts';

export interface MediaSenderOptions {
  readonly minBitrateKbps: number;
  readonly maxBitrateKbps: number;
  /** Wall-clock time minus monotonic time, taken once: NTP times then never jump. */
  readonly wallOffsetMs: number;
  readonly cname: string;
}

export interface MediaSenderListener {
  onKeyFrameRequest(): void;
  onTargetBitrate(kbps: number): void;
}

const VIDEO_HISTORY_PACKETS = 256; // 1.5 s at 1500 kbit/s
const AUDIO_HISTORY_PACKETS = 2; // the one sent last can be copied
const SENDER_REPORT_MS = 1_000;
const KEY_FRAME_INTERVAL_MS = 300;
const START_KBPS = 600;
/** A receiver asks again after its own idea of a round trip (Chromium without one: 100 ms); only what is surely still on its way is held back. */
const RETRANSMIT = { maxTimes: 8, minIntervalMs: 20, minShareOfRoundTrip: 0.5 } as const;
/** Share of packets lost from which each repair goes out twice: it is lost as easily as the packet was, and then costs another round trip. */
const REPAIR_TWICE_ABOVE_LOSS = 0.02;
/** Retransmissions may take this share of the bitrate, saved up to a burst that repairs a lost key frame. */
const RETRANSMIT_SHARE = 0.2;
const RETRANSMIT_BURST_BYTES = 40_000;
/** After a queue has overflowed: how long it is given to drain, how often at most that is done, and what repairs may take. */
const DRAIN = { mostMs: 500, unknownMs: 250, intervalMs: 1_000, repairBytes: 3_000 } as const;
/** Packets may be this late before sender reports take it for a media clock that was set anew, rather than for lateness. */
const CLOCK_SLACK_MS = 1_000;

export class MediaSender implements RtcpHandler {
  readonly video: RtpStream | undefined;
  readonly audio: RtpStream | undefined;
  readonly #options: MediaSenderOptions;
  readonly #listener: MediaSenderListener;
  readonly #stats: PeerStats;
  readonly #packetizer: Packetizer;
  readonly #bitrate: BitrateController;
  readonly #lossWindow = new LossWindow();
  readonly #protection = new PacketDuplication();
  readonly #queue = new DelayDetector();
  /** No pictures until then, and then a key frame; what was sent before packet `fromSequence` is not repaired. */
  readonly #anew = {
    atMs: Number.NEGATIVE_INFINITY,
    untilMs: 0,
    isAwaited: false,
    fromSequence: -1,
  };
  /** The packets of the frame and of the sound sent last. */
  readonly #latest = { videoFrom: 0, videoPackets: 0, audioFrom: 0, audioPackets: 0 };
  /** All that went out in the second before the last sender report. */
  readonly #sent = { kbps: 0, bytes: 0, atMs: 0 };
  readonly #sink: DatagramSink;
  readonly #nextBuffer: () => Buffer;
  packetizeMs = 0;
  #srtp: SrtpSender | undefined = undefined;
  /** nowMs - mediaMs: ONE mapping for both streams, since only their relation makes lip sync. NaN before the first packet. */
  #mediaOffsetMs = Number.NaN;
  #nextReportMs = 0;
  #lastKeyRequestMs = Number.NEGATIVE_INFINITY;
  #isKeyWanted = false;
  #lastFir = -1;
  #retransmitTokens = RETRANSMIT_BURST_BYTES;
  #tokensAtMs = 0;
  #nowMs = 0;

  constructor(
    plan: AnswerPlan,
    options: MediaSenderOptions,
    listener: MediaSenderListener,
    stats: PeerStats,
    nextBuffer: () => Buffer,
    sink: DatagramSink,
  ) {
    this.#options = options;
    this.#listener = listener;
    this.#stats = stats;
    this.#nextBuffer = nextBuffer;
    this.#sink = (datagram, length) => {
      stats.packetsSent++;
      stats.bytesSent += length;
      sink(datagram, length);
    };
    const { video, audio } = plan;
    this.#packetizer = createPacketizer(plan.videoCodec ?? 'vp8');
    this.video =
      video === undefined
        ? undefined
        : new RtpStream({
            payloadType: video.codec.payloadType,
            clockRate: VIDEO_CLOCK,
            mid: video.section.mid,
            extensions: video.extensions,
            historyPackets: video.feedback.includes('nack') ? VIDEO_HISTORY_PACKETS : 0,
            rtxPayloadType: video.rtxPayloadType,
          });
    this.audio =
      audio === undefined
        ? undefined
        : new RtpStream({
            payloadType: audio.codec.payloadType,
            clockRate: AUDIO_RATE,
            mid: audio.section.mid,
            extensions: audio.extensions,
            historyPackets: AUDIO_HISTORY_PACKETS,
            rtxPayloadType: undefined,
          });
    this.#bitrate = new BitrateController(
      options.minBitrateKbps,
      options.maxBitrateKbps,
      START_KBPS,
    );
    stats.targetBitrateKbps = this.#bitrate.targetKbps;
  }

  /** From now on packets can be sent. */
  start(srtp: SrtpSender, nowMs: number): void {
    this.#srtp = srtp;
    this.#tokensAtMs = nowMs;
  }

  stop(): void {
    const ssrcs = [this.video, this.audio].flatMap((stream) =>
      stream === undefined ? [] : [stream.ssrc],
    );
    if (this.#srtp !== undefined) {
      this.#sendRtcp(bye(ssrcs));
    }
    this.#srtp = undefined;
  }

  sendVideo(
    frame: Uint8Array,
    length: number,
    isKey: boolean,
    mediaMs: number,
    nowMs: number,
  ): number {
    const stream = this.video;
    const srtp = this.#srtp;
    if (
      stream === undefined ||
      srtp === undefined ||
      length === 0 ||
      this.#isHeldBack(stream, isKey, nowMs)
    ) {
      return 0;
    }
    this.#keepClock(mediaMs, nowMs);
    const timestamp = stream.timestampOf(mediaMs);
    const wallMs = nowMs + this.#options.wallOffsetMs;
    const latest = this.#latest;
    if (this.#bitrate.isTwofold) {
      this.#copy(stream, srtp, latest.videoFrom, latest.videoPackets, nowMs);
    }
    latest.videoFrom = stream.nextSequence;
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
    latest.videoPackets = packets;
    return packets;
  }

  sendAudio(
    packet: Uint8Array,
    length: number,
    mediaMs: number,
    nowMs: number,
    isTalkSpurtStart: boolean,
  ): number {
    const stream = this.audio;
    const srtp = this.#srtp;
    if (
      stream === undefined ||
      srtp === undefined ||
      length === 0 ||
      length > stream.maxPayloadBytes
    ) {
      return 0;
    }
    this.#keepClock(mediaMs, nowMs);
    const latest = this.#latest;
    if (this.#protection.isOn) {
      this.#copy(stream, srtp, latest.audioFrom, latest.audioPackets, nowMs);
    }
    latest.audioFrom = stream.nextSequence;
    latest.audioPackets = 1;
    stream.packet.set(
      length === packet.length ? packet : packet.subarray(0, length),
      stream.headerBytes,
    );
    stream.send(
      length,
      stream.timestampOf(mediaMs),
      isTalkSpurtStart,
      nowMs + this.#options.wallOffsetMs,
      srtp,
      this.#nextBuffer(),
      this.#sink,
    );
    return 1;
  }

  /** Sends packets a second time, before anybody asks. What was asked for meanwhile has gone out already. */
  #copy(stream: RtpStream, srtp: SrtpSender, from: number, packets: number, nowMs: number): void {
    for (let n = 0; n < packets; n++) {
      const sequence = (from + n) & 0xffff;
      if (stream.timesRetransmitted(sequence) > 0) {
        continue;
      }
      stream.retransmit(
        sequence,
        nowMs,
        nowMs + this.#options.wallOffsetMs,
        srtp,
        this.#nextBuffer(),
        this.#sink,
      );
      this.#stats.packetsRetransmitted++;
    }
  }

  #keepClock(mediaMs: number, nowMs: number): void {
    const offsetMs = nowMs - mediaMs;
    if (!(Math.abs(offsetMs - this.#mediaOffsetMs) <= CLOCK_SLACK_MS)) {
      this.#mediaOffsetMs = offsetMs;
      this.#nextReportMs = 0; // tell the receiver at once: it cannot align the streams before the first report
    }
  }

  /** Takes one opened RTCP packet. @returns false when malformed. */
  receive(rtcp: Buffer, nowMs: number): boolean {
    this.#nowMs = nowMs;
    const isSane = parseRtcp(rtcp, this);
    this.#tellBitrate();
    return isSane;
  }

  poll(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#isKeyWanted) {
      this.#requestKeyFrame();
    }
    if (
      this.#srtp === undefined ||
      nowMs < this.#nextReportMs ||
      Number.isNaN(this.#mediaOffsetMs)
    ) {
      return;
    }
    this.#measureRate(nowMs);
    this.#nextReportMs = nowMs + SENDER_REPORT_MS;
    const wallMs = nowMs + this.#options.wallOffsetMs;
    const reports = [this.video, this.audio].flatMap((stream) =>
      stream === undefined
        ? []
        : [
            senderReport(
              {
                ssrc: stream.ssrc,
                rtpTimestamp: stream.timestampOf(nowMs - this.#mediaOffsetMs),
                packets: stream.packets,
                octets: stream.payloadBytes,
              },
              wallMs,
              this.#options.cname,
            ),
          ],
    );
    this.#sendRtcp(Buffer.concat(reports));
  }

  #measureRate(nowMs: number): void {
    const sent = this.#sent;
    if (sent.atMs > 0) {
      sent.kbps = ((this.#stats.bytesSent - sent.bytes) * 8) / (nowMs - sent.atMs);
    }
    sent.bytes = this.#stats.bytesSent;
    sent.atMs = nowMs;
  }

  #sendRtcp(plain: Buffer): void {
    if (this.#srtp === undefined) {
      return;
    }
    const sealed = this.#srtp.protectRtcp(plain);
    this.#sink(sealed, sealed.length);
  }

  // What the receiver says (RtcpHandler)

  onReport(
    ssrc: number,
    _fractionLost: number,
    lost: number,
    highest: number,
    jitterTicks: number,
    lastSr: number,
    delaySinceLastSr: number,
  ): void {
    if (lastSr !== 0) {
      // RFC 3550 section 6.4.1; in units of 1/65536 s, modulo 2^32
      const units =
        (compactNtp(this.#nowMs + this.#options.wallOffsetMs) - lastSr - delaySinceLastSr) | 0;
      // A receiver that rounds its delay up can make this slightly negative; beyond that it is not about a report of ours.
      if (units > -65536 / 100 && units < 65536 * 60) {
        this.#stats.roundTripMs = (Math.max(0, units) * 1000) / 65536;
        this.#queue.onRoundTrip(this.#stats.roundTripMs, this.#nowMs);
        this.#watchQueue();
      }
    }
    const isPrincipal = ssrc === (this.video ?? this.audio)?.ssrc;
    if (!isPrincipal) {
      return;
    }
    this.#stats.packetsLost = Math.max(0, lost);
    this.#stats.jitterMs =
      (jitterTicks * 1000) / (this.video === undefined ? AUDIO_RATE : VIDEO_CLOCK);
    const share = this.#lossWindow.add(lost, highest, this.#nowMs);
    if (share === undefined) {
      return;
    }
    this.#stats.fractionLost = share;
    this.#bitrate.onLoss(share, this.#nowMs);
    this.#protection.onLoss(share, this.#nowMs);
    this.#protect();
  }

  onNack(ssrc: number, sequenceNumber: number): void {
    const stream = this.video;
    if (stream === undefined || ssrc !== stream.ssrc || this.#srtp === undefined) {
      return;
    }
    this.#stats.nacksReceived++;
    if (
      this.#anew.fromSequence >= 0 &&
      ((sequenceNumber - this.#anew.fromSequence) & 0xffff) > 0x7fff
    ) {
      return;
    }
    const minIntervalMs = Math.max(
      RETRANSMIT.minIntervalMs,
      this.#stats.roundTripMs * RETRANSMIT.minShareOfRoundTrip,
    );
    const cost = stream.retransmitCost(sequenceNumber, this.#nowMs, {
      maxTimes: RETRANSMIT.maxTimes,
      minIntervalMs,
    });
    if (cost === 0) {
      return;
    }
    const isAskedAgain = stream.timesRetransmitted(sequenceNumber) > 0;
    if (!isAskedAgain) {
      this.#queue.onMissed(this.#nowMs);
      this.#watchQueue();
      if (this.#anew.isAwaited) {
        return;
      }
      this.#protection.onAsked(this.#nowMs);
      this.#protect();
    }
    this.#retransmit(stream, this.#srtp, sequenceNumber, cost);
    const isUrgent =
      (isAskedAgain || this.#protection.loss > REPAIR_TWICE_ABOVE_LOSS) &&
      this.#queue.queueMs(this.#nowMs) === 0;
    if (isUrgent && stream.timesRetransmitted(sequenceNumber) < RETRANSMIT.maxTimes) {
      this.#retransmit(stream, this.#srtp, sequenceNumber, cost);
    }
  }

  /**
   * Where a queue overflows, repairs would wait behind what overflows it, and fill it again: measured in Chromium on a link that narrowed to 250 kbit/s, seven seconds
   * without a picture. Beginning anew costs what the queue needs to drain, and a key frame.
   */
  #watchQueue(): void {
    if (this.#queue.isOverflowing(this.#nowMs)) {
      this.#beginAnew();
    }
  }

  #beginAnew(): void {
    const [anew, stream] = [this.#anew, this.video];
    if (stream === undefined || this.#nowMs - anew.atMs < DRAIN.intervalMs) {
      return;
    }
    anew.atMs = this.#nowMs;
    anew.untilMs =
      this.#nowMs + Math.min(DRAIN.mostMs, this.#queue.queueMs(this.#nowMs) || DRAIN.unknownMs);
    anew.isAwaited = true;
    anew.fromSequence = stream.nextSequence;
    this.#protection.pause(this.#nowMs);
    this.#protect();
    this.#retransmitTokens = Math.min(this.#retransmitTokens, DRAIN.repairBytes);
  }

  /** Whether this frame is not to be sent, since nothing but a key frame is of use; asks for that one when its time has come. */
  #isHeldBack(stream: RtpStream, isKey: boolean, nowMs: number): boolean {
    const anew = this.#anew;
    if (!anew.isAwaited) {
      return false;
    }
    const isDrained = nowMs >= anew.untilMs;
    if (isKey && isDrained) {
      anew.isAwaited = false;
      anew.fromSequence = stream.nextSequence;
      return false;
    }
    this.#nowMs = nowMs;
    if (isDrained) {
      this.#requestKeyFrame();
    }
    return true;
  }

  #protect(): void {
    this.#bitrate.isTwofold = this.#protection.isOn && (this.video?.keepsHistory ?? false);
  }

  #retransmit(stream: RtpStream, srtp: SrtpSender, sequenceNumber: number, bytes: number): void {
    if (!this.#takeTokens(bytes)) {
      // More is missing than there is room to repair, which a receiver that does not get it asks for again and again, for seconds. Where a queue overflows
      // this is often the first sign: it swallows our reports too, and with them the round trip.
      this.#beginAnew();
      return;
    }
    stream.retransmit(
      sequenceNumber,
      this.#nowMs,
      this.#nowMs + this.#options.wallOffsetMs,
      srtp,
      this.#nextBuffer(),
      this.#sink,
    );
    this.#stats.packetsRetransmitted++;
  }

  #takeTokens(bytes: number): boolean {
    const earned =
      ((this.#nowMs - this.#tokensAtMs) / 1000) * this.#bitrate.targetKbps * 125 * RETRANSMIT_SHARE;
    this.#retransmitTokens = Math.min(
      RETRANSMIT_BURST_BYTES,
      this.#retransmitTokens + Math.max(0, earned),
    );
    this.#tokensAtMs = this.#nowMs;
    if (this.#retransmitTokens < bytes) {
      return false;
    }
    this.#retransmitTokens -= bytes;
    return true;
  }

  onPli(ssrc: number): void {
    if (ssrc !== this.video?.ssrc) {
      return;
    }
    this.#stats.plisReceived++;
    this.#requestKeyFrame();
  }

  onFir(ssrc: number, sequenceNumber: number): void {
    // RFC 5104 section 4.3.1.1: the same number again is a repetition of the same request.
    if (ssrc !== this.video?.ssrc || sequenceNumber === this.#lastFir) {
      return;
    }
    this.#lastFir = sequenceNumber;
    this.#stats.firsReceived++;
    this.#requestKeyFrame();
  }

  /** At most one request every 300 ms; one that comes too early is kept for `poll`, never lost. */
  #requestKeyFrame(): void {
    this.#isKeyWanted = this.#nowMs - this.#lastKeyRequestMs < KEY_FRAME_INTERVAL_MS;
    if (this.#isKeyWanted) {
      return;
    }
    this.#lastKeyRequestMs = this.#nowMs;
    this.#listener.onKeyFrameRequest();
  }

  onRemb(bitsPerSecond: number): void {
    this.#bitrate.onRemb(
      bitsPerSecond,
      this.#sent.kbps,
      this.#queue.queueMs(this.#nowMs) > 0,
      this.#nowMs,
    );
  }

  /** A stream of the client's ended; that the client is gone is told by DTLS or by silence. */
  onBye(): void {
    /* nothing depends on it */
  }

  #tellBitrate(): void {
    const kbps = this.#bitrate.takeChange();
    this.#stats.targetBitrateKbps = this.#bitrate.targetKbps;
    if (kbps > 0) {
      this.#listener.onTargetBitrate(kbps);
    }
  }
}
