// A session's speech as it comes off the socket: whole samples out of bytes, into the lane, and what the lane cannot hold yet kept here.
import { SPEECH_RING_SECONDS, SpeechRingWriter, createSpeechRing } from '../../link/speech-ring.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { BlockPool, ByteQueue } from './byte-queue.ts';

/** Speech that may wait for its turn, lane included: a client that sends a whole lecture at once is served, one that never stops is not. */
export const MAX_BACKLOG_SECONDS = 600;
const MAX_WAITING_BYTES = (MAX_BACKLOG_SECONDS - SPEECH_RING_SECONDS) * SPEECH_RATE * 2;

/** Speech waiting in the front, of all sessions together: 15 sessions at their bound, or 256 that wait for half a minute each. */
export const MAX_WAITING_BYTES_TOTAL = 256 << 20;

/** Takes a session's audio messages and fills its lane. */
export interface SpeechInlet {
  readonly memory: SharedArrayBuffer;
  /** Messages that held no audio. */
  readonly invalidMessages: number;
  readonly hasBacklog: boolean;
  /** Samples in one message, before any is dropped. */
  samplesIn(message: Uint8Array): number;
  /** Takes one message, which is copied. @returns samples dropped because the backlog is full; 0 normally */
  push(message: Uint8Array, nowMs: number): number;
  /** SKIP: everything sent so far is to be forgotten. */
  flush(nowMs: number): void;
  /** DONE: nothing follows. Audio that comes all the same is dropped. */
  done(): void;
  /** Moves what waits into the lane as it drains; to be called a few times a second while there is a backlog. */
  pump(nowMs: number): void;
  /** Gives back what it holds. It must not be used afterwards. */
  close(): void;
}

/** Pieces shorter than this are copied once more instead of making a view, which costs more. */
const VIEW_WORTH_BYTES = 512;
const PUMP_SAMPLES = 32_768;
/** Shared by all sessions: nothing of it outlives a call. */
const scratch = new Int16Array(PUMP_SAMPLES);
const scratchBytes = new Uint8Array(scratch.buffer);

/** PCM16 little-endian, mono, at SPEECH_RATE. */
export class AudioIngress implements SpeechInlet {
  readonly memory = createSpeechRing();
  readonly invalidMessages = 0;
  readonly #lane = new SpeechRingWriter(this.memory);
  readonly #waiting: ByteQueue;
  #oddByte = -1;
  #isDone = false;

  constructor(pool = new BlockPool(MAX_WAITING_BYTES_TOTAL)) {
    this.#waiting = new ByteQueue(pool);
  }

  samplesIn(message: Uint8Array): number {
    return message.length / 2;
  }

  /**
   * A dangling byte is kept: if the next message is odd too, the two were one stream cut in the middle of a sample; if it is even, the
   * byte was a stray.
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

  /** `samples` and `bytes` are two views of the same. @returns samples dropped */
  #take(samples: Int16Array, bytes: Uint8Array, count: number, nowMs: number): number {
    const taken = this.#waiting.length === 0 ? this.#lane.write(samples, nowMs, 0, count) : 0;
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
    this.#lane.flush(nowMs);
  }

  done(): void {
    this.#isDone = true;
    if (this.#waiting.length === 0) {
      this.#lane.done();
    }
  }

  get hasBacklog(): boolean {
    return this.#waiting.length > 0;
  }

  pump(nowMs: number): void {
    while (this.#waiting.length > 0) {
      const count = this.#waiting.peek(scratchBytes) >> 1;
      const taken = this.#lane.write(scratch, nowMs, 0, count);
      this.#waiting.drop(taken * 2);
      if (taken < count) {
        return;
      }
    }
    if (this.#isDone) {
      this.#lane.done();
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
