// Speech that arrives as Opus packets: keeps them as packets, and decodes them shortly before they
// are played.
import { TokenBucket } from '../../base/token-bucket.ts';
import { SpeechRingWriter, createSpeechRing } from '../../link/speech-ring.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { type OpusDecoder, native } from '../../native/addon.ts';
import {
  type AudioIngress,
  MAX_BACKLOG_SECONDS,
  MAX_WAITING_BYTES_TOTAL,
} from './audio-ingress.ts';
import { BlockPool, ByteQueue } from './byte-queue.ts';

/**
 * Six frames of 20 ms, of at most 1275 bytes each, and their lengths (RFC 6716 sections 3.2 and
 * 3.4).
 */
const MAX_PACKET_BYTES = 7680;
/** Each packet is kept behind its length. */
const LENGTH_BYTES = 2;
/** The longest packet: 120 ms (RFC 6716 section 3.2.5). */
const MAX_PACKET_SAMPLES = (120 * SPEECH_RATE) / 1000;

/** Audio that is decoded ahead of the worker. */
const LEAD_SAMPLES = 2 * SPEECH_RATE;
/**
 * Decoding a packet of 20 ms takes 32 us of the main thread, a malformed one 70 us (measured). A
 * client that interrupts itself with every packet has all of them decoded. The bound for that: ten
 * times real time, and two seconds of audio at once.
 */
const DECODE_RATE = 10 * SPEECH_RATE;
const DECODE_BURST = 2 * SPEECH_RATE;
/**
 * Every session is decoded at twice real time whatever others send: 0.7 % of the main thread at
 * worst. What is more than that comes out of a budget that all sessions share: 60 times real time,
 * 10 to 21 % of the thread.
 */
const FAIR_DECODE_RATE = 2 * SPEECH_RATE;
const SHARED_DECODE_RATE = 60 * SPEECH_RATE;
const SHARED_DECODE_BURST = 60 * SPEECH_RATE;

/** The decoding that all sessions share beyond the fair share of each. */
export const sharedDecoding = (nowMs: number): TokenBucket =>
  new TokenBucket(SHARED_DECODE_RATE, SHARED_DECODE_BURST, nowMs);

/** Charged for a shorter packet, since each packet has a fixed cost. */
const LEAST_DECODE_SAMPLES = (10 * SPEECH_RATE) / 1000;

/** Scratch memory of all sessions: nothing in it outlives a call. */
const packetBytes = new Uint8Array(LENGTH_BYTES + MAX_PACKET_BYTES);
const packetView = new DataView(packetBytes.buffer);
const samples = new Int16Array(MAX_PACKET_SAMPLES);

/** Frame durations by the configuration number (RFC 6716 table 2). */
const SILK_MS = [10, 20, 40, 60];
const HYBRID_MS = [10, 20];
const CELT_MS = [2.5, 5, 10, 20];

/**
 * Samples at SPEECH_RATE in a packet, by its header (RFC 6716 section 3.1); 0 when it is not a
 * valid packet.
 */
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

/**
 * One Opus packet per message. Every packet takes the time that its header tells, decoded or not:
 * positions are known before the packets are decoded.
 */
export class OpusIngress implements AudioIngress {
  readonly memory = createSpeechRing();
  invalidMessages = 0;
  readonly #ring = new SpeechRingWriter(this.memory);
  readonly #waiting: ByteQueue;
  #waitingSamples = 0;
  readonly #decoding: TokenBucket;
  readonly #fairDecoding: TokenBucket;
  readonly #sharedDecoding: TokenBucket;
  #decoder: OpusDecoder | undefined;
  #isDone = false;

  constructor(
    nowMs: number,
    pool = new BlockPool(MAX_WAITING_BYTES_TOTAL),
    shared = sharedDecoding(nowMs),
  ) {
    this.#waiting = new ByteQueue(pool);
    this.#decoding = new TokenBucket(DECODE_RATE, DECODE_BURST, nowMs);
    this.#fairDecoding = new TokenBucket(FAIR_DECODE_RATE, DECODE_BURST, nowMs);
    this.#sharedDecoding = shared;
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
    this.#ring.flush(nowMs);
  }

  done(): void {
    this.#isDone = true;
    if (!this.hasBacklog) {
      this.#ring.done();
    }
  }

  get writtenPosition(): number {
    return (this.#ring.written + this.#waitingSamples) | 0;
  }
  get heardPosition(): number {
    return this.#ring.heard;
  }

  get hasBacklog(): boolean {
    return this.#waiting.length > 0;
  }

  pump(nowMs: number): void {
    while (this.#waiting.length > 0) {
      if (this.#ring.unheard >= LEAD_SAMPLES || this.#ring.free < MAX_PACKET_SAMPLES) {
        return;
      }
      this.#waiting.peek(packetBytes, LENGTH_BYTES);
      const total = LENGTH_BYTES + packetView.getUint16(0);
      this.#waiting.peek(packetBytes, total);
      const packet = packetBytes.subarray(LENGTH_BYTES, total);
      const count = samplesInPacket(packet);
      if (!this.#mayDecode(Math.max(LEAST_DECODE_SAMPLES, count), nowMs)) {
        return;
      }
      this.#waiting.drop(total);
      this.#waitingSamples -= count;
      this.#decode(packet, count);
      this.#ring.write(samples, nowMs, 0, count);
    }
    if (this.#isDone) {
      this.#ring.done();
    }
  }

  /** What must wait is decoded by one of the next calls of `pump`. */
  #mayDecode(cost: number, nowMs: number): boolean {
    return (
      this.#decoding.take(cost, nowMs) &&
      (this.#fairDecoding.take(cost, nowMs) || this.#sharedDecoding.take(cost, nowMs))
    );
  }

  /** Decodes into the first `count` of `samples`. A packet that cannot be decoded is silence. */
  #decode(packet: Uint8Array, count: number): void {
    this.#decoder ??= new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
    try {
      this.#decoder.decode(packet, samples);
    } catch {
      this.invalidMessages++;
      samples.fill(0, 0, count);
    }
  }

  close(): void {
    this.#waiting.clear();
    this.#decoder?.close();
    this.#decoder = undefined;
  }
}
