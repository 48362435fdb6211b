// The sound of one session: the speech stream as Opus packets of 20 ms, each sent when it is due.
import { monotonicMs } from '../base/time.ts';
import { audioLevelByte } from '../media/audio-level.ts';
import { AUDIO_PACKET_MS, SPEECH_PACKET_SAMPLES, SPEECH_RATE } from '../media/timeline.ts';
import { type OpusEncoder, native } from '../native/addon.ts';
import type { SpeechStream } from '../pipeline/speech/speech-stream.ts';
import type { Peer } from '../webrtc/peer.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The largest Opus frame (RFC 6716 section 3.2.1). */
const OPUS_FRAME_BYTES = 1276;
/**
 * After a stall of the thread longer than this many packets, the packets of the stall are left out.
 */
const MAX_PACKETS_LATE = 25;

/**
 * Encodes the speech of one session as Opus and sends it over RTP, one packet per AUDIO_PACKET_MS
 * of media time.
 */
export class AudioTrack {
  readonly #stream: SpeechStream;
  readonly #metrics: WorkerMetrics;
  readonly #pcm = new Int16Array(SPEECH_PACKET_SAMPLES);
  readonly #packet = new Uint8Array(OPUS_FRAME_BYTES);
  readonly #encoder: OpusEncoder;
  #nextPacket = 0;
  #wasSpeech = false;

  constructor(stream: SpeechStream, bitrateKbps: number, metrics: WorkerMetrics) {
    this.#stream = stream;
    this.#metrics = metrics;
    // The speech is 16 kHz, and so is the encoder's input. The RTP clock and the decoder's output
    // are 48 kHz all the same (RFC 7587 section 4.1).
    this.#encoder = new native.OpusEncoder({
      sampleRate: SPEECH_RATE,
      channels: 1,
      bitrate: bitrateKbps * 1000,
      inbandFec: false,
    });
  }

  /** Media time of the packet that is sent next. */
  get nextPacketMs(): number {
    return this.#nextPacket * AUDIO_PACKET_MS;
  }

  /** Leaves out the packets of a stall that end by `mediaMs`. */
  skipLate(mediaMs: number): void {
    const due = Math.floor(mediaMs / AUDIO_PACKET_MS);
    if (due - this.#nextPacket > MAX_PACKETS_LATE) {
      this.#nextPacket = due;
    }
  }

  /**
   * Encodes and sends each packet that is due at `mediaMs`. After a stall of the thread the speech
   * of the packets behind it comes with the next frame, 33 ms later at most: they wait for it.
   */
  sendDue(peer: Peer, mediaMs: number, nowMs: number): void {
    const due = Math.floor(mediaMs / AUDIO_PACKET_MS);
    for (; this.#nextPacket <= due && !this.#stream.isBehind; this.#nextPacket++) {
      this.#sendPacket(peer, nowMs);
    }
  }

  #sendPacket(peer: Peer, nowMs: number): void {
    const startMs = monotonicMs();
    const { rtp, stage, speechSeconds } = this.#metrics;
    const isSpeech = this.#stream.takePacket(this.#pcm);
    const bytes = this.#encoder.encode(this.#pcm, this.#packet);
    const isTalkSpurtStart = isSpeech && !this.#wasSpeech;
    this.#wasSpeech = isSpeech;
    const audioLevel = audioLevelByte(this.#pcm, isSpeech);
    peer.sendAudio(this.#packet, bytes, this.nextPacketMs, nowMs, isTalkSpurtStart, audioLevel);
    if (isSpeech) {
      speechSeconds.add(AUDIO_PACKET_MS / 1000);
    }
    rtp.audio.add(1);
    rtp.audioBytes.add(bytes);
    stage.audio.observe((monotonicMs() - startMs) / 1000);
  }

  close(): void {
    this.#encoder.close();
  }
}
