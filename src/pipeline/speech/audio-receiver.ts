// The peer's microphone: Opus packets in the order of the network are sorted, decoded, and
// concealed where one is lost.
import { SPEECH_RATE } from '../../media/timeline.ts';
import { type OpusDecoder, native } from '../../native/addon.ts';
import type { MicrophoneSink } from './speech-source.ts';

/** The longest Opus packet, 120 ms (RFC 6716 section 3.2.5). */
const PACKET_BUFFER_SAMPLES = (SPEECH_RATE * 120) / 1000;
/** The usual one, 20 ms: as much is concealed for a lost packet. */
const USUAL_PACKET_SAMPLES = (SPEECH_RATE * 20) / 1000;
/** More lost packets in a row than these are taken for a pause of the sender (DTX). */
const MAX_CONCEALED = 5;
/** Later packets that may arrive before a missing one is given up. */
const REORDER_WINDOW = 3;
/** A jump forward by more than this, 1 s of usual packets, is a new start of the sender. */
const RESTART_GAP = 50;

/** Signed distance of 16-bit sequence numbers (RFC 3550 appendix A.1). */
const distance = (sequence: number, expected: number): number =>
  ((sequence - expected) << 16) >> 16;

/** What only a session with a microphone needs: made with its first packet. */
class PacketDecoder {
  readonly #decoder: OpusDecoder = new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
  readonly #concealed: Int16Array;
  readonly pcm = new Int16Array(PACKET_BUFFER_SAMPLES);

  constructor() {
    this.#concealed = this.pcm.subarray(0, USUAL_PACKET_SAMPLES);
  }

  /** @returns samples in `pcm`. @throws Error when the packet is not Opus */
  decode(packet: Uint8Array): number {
    return this.#decoder.decode(packet, this.pcm);
  }

  /** @returns samples in `pcm` in place of a lost packet */
  conceal(): number {
    return this.#decoder.decode(null, this.#concealed);
  }

  close(): void {
    this.#decoder.close();
  }
}

/**
 * Receives the microphone of one peer: puts Opus packets in order of their sequence numbers (a
 * window of REORDER_WINDOW packets), conceals lost ones, and writes the decoded speech to the
 * session.
 */
export class AudioReceiver {
  readonly #speech: MicrophoneSink;
  #decoder: PacketDecoder | undefined = undefined;
  /** Sequence number of the packet that is decoded next; -1 before the first. */
  #expected = -1;
  /** Packets that arrived before their turn, by sequence number. */
  readonly #early = new Map<number, Uint8Array>();

  constructor(speech: MicrophoneSink) {
    this.#speech = speech;
  }

  /** @param packet valid during the call */
  receive(packet: Uint8Array, sequence: number, nowMs: number): void {
    this.#decoder ??= new PacketDecoder();
    if (this.#expected < 0) {
      this.#expected = sequence;
    }
    const ahead = distance(sequence, this.#expected);
    if (ahead < 0) {
      return; // a duplicate, or too late
    }
    if (ahead > RESTART_GAP) {
      this.#early.clear();
      this.#expected = sequence;
    }
    if (sequence === this.#expected) {
      this.#decode(packet, nowMs);
    } else {
      this.#early.set(sequence, packet.slice());
      if (this.#early.size < REORDER_WINDOW) {
        return;
      }
      this.#concealMissing(nowMs);
    }
    this.#decodeEarly(nowMs);
  }

  #concealMissing(nowMs: number): void {
    let missing = 0;
    while (!this.#early.has(this.#expected)) {
      missing++;
      this.#expected = (this.#expected + 1) & 0xffff;
    }
    for (let i = 0; i < Math.min(missing, MAX_CONCEALED); i++) {
      const samples = this.#decoder!.conceal();
      this.#speech.pushMicrophone(this.#decoder!.pcm, samples, nowMs);
    }
  }

  #decodeEarly(nowMs: number): void {
    for (;;) {
      const sequence = this.#expected;
      const packet = this.#early.get(sequence);
      if (packet === undefined) {
        return;
      }
      this.#early.delete(sequence);
      this.#decode(packet, nowMs);
    }
  }

  #decode(packet: Uint8Array, nowMs: number): void {
    this.#expected = (this.#expected + 1) & 0xffff;
    try {
      const samples = this.#decoder!.decode(packet);
      this.#speech.pushMicrophone(this.#decoder!.pcm, samples, nowMs);
    } catch {
      // Ignore an undecodable packet; do not end the session. The next one decodes on its own.
    }
  }

  close(): void {
    this.#decoder?.close();
    this.#early.clear();
  }
}
