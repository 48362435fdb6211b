// The microphone of a light peer: speech and pauses as Opus over RTP, packet by packet.
import { MediaStreamTrack, RtpHeader, RtpPacket } from 'werift';
import { native } from '../../src/native/addon.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';

const PACKET_MS = 20;
const PACKET_SAMPLES = (SPEECH_RATE * PACKET_MS) / 1000;
/** RTP time of Opus runs at 48 kHz (RFC 7587). */
const PACKET_TIME = 48 * PACKET_MS;
/** The person speaks at the start of each cycle. */
const CYCLE_MS = 10_000;
const SPEECH_MS = 2500;

/** Codes one cycle: a sentence, then silence. */
function cycleOf(pcm: Int16Array): readonly Buffer[] {
  const encoder = new native.OpusEncoder({ sampleRate: SPEECH_RATE, channels: 1, bitrate: 32_000 });
  const out = new Uint8Array(1500);
  const packets = Array.from({ length: CYCLE_MS / PACKET_MS }, (_, k) => {
    const frame = new Int16Array(PACKET_SAMPLES);
    if (k * PACKET_MS < SPEECH_MS) {
      frame.set(pcm.subarray(k * PACKET_SAMPLES, (k + 1) * PACKET_SAMPLES));
    }
    return Buffer.from(out.slice(0, encoder.encode(frame, out)));
  });
  encoder.close();
  return packets;
}

let cycle: readonly Buffer[] | undefined;

/** Sends from `start` to `stop`, in real time. */
export class Microphone {
  readonly track = new MediaStreamTrack({ kind: 'audio' });
  #timer: NodeJS.Timeout | undefined = undefined;
  #sent = 0;

  /** @param pcm speech at SPEECH_RATE; the first call decides for all of the process */
  start(pcm: Int16Array): void {
    cycle ??= cycleOf(pcm);
    const packets = cycle;
    const beganMs = performance.now();
    // Not all people speak at the same time.
    const shift = Math.floor(Math.random() * packets.length);
    this.#timer = setInterval(() => {
      while (this.#sent * PACKET_MS < performance.now() - beganMs) {
        const header = new RtpHeader({
          payloadType: 111,
          sequenceNumber: this.#sent & 0xffff,
          timestamp: (this.#sent * PACKET_TIME) >>> 0,
          ssrc: 1,
          marker: this.#sent === 0,
        });
        this.track.writeRtp(new RtpPacket(header, packets[(this.#sent + shift) % packets.length]!));
        this.#sent++;
      }
    }, PACKET_MS / 2);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
