// What arrives on the section of the client's microphone: decrypted, checked, limited in rate.
import type { MediaPlan } from '../sdp/answer.ts';
import type { SrtpReceiver } from '../srtp/srtp.ts';

/**
 * Four times the rate of a microphone with 20 ms packets: allows bursts, but no flood that must be
 * decoded.
 */
const MAX_AUDIO_PACKETS_PER_SECOND = 200;

/** Takes one Opus packet; see `PeerListener.onAudio`. */
export type AudioSink = (packet: Uint8Array, rtpTimestamp: number, sequenceNumber: number) => void;

/** rate_limited: authentic, but dropped. The others are not authentic, or not of the microphone. */
export type AudioVerdict = 'accepted' | 'rate_limited' | 'srtp_auth' | 'other';

/** Receives the microphone of one peer. */
export class IncomingAudio {
  readonly #sink: AudioSink;
  /** Packets in the current second of the clock. */
  #second = 0;
  #packets = 0;

  constructor(sink: AudioSink) {
    this.#sink = sink;
  }

  /** Processes one SRTP packet. `nowMs`: `monotonicMs()` */
  receive(
    data: Buffer,
    plan: MediaPlan | undefined,
    srtp: SrtpReceiver | undefined,
    nowMs: number,
  ): AudioVerdict {
    if (plan === undefined || ((data[1] ?? 0) & 127) !== plan.codec.payloadType) {
      return 'other';
    }
    const payload = srtp?.unprotectRtp(data);
    if (payload === undefined) {
      return 'srtp_auth';
    }
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#packets = 0;
    }
    if (++this.#packets > MAX_AUDIO_PACKETS_PER_SECOND) {
      return 'rate_limited';
    }
    if (payload.length > 0) {
      this.#sink(payload, data.readUInt32BE(4), data.readUInt16BE(2));
    }
    return 'accepted';
  }
}
