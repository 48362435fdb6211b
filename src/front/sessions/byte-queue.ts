// Bytes that wait, first in first out, in blocks of one size: small pieces are joined, and all sessions share one bound.

const BLOCK_BYTES = 65_536;

/** Blocks that are kept for the next one who needs them: to make one takes 20 us, and a client that interrupts itself needs one each time. */
const MAX_SPARE = 64;

/** Bounds the memory of all queues together. */
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

  has(blocks: number): boolean {
    return this.#used + blocks <= this.#limit;
  }

  /** A block with anything in it; undefined when all are in use. */
  take(): Uint8Array | undefined {
    if (!this.has(1)) {
      return undefined;
    }
    this.#used++;
    return this.#spare.pop() ?? new Uint8Array(BLOCK_BYTES);
  }

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

export class ByteQueue {
  readonly #pool: BlockPool;
  #head: Block | undefined;
  #tail: Block | undefined;
  /** Where the first byte is in the first block, and where the next one goes in the last. */
  #from = 0;
  #to = 0;
  #length = 0;

  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  get length(): number {
    return this.#length;
  }

  /** Copies `bytes` from `from` to `to` to the end. @returns bytes taken; fewer when the pool is used up */
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

  /** Copies the first bytes to `out` and leaves them in the queue. @returns how many: all there are, up to `limit` */
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

  /** Forgets the first `count` bytes. @throws RangeError when there are not so many */
  drop(count: number): void {
    if (count > this.#length) {
      throw new RangeError(`${count} bytes to be dropped of ${this.#length}`);
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

/** Below this a loop is faster than the view that `set` needs of a part. */
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
