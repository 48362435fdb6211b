// Reacts to the receiver's RTCP: retransmissions, duplication, key frames and the target bitrate.
import { AUDIO_RATE, VIDEO_CLOCK } from '../../media/timeline.ts';
import { BitrateController } from '../congestion/bitrate-controller.ts';
import { DelayDetector } from '../congestion/delay-detector.ts';
import { LossWindow } from '../congestion/loss-window.ts';
import { KeyFrameRecovery } from './key-frame-recovery.ts';
import { KeyFrameRequester } from './key-frame-requester.ts';
import type { MediaStats } from './media-stats.ts';
import { PacketDuplication } from './packet-duplication.ts';
import { RetransmissionBudget } from './retransmission-budget.ts';
import { compactNtp, parseRtcp, type RtcpHandler } from './rtcp.ts';
import type { MediaStreams, RtpStream } from './rtp-stream.ts';

/** The streams and limits that the feedback applies to. */
export interface ReceiverFeedbackOptions {
  readonly streams: MediaStreams;
  /**
   * Send packets twice on lossy paths. Not to an SFU: it repairs its own losses, and would forward
   * nothing of it.
   */
  readonly isRedundant: boolean;
  readonly minBitrateKbps: number;
  readonly maxBitrateKbps: number;
  /** Target bitrate before the first feedback. Default: 600. */
  readonly startBitrateKbps?: number | undefined;
  /** Wall-clock time minus monotonic time. */
  readonly wallOffsetMs: number;
}

/** What the feedback causes. None of these may throw. */
export interface ReceiverFeedbackListener {
  onKeyFrameRequest(): void;
  /** The target of the video encoder has changed noticeably. */
  onTargetBitrate(kbps: number): void;
  /** Send packet `sequenceNumber` of the video stream again. */
  onRetransmit(stream: RtpStream, sequenceNumber: number, nowMs: number): void;
  /** What was sent in the latest second that is known, 0 if none is. */
  readonly sentKbps: number;
}

const START_KBPS = 600;
/**
 * A receiver repeats a NACK after its own estimate of the round-trip time (Chromium without an
 * estimate: 100 ms). Suppress only repetitions that arrive while the retransmission is on its way.
 */
const RETRANSMIT = { maxTimes: 8, minIntervalMs: 20, minShareOfRoundTrip: 0.5 } as const;
/**
 * Above this share of lost packets, send each retransmission twice: it is as likely to be lost as
 * the packet was, and the next request costs another round trip.
 */
const DOUBLE_RETRANSMIT_ABOVE_LOSS = 0.02;
/** With more loss than this while packets queue, the queue overflows. */
const OVERFLOW_ABOVE_LOSS = 0.1;
/** What retransmissions may take right after a key-frame recovery has started. */
const RECOVERY_RETRANSMIT_BYTES = 3_000;
/** Compact NTP time (RFC 3550 section 6.4.1) counts in 1/65536 s. */
const COMPACT_NTP_RATE = 65_536;
/** A receiver that rounds DLSR up makes the round-trip time slightly negative. */
const MIN_ROUND_TRIP_UNITS = -COMPACT_NTP_RATE / 100;
/** Beyond this the report does not refer to a sender report of ours. */
const ROUND_TRIP_BOUND_UNITS = COMPACT_NTP_RATE * 60;

/** Times are `monotonicMs()`. */
export class ReceiverFeedback implements RtcpHandler {
  readonly #options: ReceiverFeedbackOptions;
  readonly #listener: ReceiverFeedbackListener;
  readonly #stats: MediaStats;
  readonly #bitrate: BitrateController;
  readonly #lossWindow = new LossWindow();
  readonly #duplication = new PacketDuplication();
  readonly #delayDetector = new DelayDetector();
  readonly #recovery = new KeyFrameRecovery();
  readonly #keyFrames: KeyFrameRequester;
  readonly #budget = new RetransmissionBudget();
  #lastFirSequence = -1;
  /** LSR of the latest report (RFC 3550 section 6.4.1). */
  #lastSenderReport = 0;
  /** When the packet that is being parsed arrived. */
  #nowMs = 0;

