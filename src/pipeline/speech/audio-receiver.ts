// The peer's own microphone: Opus packets as they come off the network, put in order, decoded, and what was lost concealed.
import { SPEECH_RATE } from '../../media/timeline.ts';
import { type OpusDecoder, native } from '../../native/addon.ts';
import type { SessionSpeech } from './speech-source.ts';

const MAX_FRAME_SAMPLES = (SPEECH_RATE * 120) / 1000; // the longest Opus packet, 120 ms (RFC 6716 section 3.2.5)
const USUAL_FRAME_SAMPLES = (SPEECH_RATE * 20) / 1000;
/** Packets that may be missing in a row before we take the sender to have paused (DTX) rather than lost them. */
const MAX_CONCEALED = 5;
/** How many later packets may arrive before a missing one is given up. */
const REORDER_WINDOW = 3;

const pcm = new Int16Array(MAX_FRAME_SAMPLES);
const concealed = pcm.subarray(0, USUAL_FRAME_SAMPLES);

/** Signed distance of 16-bit sequence numbers (RFC 3550 appendix A.1). */
const ahead = (sequence: number, expected: number): number => ((sequence - expected) << 16) >> 16;

export class AudioReceiver {
  readonly #speech: SessionSpeech;
  #decoder: OpusDecoder | undefined = undefined;
  #expected = -1;
  readonly #held = new Map<number, Uint8Array>();

  constructor(speech: SessionSpeech) {
    this.#speech = speech;
  }

  receive(packet: Uint8Array, _rtpTimestamp: number, sequence: number, nowMs: number): void {
    this.#decoder ??= new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
    if (this.#expected < 0) {
      this.#expected = sequence;
    }
    const distance = ahead(sequence, this.#expected);
    if (distance < 0) {
      return;
    } // a duplicate, or too late to be heard
    if (distance > 50) {
      this.#held.clear();
      this.#expected = sequence;
    }
    if (sequence !== this.#expected) {
      this.#held.set(sequence, packet.slice());
      if (this.#held.size < REORDER_WINDOW) {
        return;
      }
      this.#giveUpMissing(nowMs);
    } else {
      this.#decode(packet, nowMs);
    }
    this.#releaseHeld(nowMs);
  }

  #giveUpMissing(nowMs: number): void {
    let missing = 0;
    while (!this.#held.has(this.#expected)) {
      missing++;
      this.#expected = (this.#expected + 1) & 0xffff;
    }
    for (let i = 0; i < Math.min(missing, MAX_CONCEALED); i++) {
      const count = this.#decoder!.decode(null, concealed);
      this.#speech.hear(concealed, count, nowMs);
    }
  }

  #releaseHeld(nowMs: number): void {
    for (
      let packet = this.#held.get(this.#expected);
      packet !== undefined;
      packet = this.#held.get(this.#expected)
    ) {
      this.#held.delete(this.#expected);
      this.#decode(packet, nowMs);
    }
  }

  #decode(packet: Uint8Array, nowMs: number): void {
    this.#expected = (this.#expected + 1) & 0xffff;
    try {
      this.#speech.hear(pcm, this.#decoder!.decode(packet, pcm), nowMs);
    } catch {
      // A packet that is no Opus is a lost packet; the next one decodes on its own.
    }
  }

  close(): void {
    this.#decoder?.close();
    this.#held.clear();
  }
}
