// A first-in first-out queue of PCM samples between two blocks of code with different block sizes.
//
// The other buffers of samples are not queues of this kind, each for a reason: link/speech-ring.ts
// lies in memory shared by two threads; pipeline/speech/speech-stream.ts has two readers at
// different positions of the same samples; front/sessions/byte-queue.ts takes its memory from a
// pool that all sessions share.

const INITIAL_SAMPLES = 1 << 14;

/** For one thread. Grows as needed: whoever fills it bounds it (`drop`). */
export class SampleQueue {
  #buffer = new Int16Array(INITIAL_SAMPLES);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Appends the first `count` samples. */
  push(samples: Int16Array, count = samples.length): void {
    this.#makeRoom(count);
    this.#buffer.set(count === samples.length ? samples : samples.subarray(0, count), this.#end);
    this.#end += count;
  }

  /** Moves up to `count` samples to `out`, from `offset` on. @returns how many */
  take(out: Int16Array, count: number, offset = 0): number {
    const got = Math.min(count, this.length);
    out.set(this.#buffer.subarray(this.#start, this.#start + got), offset);
    this.drop(got);
    return got;
  }

  /** Forgets the `count` oldest samples, or all there are; a count below 0 does nothing. */
  drop(count: number): void {
    this.#start += Math.max(0, Math.min(count, this.length));
  }

  #makeRoom(count: number): void {
    if (this.#end + count <= this.#buffer.length) {
      return;
    }
    const { length } = this;
    if (length + count > this.#buffer.length) {
      const larger = new Int16Array(2 * (length + count));
      larger.set(this.#buffer.subarray(this.#start, this.#end));
      this.#buffer = larger;
    } else {
      this.#buffer.copyWithin(0, this.#start, this.#end);
    }
    this.#start = 0;
    this.#end = length;
  }
}
