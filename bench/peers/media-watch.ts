// Keeps the times of the media that a client of the bench receives.
import type { RtpPacket } from 'werift';
import { AUDIO_RATE, SPEECH_RATE, VIDEO_CLOCK } from '../../src/media/timeline.ts';
import { native } from '../../src/native/addon.ts';
import type { ArrivedFrame } from './frames.ts';
import { MAX_KEPT_DELAYS, type PeerFigures } from './peer-figures.ts';
import { ReceiverEstimate } from './receiver-estimate.ts';

const FREEZE_MS = 300;
const COURSE_MS = 10_000;
const MAX_KEPT_FRAMES = 20_000;
/**
 * Louder than this (of 32768) is sound. Sizes do not tell: for a quarter of a second after speech
 * Opus spends 80 bytes a packet on silence.
 */
const AUDIBLE_PEAK = 200;
/** The longest Opus packet at 16 kHz. */
const decoded = new Int16Array((SPEECH_RATE * 120) / 1000);

/** What a sender report says: this RTP time was this NTP time (RFC 3550 section 6.4.1). */
export interface SenderClock {
  readonly ntpMs: number;
  readonly rtp: number;
}

const mediaMs = (clock: SenderClock | undefined, rtp: number, rate: number): number =>
  clock === undefined ? Number.NaN : clock.ntpMs + (((rtp - clock.rtp) | 0) * 1000) / rate;

/** The received media of one peer. */
export class MediaWatch {
  /** Complete frames, if kept. */
  readonly kept: ArrivedFrame[] = [];
  /** Of the bitrate that arrives. */
  readonly estimate = new ReceiverEstimate();
  readonly #figures: PeerFigures;
  readonly #isKeeping: boolean;
  #lastFrameMs = 0;
  #firstTimestamp = -1;
  #leastDelayMs = Number.POSITIVE_INFINITY;
  #highestVideo = -1;
  #secondMs = 0;
  #secondBytes = 0;
  readonly #clocks: { audio: SenderClock | undefined; video: SenderClock | undefined } = {
    audio: undefined,
    video: undefined,
  };
  #audioMediaMs = Number.NaN;
  readonly #period = { startMs: 0, leastDelayMs: Number.POSITIVE_INFINITY, skewSumMs: 0, skews: 0 };
  readonly #decoder = new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });

  /**
   * @param figures what is written
   * @param isKeeping whether the coded frames are kept, for decoding afterwards
   */
  constructor(figures: PeerFigures, isKeeping: boolean) {
    this.#figures = figures;
    this.#isKeeping = isKeeping;
  }

  onSenderReport(kind: 'audio' | 'video', clock: SenderClock): void {
    this.#clocks[kind] = clock;
  }

  onVideo({ payload, header }: RtpPacket, nowMs: number): void {
    this.#figures.videoPackets++;
    this.#count(payload.length, nowMs);
    this.#watchSequence(header.sequenceNumber);
    if (this.#firstTimestamp < 0) {
      this.#firstTimestamp = header.timestamp;
    }
    const sentMs = (((header.timestamp - this.#firstTimestamp) | 0) * 1000) / VIDEO_CLOCK;
    this.estimate.onPacket(payload.length + 12, nowMs - sentMs);
  }

  /** A frame that is complete and can be shown. */
  onFrame(frame: ArrivedFrame): void {
    const figures = this.#figures;
    figures.frames++;
    if (frame.isKey) {
      figures.keyFrames++;
    }
    if (this.#lastFrameMs > 0) {
      const gapMs = frame.completedMs - this.#lastFrameMs;
      figures.longestGapMs = Math.max(figures.longestGapMs, gapMs);
      if (gapMs > FREEZE_MS) {
        figures.gapsOver300++;
      }
    }
    this.#lastFrameMs = frame.completedMs;
    const delayMs =
      frame.completedMs - (((frame.rtpTimestamp - this.#firstTimestamp) | 0) * 1000) / VIDEO_CLOCK;
    this.#leastDelayMs = Math.min(this.#leastDelayMs, delayMs);
    if (figures.delaysMs.length < MAX_KEPT_DELAYS) {
      figures.delaysMs.push(delayMs - this.#leastDelayMs);
    } else {
      figures.delaysMs[(figures.frames - 1) % MAX_KEPT_DELAYS] = delayMs - this.#leastDelayMs;
    }
    if (this.#isKeeping && this.kept.length < MAX_KEPT_FRAMES) {
      this.kept.push(frame);
    }
    this.#followCourse(frame, delayMs);
  }

  #followCourse(frame: ArrivedFrame, delayMs: number): void {
    const period = this.#period;
    const clocks = this.#clocks;
    if (period.startMs === 0) {
      period.startMs = frame.completedMs;
    }
    period.leastDelayMs = Math.min(period.leastDelayMs, delayMs);
    const skewMs = mediaMs(clocks.video, frame.rtpTimestamp, VIDEO_CLOCK) - this.#audioMediaMs;
    if (Number.isFinite(skewMs)) {
      period.skewSumMs += skewMs;
      period.skews++;
    }
    if (frame.completedMs - period.startMs < COURSE_MS) {
      return;
    }
    this.#figures.course.push({
      atMs: frame.completedMs,
      delayMs: period.leastDelayMs - this.#leastDelayMs,
      skewMs: period.skewSumMs / period.skews,
    });
    this.#period.startMs = frame.completedMs;
    this.#period.leastDelayMs = Number.POSITIVE_INFINITY;
    this.#period.skewSumMs = this.#period.skews = 0;
  }

  onAudio({ payload, header }: RtpPacket): void {
    const nowMs = performance.now();
    this.#figures.audioPackets++;
    this.#audioMediaMs = mediaMs(this.#clocks.audio, header.timestamp, AUDIO_RATE);
    this.#count(payload.length, nowMs);
    if (!this.#isAudible(payload)) {
      return;
    }
    this.#figures.lastAudibleMs = nowMs;
    const last = this.#figures.utterances.at(-1);
    // Sound of the utterance before may still be playing: only what follows SPEAK belongs to this
    // one.
    if (last !== undefined && last.speakMs !== undefined) {
      last.audibleMs ??= nowMs;
    }
  }

  #isAudible(payload: Buffer): boolean {
    try {
      const samples = this.#decoder.decode(payload, decoded);
      for (let i = 0; i < samples; i++) {
        if (Math.abs(decoded[i]!) >= AUDIBLE_PEAK) {
          return true;
        }
      }
    } catch {
      // no Opus: then it is not to be heard either
    }
    return false;
  }

  #watchSequence(sequenceNumber: number): void {
    if (this.#highestVideo >= 0) {
      const ahead = (sequenceNumber - this.#highestVideo) & 0xffff;
      if (ahead === 0 || ahead >= 0x8000) {
        return;
      }
      this.#figures.packetsMissed += ahead - 1;
      if (ahead > 1) {
        this.estimate.onLoss(ahead - 1);
      }
    }
    this.#highestVideo = sequenceNumber;
  }

  #count(bytes: number, nowMs: number): void {
    this.#figures.bytes += bytes;
    if (this.#secondMs === 0) {
      this.#secondMs = nowMs;
    }
    this.#secondBytes += bytes;
    if (nowMs - this.#secondMs < 1000) {
      return;
    }
    this.#figures.receivedKbps.push(Math.round((this.#secondBytes * 8) / (nowMs - this.#secondMs)));
    this.#secondMs = nowMs;
    this.#secondBytes = 0;
  }
}
