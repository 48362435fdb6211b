// The speech ring: a session's speech from the front to its worker. A ring buffer in shared memory
// with one producer and one consumer.
import { SPEECH_RATE } from '../media/timeline.ts';

/**
 * Layout: HEADER_WORDS int32 control words, then SPEECH_RING_SAMPLES int16 samples. Positions count
 * samples since the start of the session and wrap at 2^32, so differences are taken modulo 2^32. A
 * position's place in the ring is the position modulo SPEECH_RING_SAMPLES.
 * - written: the first sample not yet written. Only the producer moves it.
 * - read: the first sample not yet consumed. Only the consumer moves it.
 * - flushed: samples before it must be dropped (SKIP, PLAY_IMMEDIATE). Only the producer moves it;
 *   `flushes` counts.
 * - done: 1 once the producer has said that nothing follows.
 * - heard: the position that the listener has reached, up to 20 ms late. Only the consumer moves it.
 * - arrival (float64 in words 6 and 7): monotonic time of the last write to a ring that was empty or
 *   flushed.
 * - flush time (float64 in words 8 and 9): monotonic time of the last flush.
 */
const WRITTEN = 0;
const READ = 1;
const FLUSHED = 2;
const FLUSHES = 3;
const DONE = 4;
const HEARD = 5;
const ARRIVAL_BYTE = 24;
const FLUSH_BYTE = 32;
const HEADER_WORDS = 12;

/**
 * 65.5 s; a power of two, so that places stay right when positions wrap. More speech waits in the
 * front.
 */
export const SPEECH_RING_SAMPLES = 1 << 20;
/** SPEECH_RING_SAMPLES as a time. */
export const SPEECH_RING_SECONDS = SPEECH_RING_SAMPLES / SPEECH_RATE;

/** Below this many samples a loop is faster than a view. */
const SHORT_COPY = 64;

/** Memory for one session's ring. */
export const createSpeechRing = (): SharedArrayBuffer =>
  new SharedArrayBuffer(HEADER_WORDS * 4 + SPEECH_RING_SAMPLES * 2);

/** What both ends share. */
class RingEnd {
  protected readonly control: Int32Array;
  protected readonly samples: Int16Array;
  protected readonly arrival: Float64Array;
  protected readonly flushTime: Float64Array;

  constructor(memory: SharedArrayBuffer) {
    this.control = new Int32Array(memory, 0, HEADER_WORDS);
    this.arrival = new Float64Array(memory, ARRIVAL_BYTE, 1);
    this.flushTime = new Float64Array(memory, FLUSH_BYTE, 1);
    this.samples = new Int16Array(memory, HEADER_WORDS * 4, SPEECH_RING_SAMPLES);
  }

  /**
   * Samples written and not yet consumed. Flushed ones count until the consumer has seen the flush.
   */
  get length(): number {
    return (Atomics.load(this.control, WRITTEN) - Atomics.load(this.control, READ)) >>> 0;
  }
}

/** The front's end. */
export class SpeechRingWriter extends RingEnd {
  /** Samples that fit now. */
  get free(): number {
    return SPEECH_RING_SAMPLES - this.length;
  }

  /** Samples written since the last flush and not yet consumed. */
  get unheard(): number {
    return Math.min(
      this.length,
      (Atomics.load(this.control, WRITTEN) - Atomics.load(this.control, FLUSHED)) >>> 0,
    );
  }

  /** Position of the next sample that will be written. */
  get written(): number {
    return Atomics.load(this.control, WRITTEN);
  }

  /** Position that the listener has reached. Flushed samples count as passed. */
  get heard(): number {
    return Atomics.load(this.control, HEARD);
  }

  /** Copies as many of `pcm` from `from` to `to` as fit. @returns samples taken. */
  write(pcm: Int16Array, nowMs: number, from = 0, to = pcm.length): number {
    const { length } = this;
    // What a flush dropped may still be there, but what follows it arrives now.
    if (this.unheard === 0) {
      this.arrival[0] = nowMs;
    }
    const count = Math.min(to - from, SPEECH_RING_SAMPLES - length);
    const written = Atomics.load(this.control, WRITTEN);
    const start = (written >>> 0) % SPEECH_RING_SAMPLES;
    const first = Math.min(count, SPEECH_RING_SAMPLES - start);
    this.#copy(pcm, from, first, start);
    this.#copy(pcm, from + first, count - first, 0);
    Atomics.store(this.control, WRITTEN, (written + count) | 0);
    return count;
  }

  /** Makes a view only where that is worth its allocation. */
  #copy(pcm: Int16Array, from: number, count: number, at: number): void {
    if (count < SHORT_COPY) {
      for (let i = 0; i < count; i++) {
        this.samples[at + i] = pcm[from + i]!;
      }
    } else {
      this.samples.set(pcm.subarray(from, from + count), at);
    }
  }

  /** Drops everything written so far that was not consumed. */
  flush(nowMs: number): void {
    this.flushTime[0] = nowMs;
    Atomics.store(this.control, FLUSHED, Atomics.load(this.control, WRITTEN));
    Atomics.add(this.control, FLUSHES, 1);
  }

  /** Nothing follows. */
  done(): void {
    Atomics.store(this.control, DONE, 1);
  }
}

/** The worker's end. */
export class SpeechRingReader extends RingEnd {
  #flushesSeen = 0;

  /** Monotonic time of the last write to a ring that was empty or flushed. */
  get arrivalMs(): number {
    return this.arrival[0]!;
  }

  /** Monotonic time of the last flush. */
  get flushMs(): number {
    return this.flushTime[0]!;
  }

  /** The producer has said that nothing follows. */
  get isDone(): boolean {
    return Atomics.load(this.control, DONE) === 1;
  }

  /**
   * Skips the samples that a flush dropped.
   * @returns true if there was a flush since the last call
   */
  takeFlush(): boolean {
    const flushes = Atomics.load(this.control, FLUSHES);
    if (flushes === this.#flushesSeen) {
      return false;
    }
    this.#flushesSeen = flushes;
    const flushed = Atomics.load(this.control, FLUSHED);
    // Samples that followed the flush may have been read already: never move back.
    if (((flushed - Atomics.load(this.control, READ)) | 0) > 0) {
      Atomics.store(this.control, READ, flushed);
    }
    return true;
  }

  /** The listener has heard all but the last `unheard` of the samples that were read. */
  setHeard(unheard: number): void {
    Atomics.store(this.control, HEARD, (Atomics.load(this.control, READ) - unheard) | 0);
  }

  /** Copies up to `count` samples to `out[offset]` and consumes them. @returns samples copied. */
  read(out: Int16Array, offset: number, count: number): number {
    const take = Math.min(count, this.length);
    const read = Atomics.load(this.control, READ);
    const start = (read >>> 0) % SPEECH_RING_SAMPLES;
    const first = Math.min(take, SPEECH_RING_SAMPLES - start);
    for (let i = 0; i < first; i++) {
      out[offset + i] = this.samples[start + i]!;
    }
    for (let i = first; i < take; i++) {
      out[offset + i] = this.samples[i - first]!;
    }
    Atomics.store(this.control, READ, (read + take) | 0);
    return take;
  }
}
