// A FIFO of samples between producers and consumers with different block sizes.

/** Grows as needed; 16-bit samples, interleaved or mono. */
export class SampleQueue {
  /** Number of samples taken since the start. */
  taken = 0;
  #buffer = new Int16Array(1 << 14);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Appends a copy of the samples. */
  push(samples: Int16Array): void {
    this.#makeRoom(samples.length);
    this.#buffer.set(samples, this.#end);
    this.#end += samples.length;
  }

  /**
   * Moves up to `count` samples to the beginning of `out`.
   * @returns how many
   */
  take(out: Int16Array, count: number): number {
    const got = Math.min(count, this.length);
    out.set(this.#buffer.subarray(this.#start, this.#start + got));
    this.#start += got;
    this.taken += got;
    return got;
  }

  #makeRoom(count: number): void {
    if (this.#end + count <= this.#buffer.length) {
      return;
    }
    const { length } = this;
    const target =
      length + count > this.#buffer.length ? new Int16Array(2 * (length + count)) : this.#buffer;
    if (target === this.#buffer) {
      target.copyWithin(0, this.#start, this.#end);
    } else {
      target.set(this.#buffer.subarray(this.#start, this.#end));
    }
    this.#buffer = target;
    this.#start = 0;
    this.#end = length;
  }
}
