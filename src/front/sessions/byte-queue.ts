// A queue of bytes in blocks of one size: small pieces share a block, and all queues share one
// memory limit.

const BLOCK_BYTES = 65_536;

/**
 * Free blocks that are kept for reuse. Allocating one takes 20 us (measured), and a client that
 * interrupts itself needs one each time.
 */
const MAX_SPARE = 64;

/** The blocks of all queues, within one limit. */
export class BlockPool {
  readonly #limit: number;
  readonly #spare: Uint8Array[] = [];
  #used = 0;

  /** @param limitBytes rounded down to whole blocks */
  constructor(limitBytes: number) {
    this.#limit = Math.floor(limitBytes / BLOCK_BYTES);
  }

  get usedBytes(): number {
    return this.#used * BLOCK_BYTES;
  }

  /** Whether so many blocks are free. */
  has(blocks: number): boolean {
    return this.#used + blocks <= this.#limit;
  }

  /** A block with arbitrary content; undefined when all are in use. */
  take(): Uint8Array | undefined {
    if (!this.has(1)) {
      return undefined;
    }
    this.#used++;
    return this.#spare.pop() ?? new Uint8Array(BLOCK_BYTES);
  }

  /** Returns a block. Do not use it afterwards. */
  giveBack(block: Uint8Array): void {
    this.#used--;
    if (this.#spare.length < MAX_SPARE) {
      this.#spare.push(block);
    }
  }
}

interface Block {
  readonly bytes: Uint8Array;
  next: Block | undefined;
}

/** Bytes, first in first out. */
export class ByteQueue {
  readonly #pool: BlockPool;
  #head: Block | undefined;
  #tail: Block | undefined;
  /** Offset of the first byte in the first block, and of the end in the last block. */
  #from = 0;
  #to = 0;
  #length = 0;

  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Appends a copy of `bytes` from `from` to `to`.
   * @returns bytes taken: fewer when the pool is used up
   */
  push(bytes: Uint8Array, from = 0, to = bytes.length): number {
    let at = from;
    while (at < to) {
      if ((this.#tail === undefined || this.#to === BLOCK_BYTES) && !this.#grow()) {
        break;
      }
      const count = Math.min(to - at, BLOCK_BYTES - this.#to);
      copy(bytes, at, this.#tail!.bytes, this.#to, count);
      at += count;
      this.#to += count;
    }
    this.#length += at - from;
    return at - from;
  }

  /** Whether the pool has room for `count` bytes more. */
  fits(count: number): boolean {
    const room = this.#tail === undefined ? 0 : BLOCK_BYTES - this.#to;
    return count <= room || this.#pool.has(Math.ceil((count - room) / BLOCK_BYTES));
  }

  /**
   * Copies the first bytes to `out` and leaves them in the queue.
   * @returns how many: all there are, up to `limit`
   */
  peek(out: Uint8Array, limit = out.length): number {
    const count = Math.min(limit, this.#length);
    let block = this.#head;
    let from = this.#from;
    for (let at = 0; at < count; block = block!.next, from = 0) {
      const piece = Math.min(count - at, BLOCK_BYTES - from);
      copy(block!.bytes, from, out, at, piece);
      at += piece;
    }
    return count;
  }

  /** Removes the first `count` bytes. @throws RangeError when there are fewer */
  drop(count: number): void {
    if (count > this.#length) {
      throw new RangeError(`cannot drop ${count} bytes of ${this.#length}`);
    }
    this.#length -= count;
    if (this.#length === 0) {
      this.clear();
      return;
    }
    this.#from += count;
    while (this.#from >= BLOCK_BYTES) {
      this.#from -= BLOCK_BYTES;
      this.#pool.giveBack(this.#head!.bytes);
      this.#head = this.#head!.next;
    }
  }

  clear(): void {
    for (let block = this.#head; block !== undefined; block = block.next) {
      this.#pool.giveBack(block.bytes);
    }
    this.#head = this.#tail = undefined;
    this.#from = this.#to = this.#length = 0;
  }

  #grow(): boolean {
    const bytes = this.#pool.take();
    if (bytes === undefined) {
      return false;
    }
    const block: Block = { bytes, next: undefined };
    if (this.#tail === undefined) {
      this.#head = block;
    } else {
      this.#tail.next = block;
    }
    this.#tail = block;
    this.#to = 0;
    return true;
  }
}

/** Below this a loop is faster than `set`, which needs a view of the part. */
const SHORT_COPY = 64;

function copy(
  source: Uint8Array,
  from: number,
  target: Uint8Array,
  to: number,
  count: number,
): void {
  if (count < SHORT_COPY) {
    for (let i = 0; i < count; i++) {
      target[to + i] = source[from + i]!;
    }
  } else {
    target.set(source.subarray(from, from + count), to);
  }
}