  constructor(
    options: ReceiverFeedbackOptions,
    listener: ReceiverFeedbackListener,
    stats: MediaStats,
  ) {
    this.#options = options;
    this.#listener = listener;
    this.#stats = stats;
    this.#keyFrames = new KeyFrameRequester(() => {
      listener.onKeyFrameRequest();
    });
    this.#bitrate = new BitrateController(
      options.minBitrateKbps,
      options.maxBitrateKbps,
      options.startBitrateKbps ?? START_KBPS,
    );
    stats.targetBitrateKbps = this.#bitrate.targetKbps;
  }

  /** Whether each video packet is to be sent twice. */
  get isVideoDuplicated(): boolean {
    return this.#bitrate.isDuplicating;
  }

  /** Whether each audio packet is to be sent twice. */
  get isAudioDuplicated(): boolean {
    return this.#duplication.isOn && this.#options.isRedundant;
  }

  /** Media starts to flow. */
  start(nowMs: number): void {
    this.#budget.start(nowMs);
  }

  /** Processes one decrypted RTCP packet. @returns false if it is malformed. */
  receive(rtcp: Buffer, nowMs: number): boolean {
    this.#nowMs = nowMs;
    const isWellFormed = parseRtcp(rtcp, this);
    this.#reportTarget();
    return isWellFormed;
  }

  /** Sends a deferred key-frame request when it is due. */
  poll(nowMs: number): void {
    this.#keyFrames.poll(nowMs);
  }

  /** Requests a key frame: the receiver has nothing to decode on. */
  requestKeyFrame(nowMs: number): void {
    this.#keyFrames.request(nowMs);
  }

  /** Whether to send this frame. After an overflow only a key frame is of use; this requests it. */
  admitFrame(isKey: boolean, nowMs: number): boolean {
    const decision = this.#recovery.decide(isKey, nowMs);
    if (decision === 'request_key_frame') {
      this.#keyFrames.request(nowMs);
    }
    return decision === 'send';
  }

  // RtcpHandler

  onReport(
    ssrc: number,
    _fractionLost: number,
    lost: number,
    highest: number,
    jitterTicks: number,
    lastSr: number,
    delaySinceLastSr: number,
  ): void {
    // Reports between two sender reports repeat what the first of them measured.
    if (lastSr !== 0 && lastSr !== this.#lastSenderReport) {
      this.#lastSenderReport = lastSr;
      this.#onRoundTrip(lastSr, delaySinceLastSr);
    }
    const { video, audio } = this.#options.streams;
    if (ssrc !== (video ?? audio)?.ssrc) {
      return;
    }
    this.#stats.packetsLost = Math.max(0, lost);
    this.#stats.jitterMs = (jitterTicks * 1000) / (video === undefined ? AUDIO_RATE : VIDEO_CLOCK);
    const share = this.#lossWindow.add(lost, highest, this.#nowMs);
    if (share === undefined) {
      return;
    }
    this.#stats.fractionLost = share;
    this.#bitrate.onLoss(share, this.#nowMs);
    if (share > OVERFLOW_ABOVE_LOSS && this.#hasQueue) {
      this.#startRecovery();
    }
    this.#duplication.onLoss(share, this.#nowMs);
    this.#applyDuplication();
  }

  /** RFC 3550 section 6.4.1: arrival - LSR - DLSR, modulo 2^32. */
  #onRoundTrip(lastSr: number, delaySinceLastSr: number): void {
    const arrival = compactNtp(this.#nowMs + this.#options.wallOffsetMs);
    const units = (arrival - lastSr - delaySinceLastSr) | 0;
    if (units > MIN_ROUND_TRIP_UNITS && units < ROUND_TRIP_BOUND_UNITS) {
      this.#stats.roundTripMs = (Math.max(0, units) * 1000) / COMPACT_NTP_RATE;
      this.#delayDetector.onRoundTrip(this.#stats.roundTripMs, this.#nowMs);
      this.#recoverFromOverflow();
    }
  }

  onNack(ssrc: number, sequenceNumber: number): void {
    const stream = this.#options.streams.video;
    if (stream === undefined || ssrc !== stream.ssrc) {
      return;
    }
    this.#stats.nacksReceived++;
    if (this.#recovery.isObsolete(sequenceNumber)) {
      return;
    }
    const minIntervalMs = Math.max(
      RETRANSMIT.minIntervalMs,
      this.#stats.roundTripMs * RETRANSMIT.minShareOfRoundTrip,
    );
    const bytes = stream.retransmitCost(sequenceNumber, this.#nowMs, {
      maxTimes: RETRANSMIT.maxTimes,
      minIntervalMs,
    });
    if (bytes === 0) {
      return;
    }
    const isRepeated = stream.timesRetransmitted(sequenceNumber) > 0;
    if (!isRepeated) {
      this.#onFirstNack(stream, sequenceNumber);
      this.#recoverFromOverflow();
      if (this.#recovery.isActive) {
        return;
      }
      // Losses while packets queue are not random: sending twice would lose more.
      if (!this.#hasQueue) {
        this.#duplication.onFirstNack(this.#nowMs);
        this.#applyDuplication();
      }
    }
    this.#retransmit(stream, sequenceNumber, bytes);
    const isLikelyLost =
      this.#options.isRedundant &&
      (isRepeated || this.#duplication.loss > DOUBLE_RETRANSMIT_ABOVE_LOSS);
    if (
      isLikelyLost &&
      !this.#hasQueue &&
      stream.timesRetransmitted(sequenceNumber) < RETRANSMIT.maxTimes
    ) {
      this.#retransmit(stream, sequenceNumber, bytes);
    }
  }

  /** Notes the loss of a packet. The packet after it, if it was sent, has shown the loss. */
  #onFirstNack(stream: RtpStream, sequenceNumber: number): void {
    const wallMs = this.#nowMs + this.#options.wallOffsetMs;
    const sentMs = stream.sentWallMs((sequenceNumber + 1) & 0xffff) ?? wallMs;
    this.#delayDetector.onFirstNack(wallMs - sentMs, this.#nowMs);
  }

  onPli(ssrc: number): void {
    if (ssrc !== this.#options.streams.video?.ssrc) {
      return;
    }
    this.#stats.plisReceived++;
    this.#keyFrames.request(this.#nowMs);
  }

  onFir(ssrc: number, sequenceNumber: number): void {
    // RFC 5104 section 4.3.1.1: the same sequence number repeats the same request.
    if (ssrc !== this.#options.streams.video?.ssrc || sequenceNumber === this.#lastFirSequence) {
      return;
    }
    this.#lastFirSequence = sequenceNumber;
    this.#stats.firsReceived++;
    this.#keyFrames.request(this.#nowMs);
  }

  onRemb(bitsPerSecond: number): void {
    const { sentKbps } = this.#listener;
    this.#bitrate.onRemb(bitsPerSecond, sentKbps, this.#hasQueue, this.#nowMs);
  }

  /** Ignores BYE: DTLS or silence shows that the client has left. */
  onBye(): void {
    /* nothing to do */
  }

  #retransmit(stream: RtpStream, sequenceNumber: number, bytes: number): void {
    if (this.#budget.take(bytes, this.#bitrate.targetKbps, this.#nowMs)) {
      this.#listener.onRetransmit(stream, sequenceNumber, this.#nowMs);
      return;
    }
    // More is missing than the budget can repair; the receiver would repeat its NACKs for seconds.
    // If a queue overflows, this is often the first sign: receiver reports are lost with the media,
    // and the round-trip time with them.
    this.#startRecovery();
  }

  get #hasQueue(): boolean {
    return this.#delayDetector.queuingDelayMs(this.#nowMs) > 0;
  }

  #recoverFromOverflow(): void {
    if (this.#delayDetector.isOverflowing(this.#nowMs)) {
      this.#startRecovery();
    }
  }

  #startRecovery(): void {
    const stream = this.#options.streams.video;
    const queuingDelayMs = this.#delayDetector.queuingDelayMs(this.#nowMs);
    if (
      stream === undefined ||
      !this.#recovery.start(stream.nextSequence, queuingDelayMs, this.#nowMs)
    ) {
      return;
    }
    if (queuingDelayMs > 0) {
      this.#bitrate.onOverflow(this.#nowMs);
    }
    this.#duplication.pause(this.#nowMs);
    this.#applyDuplication();
    this.#budget.limitTo(RECOVERY_RETRANSMIT_BYTES);
  }

  #applyDuplication(): void {
    const canRepeat =
      this.#options.isRedundant && (this.#options.streams.video?.keepsHistory ?? false);
    this.#bitrate.isDuplicating = this.#duplication.isOn && canRepeat;
  }

  #reportTarget(): void {
    const kbps = this.#bitrate.takeChange();
    this.#stats.targetBitrateKbps = this.#bitrate.targetKbps;
    if (kbps > 0) {
      this.#listener.onTargetBitrate(kbps);
    }
  }
}
