// The bytes of a body as they come, in few pieces: a chunk of one byte must not cost an object.

export type Chunk = Uint8Array<ArrayBuffer>;

const BLOCK_BYTES = 16 * 1024;

export class Blocks {
  #done: Chunk[] = [];
  #block: Chunk | undefined;
  #used = 0;

  /** Copies `chunk`, which uWebSockets.js takes back when its callback returns. */
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

  /** All that was added, in order, each in a buffer of its own. Nothing can be added afterwards. */
  finish(): readonly Chunk[] {
    this.#close();
    return this.#done;
  }

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
