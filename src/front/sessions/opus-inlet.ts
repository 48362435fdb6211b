// Speech that comes as Opus packets: kept as packets, and decoded no faster than it is about to be needed.
import { TokenBucket } from '../../base/token-bucket.ts';
import { SpeechRingWriter, createSpeechRing } from '../../link/speech-ring.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { type OpusDecoder, native } from '../../native/addon.ts';
import { MAX_BACKLOG_SECONDS, MAX_WAITING_BYTES_TOTAL, type SpeechInlet } from './audio-ingress.ts';
import { BlockPool, ByteQueue } from './byte-queue.ts';

/** Six frames of 20 ms of at most 1275 bytes each, and their lengths (RFC 6716 sections 3.2 and 3.4). */
const MAX_PACKET_BYTES = 7680;
const LENGTH_BYTES = 2;
const MAX_PACKET_SAMPLES = (120 * SPEECH_RATE) / 1000;

/** Decoded ahead of what the worker has taken. */
const LEAD_SAMPLES = 2 * SPEECH_RATE;
/**
 * A packet of 20 ms takes 32 us of the main thread to decode (measured), one that is garbage 70 us. A client that interrupts itself
 * with each packet makes us decode all of them, so that there is a bound: ten times real time, two seconds of audio at once.
 */
const DECODE_RATE = 10 * SPEECH_RATE;
const DECODE_BURST = 2 * SPEECH_RATE;
/** Short packets have a cost of their own. */
const LEAST_DECODE_SAMPLES = (10 * SPEECH_RATE) / 1000;

/** Shared by all sessions: nothing of them outlives a call. */
const packetBytes = new Uint8Array(LENGTH_BYTES + MAX_PACKET_BYTES);
const packetView = new DataView(packetBytes.buffer);
const samples = new Int16Array(MAX_PACKET_SAMPLES);

const SILK_MS = [10, 20, 40, 60];
const HYBRID_MS = [10, 20];
const CELT_MS = [2.5, 5, 10, 20];

/** Samples at SPEECH_RATE that a packet says it holds (RFC 6716 section 3.1); 0 when it cannot be a packet. */
export function samplesInPacket(packet: Uint8Array): number {
  const toc = packet[0];
  if (toc === undefined || packet.length > MAX_PACKET_BYTES) {
    return 0;
  }
  const config = toc >> 3;
  const frameMs =
    config < 12
      ? SILK_MS[config & 3]!
      : config < 16
        ? HYBRID_MS[config & 1]!
        : CELT_MS[config & 3]!;
  const frames = (toc & 3) === 0 ? 1 : (toc & 3) < 3 ? 2 : (packet[1] ?? 0) & 63;
  const count = (frames * frameMs * SPEECH_RATE) / 1000;
  return count <= MAX_PACKET_SAMPLES ? count : 0;
}

/** One Opus packet in each message. What is no packet is worth no sound and no session. */
export class OpusInlet implements SpeechInlet {
  readonly memory = createSpeechRing();
  invalidMessages = 0;
  readonly #lane = new SpeechRingWriter(this.memory);
  readonly #waiting: ByteQueue;
  #waitingSamples = 0;
  readonly #decoding: TokenBucket;
  #decoder: OpusDecoder | undefined;
  #isDone = false;

  constructor(nowMs: number, pool = new BlockPool(MAX_WAITING_BYTES_TOTAL)) {
    this.#waiting = new ByteQueue(pool);
    this.#decoding = new TokenBucket(DECODE_RATE, DECODE_BURST, nowMs);
  }

  samplesIn(message: Uint8Array): number {
    return samplesInPacket(message);
  }

  push(packet: Uint8Array, nowMs: number): number {
    if (this.#isDone) {
      return 0;
    }
    const count = samplesInPacket(packet);
    if (count === 0) {
      this.invalidMessages++;
      return 0;
    }
    const total = LENGTH_BYTES + packet.length;
    if (
      this.#waitingSamples + count > MAX_BACKLOG_SECONDS * SPEECH_RATE ||
      !this.#waiting.fits(total)
    ) {
      return count;
    }
    packetView.setUint16(0, packet.length);
    packetBytes.set(packet, LENGTH_BYTES);
    this.#waiting.push(packetBytes, 0, total);
    this.#waitingSamples += count;
    this.pump(nowMs);
    return 0;
  }

  flush(nowMs: number): void {
    this.#waiting.clear();
    this.#waitingSamples = 0;
    this.#lane.flush(nowMs);
  }

  done(): void {
    this.#isDone = true;
    if (!this.hasBacklog) {
      this.#lane.done();
    }
  }

  get hasBacklog(): boolean {
    return this.#waiting.length > 0;
  }

  pump(nowMs: number): void {
    while (this.#waiting.length > 0) {
      if (this.#lane.unheard >= LEAD_SAMPLES || this.#lane.free < MAX_PACKET_SAMPLES) {
        return;
      }
      this.#waiting.peek(packetBytes, LENGTH_BYTES);
      const total = LENGTH_BYTES + packetView.getUint16(0);
      this.#waiting.peek(packetBytes, total);
      const packet = packetBytes.subarray(LENGTH_BYTES, total);
      const count = samplesInPacket(packet);
      if (!this.#decoding.take(Math.max(LEAST_DECODE_SAMPLES, count), nowMs)) {
        return;
      }
      this.#waiting.drop(total);
      this.#waitingSamples -= count;
      this.#lane.write(samples, nowMs, 0, this.#decode(packet));
    }
    if (this.#isDone) {
      this.#lane.done();
    }
  }

  /** @returns samples decoded; 0 when the packet is none */
  #decode(packet: Uint8Array): number {
    this.#decoder ??= new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
    try {
      return this.#decoder.decode(packet, samples);
    } catch {
      this.invalidMessages++;
      return 0;
    }
  }

  close(): void {
    this.#waiting.clear();
    this.#decoder?.close();
    this.#decoder = undefined;
  }
}
