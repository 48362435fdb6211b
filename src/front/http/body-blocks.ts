// Collects the bytes of a body in few buffers, so that a body of tiny chunks does not need one
// object for each chunk.

/** A piece of a body in a buffer of its own. */
export type Chunk = Uint8Array<ArrayBuffer>;

/** Small chunks share buffers of this size. */
const BLOCK_BYTES = 16 * 1024;

/** A growing list of body bytes. */
export class Blocks {
  #done: Chunk[] = [];
  #block: Chunk | undefined;
  #used = 0;

  /** Appends a copy of `chunk`: uWebSockets.js reuses its memory when its callback returns. */
  add(chunk: ArrayBuffer, isLast: boolean): void {
    const { byteLength } = chunk;
    if (byteLength === 0) {
      return;
    }
    if (this.#block !== undefined && byteLength > this.#block.length - this.#used) {
      this.#close();
    }
    const isAlone = this.#block === undefined && (isLast || byteLength >= BLOCK_BYTES / 2);
    if (isAlone) {
      this.#done.push(new Uint8Array(chunk.slice(0)));
      return;
    }
    this.#block ??= new Uint8Array(BLOCK_BYTES);
    this.#block.set(new Uint8Array(chunk), this.#used);
    this.#used += byteLength;
  }

  /** All bytes in order, each piece in a buffer of its own. Add nothing afterwards. */
  finish(): readonly Chunk[] {
    this.#close();
    return this.#done;
  }

  /** Frees all bytes. */
  clear(): void {
    this.#done = [];
    this.#block = undefined;
    this.#used = 0;
  }

  #close(): void {
    if (this.#block !== undefined) {
      this.#done.push(this.#block.subarray(0, this.#used));
    }
    this.#block = undefined;
    this.#used = 0;
  }
}
