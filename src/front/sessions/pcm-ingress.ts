// Speech that arrives as PCM: makes whole samples of the bytes, and keeps what the speech ring
// cannot hold yet.
import { SpeechRingWriter, createSpeechRing } from '../../link/speech-ring.ts';
import { type AudioIngress, MAX_WAITING_BYTES, MAX_WAITING_BYTES_TOTAL } from './audio-ingress.ts';
import { BlockPool, ByteQueue } from './byte-queue.ts';

/** For a shorter message a copy, byte by byte, is cheaper than a typed-array view. */
const VIEW_WORTH_BYTES = 512;
const PUMP_SAMPLES = 32_768;
/** Scratch memory of all sessions: nothing in it outlives a call. */
const scratch = new Int16Array(PUMP_SAMPLES);
const scratchBytes = new Uint8Array(scratch.buffer);

/** PCM16 little-endian, mono, at SPEECH_RATE. */
export class PcmIngress implements AudioIngress {
  readonly memory = createSpeechRing();
  readonly invalidMessages = 0;
  readonly #ring = new SpeechRingWriter(this.memory);
  readonly #waiting: ByteQueue;
  /** The last byte of a message of odd length; -1: none. */
  #oddByte = -1;
  #isDone = false;

  constructor(pool = new BlockPool(MAX_WAITING_BYTES_TOTAL)) {
    this.#waiting = new ByteQueue(pool);
  }

  samplesIn(message: Uint8Array): number {
    return message.length / 2;
  }

  /**
   * Keeps the last byte of a message of odd length. If the next message is odd too, the client cut
   * its stream within a sample, and the two bytes belong together. If it is even, the byte is
   * dropped.
   */
  push(message: Uint8Array, nowMs: number): number {
    const { length } = message;
    if (length === 0 || this.#isDone) {
      return 0;
    }
    const joins = this.#oddByte >= 0 && length % 2 === 1;
    const bytes = joins ? joined(this.#oddByte, message) : message;
    this.#oddByte = bytes.length % 2 === 1 ? bytes[bytes.length - 1]! : -1;
    const count = bytes.length >> 1;
    if (length < VIEW_WORTH_BYTES) {
      for (let i = 0; i < bytes.length; i++) {
        scratchBytes[i] = bytes[i]!;
      }
      return this.#take(scratch, scratchBytes, count, nowMs);
    }
    const aligned = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
    return this.#take(
      new Int16Array(aligned.buffer, aligned.byteOffset, count),
      aligned,
      count,
      nowMs,
    );
  }

  /** `samples` and `bytes` are two views of the same memory. @returns samples dropped */
  #take(samples: Int16Array, bytes: Uint8Array, count: number, nowMs: number): number {
    const taken = this.#waiting.length === 0 ? this.#ring.write(samples, nowMs, 0, count) : 0;
    if (taken === count) {
      return 0;
    }
    const end = Math.min(
      count * 2,
      taken * 2 + Math.max(0, MAX_WAITING_BYTES - this.#waiting.length),
    );
    return count - taken - this.#waiting.push(bytes, taken * 2, end) / 2;
  }

  flush(nowMs: number): void {
    this.#waiting.clear();
    this.#oddByte = -1;
    this.#ring.flush(nowMs);
  }

  done(): void {
    this.#isDone = true;
    if (this.#waiting.length === 0) {
      this.#ring.done();
    }
  }

  get writtenPosition(): number {
    return this.#ring.written + this.#waiting.length / 2;
  }
  get heardPosition(): number {
    return this.#ring.heard;
  }

  get hasBacklog(): boolean {
    return this.#waiting.length > 0;
  }

  pump(nowMs: number): void {
    while (this.#waiting.length > 0) {
      const count = this.#waiting.peek(scratchBytes) >> 1;
      const taken = this.#ring.write(scratch, nowMs, 0, count);
      this.#waiting.drop(taken * 2);
      if (taken < count) {
        return;
      }
    }
    if (this.#isDone) {
      this.#ring.done();
    }
  }

  close(): void {
    this.#waiting.clear();
  }
}

function joined(first: number, rest: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(rest.length + 1);
  bytes[0] = first;
  bytes.set(rest, 1);
  return bytes;
}
