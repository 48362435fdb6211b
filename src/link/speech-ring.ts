// A session's speech on its way from the front to its worker: a single-producer single-consumer ring in shared memory.

import { SPEECH_RATE } from '../media/timeline.ts';

/**
 * Layout: HEADER_WORDS int32 control words, then CAPACITY_SAMPLES int16. Positions count samples since the start of the session and
 * wrap at 2^32, so their difference is taken modulo 2^32; a position's place in the ring is position modulo the capacity.
 * - written: first sample not yet written. Only the producer moves it.
 * - read: first sample not yet consumed. Only the consumer moves it.
 * - flushed: everything before it is to be forgotten at once (SKIP, PLAY_IMMEDIATE). Only the producer moves it; `flushes` counts.
 * - done: 1 once the producer said that nothing follows.
 * - arrival (float64 in words 6 and 7): monotonic time at which the samples at the head of an empty lane came in, for the latency ledger.
 * - flush time (float64 in words 8 and 9): when the last flush was asked for.
 */
const WRITTEN = 0;
const READ = 1;
const FLUSHED = 2;
const FLUSHES = 3;
const DONE = 4;
const ARRIVAL_BYTE = 24;
const FLUSH_BYTE = 32;
const HEADER_WORDS = 12;

/** A power of two, 65.5 s: what is beyond it waits in the front, which is not tied to a frame's pace. */
export const SPEECH_RING_SAMPLES = 1 << 20;
export const SPEECH_RING_SECONDS = SPEECH_RING_SAMPLES / SPEECH_RATE;

/** Samples up to which a loop is faster than making a view. */
const SHORT_COPY = 64;

export const createSpeechRing = (): SharedArrayBuffer =>
  new SharedArrayBuffer(HEADER_WORDS * 4 + SPEECH_RING_SAMPLES * 2);

class Lane {
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

  /** Samples written and not yet consumed (a flush that the consumer has not seen yet still counts them). */
  get length(): number {
    return (Atomics.load(this.control, WRITTEN) - Atomics.load(this.control, READ)) >>> 0;
  }
}

/** The front's end of the lane. */
export class SpeechRingWriter extends Lane {
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

  /** Copies as many of `pcm` from `from` to `to` as fit. @returns samples taken. */
  write(pcm: Int16Array, nowMs: number, from = 0, to = pcm.length): number {
    const { length } = this;
    if (length === 0) {
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

  /** Views are only made where they are worth their allocation. */
  #copy(pcm: Int16Array, from: number, count: number, at: number): void {
    if (count < SHORT_COPY) {
      for (let i = 0; i < count; i++) {
        this.samples[at + i] = pcm[from + i]!;
      }
    } else {
      this.samples.set(pcm.subarray(from, from + count), at);
    }
  }

  /** Everything written so far is to be dropped, unheard. */
  flush(nowMs: number): void {
    this.flushTime[0] = nowMs;
    Atomics.store(this.control, FLUSHED, Atomics.load(this.control, WRITTEN));
    Atomics.add(this.control, FLUSHES, 1);
  }

  done(): void {
    Atomics.store(this.control, DONE, 1);
  }
}

/** The worker's end of the lane. */
export class SpeechRingReader extends Lane {
  #flushesSeen = 0;

  /** When the samples came in that were written last to an empty lane (`monotonicMs`). */
  get arrivalMs(): number {
    return this.arrival[0]!;
  }

  get flushMs(): number {
    return this.flushTime[0]!;
  }

  get isDone(): boolean {
    return Atomics.load(this.control, DONE) === 1;
  }

  /** Skips what a flush dropped. @returns true if there was a flush since the last call. */
  takeFlush(): boolean {
    const flushes = Atomics.load(this.control, FLUSHES);
    if (flushes === this.#flushesSeen) {
      return false;
    }
    this.#flushesSeen = flushes;
    const flushed = Atomics.load(this.control, FLUSHED);
    // A consumer that already ran past the flush point (it cannot: it never reads unwritten samples) would be moved back here.
    if (((flushed - Atomics.load(this.control, READ)) | 0) > 0) {
      Atomics.store(this.control, READ, flushed);
    }
    return true;
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
