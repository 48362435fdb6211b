// What arrives on an SCTP association: acknowledges chunks, assembles fragments, restores the order
// of each stream (RFC 9260 sections 6.2 to 6.6, RFC 3758).
import { DATA_FLAG, DATA_HEADER_BYTES, isAfter, tsnPlus, type Chunk } from './packets.ts';

/** A whole message. `protocol`: its payload protocol identifier. */
export interface InboundMessage {
  readonly stream: number;
  readonly protocol: number;
  readonly data: Buffer;
}

/** Advertised: bytes that may wait for missing chunks. */
export const RECEIVE_WINDOW = 256 * 1024;
/** Streams of the other side. */
export const MAX_INBOUND_STREAMS = 1_024;
/** Longest message: as our descriptions say. */
const MAX_INBOUND_BYTES = 65_536;
/** Chunks that may wait, however short. */
const MAX_WAITING_CHUNKS = 2_048;
/** Ranges of chunks that have arrived ahead of a missing one. */
const MAX_RANGES = 256;
/** How far ahead of the first missing chunk. */
const MAX_TSN_AHEAD = 8_192;
/** Repeated TSNs that one SACK reports. */
const MAX_DUPLICATES = 32;
/** Gap blocks of one SACK. The first ones are those that the other side needs most. */
const MAX_GAP_BLOCKS = 128;

/** Consecutive TSNs that have arrived. */
interface Range {
  first: number;
  last: number;
}

/** Consecutive fragments of one message. */
interface Run extends Range {
  readonly stream: number;
  readonly sequence: number;
  readonly isUnordered: boolean;
  readonly protocol: number;
  isBegun: boolean;
  isEnded: boolean;
  bytes: number;
  parts: Buffer[];
}

/** Order of one stream. `waiting`: whole messages by sequence number. */
interface Stream {
  next: number;
  readonly waiting: Map<number, InboundMessage>;
}

/** The other side does not keep to the protocol: the association is to be aborted. */
export class ProtocolViolation extends Error {}

/** The receiving half of an association. */
export class Inbound {
  /** All chunks up to this TSN have arrived. */
  #cumulative: number;
  /** What has arrived beyond it, in order, not adjacent. */
  readonly #ranges: Range[] = [];
  readonly #byFirst = new Map<number, Run>();
  readonly #byLast = new Map<number, Run>();
  readonly #streams = new Map<number, Stream>();
  #duplicates: number[] = [];
  #hasRepeats = false;
  #waitingBytes = 0;
  #waitingChunks = 0;

  /** @param tsn the first that will come */
  constructor(tsn: number) {
    this.#cumulative = tsnPlus(tsn, -1);
  }

  /**
   * Takes one DATA chunk.
   * @returns the messages that it makes deliverable, in order
   * @throws ProtocolViolation
   */
  receive({ flags, body }: Chunk): readonly InboundMessage[] {
    if (body.length <= DATA_HEADER_BYTES) {
      throw new ProtocolViolation('a DATA chunk without data');
    }
    const tsn = body.readUInt32BE(0);
    const bytes = body.length - DATA_HEADER_BYTES;
    if (!this.#accept(tsn, bytes)) {
      return [];
    }
    const stream = body.readUInt16BE(4);
    if (stream >= MAX_INBOUND_STREAMS) {
      return [];
    }
    const run: Run = {
      first: tsn,
      last: tsn,
      stream,
      sequence: body.readUInt16BE(6),
      isUnordered: (flags & DATA_FLAG.unordered) !== 0,
      protocol: body.readUInt32BE(8),
      isBegun: (flags & DATA_FLAG.begins) !== 0,
      isEnded: (flags & DATA_FLAG.ends) !== 0,
      bytes,
      // A copy: a view would keep the whole datagram.
      parts: [Buffer.from(body.subarray(DATA_HEADER_BYTES))],
    };
    this.#hold(bytes, 1);
    return this.#assemble(run);
  }

  /**
   * FORWARD TSN (RFC 3758 section 3.6): the other side has given up chunks up to a TSN.
   * @returns the messages that were waiting for them
   */
  skip(body: Buffer): readonly InboundMessage[] {
    if (body.length < 4) {
      throw new ProtocolViolation('a short FORWARD TSN');
    }
    const tsn = body.readUInt32BE(0);
    if (!isAfter(tsn, this.#cumulative)) {
      return [];
    }
    this.#advanceTo(tsn);
    for (const run of [...this.#byFirst.values()]) {
      const lacksEnd = !run.isEnded && isAfter(tsn, run.last);
      const lacksBegin = !run.isBegun && !isAfter(tsnPlus(run.first, -1), tsn);
      if (lacksEnd || lacksBegin) {
        this.#discard(run);
      }
    }
    const messages: InboundMessage[] = [];
    for (let at = 4; at + 4 <= body.length; at += 4) {
      const stream = this.#streams.get(body.readUInt16BE(at));
      const skipped = body.readUInt16BE(at + 2);
      if (stream === undefined) {
        this.#openStream(body.readUInt16BE(at), (skipped + 1) & 0xffff);
      } else {
        messages.push(...this.#skipStream(stream, skipped));
      }
    }
    return messages;
  }

  /** Something is missing, or came again because its SACK was lost. */
  get hasSeenLoss(): boolean {
    return this.#ranges.length > 0 || this.#hasRepeats;
  }

  /** The body of a SACK (RFC 9260 section 3.3.4). */
  sack(): Buffer {
    const blocks = this.#ranges.slice(0, MAX_GAP_BLOCKS);
    const duplicates = this.#duplicates;
    this.#duplicates = [];
    const out = Buffer.alloc(12 + 4 * blocks.length + 4 * duplicates.length);
    out.writeUInt32BE(this.#cumulative, 0);
    out.writeUInt32BE(Math.max(0, RECEIVE_WINDOW - this.#waitingBytes), 4);
    out.writeUInt16BE(blocks.length, 8);
    out.writeUInt16BE(duplicates.length, 10);
    let at = 12;
    // MAX_TSN_AHEAD keeps both within 16 bits.
    for (const { first, last } of blocks) {
      out.writeUInt16BE((first - this.#cumulative) >>> 0, at);
      out.writeUInt16BE((last - this.#cumulative) >>> 0, at + 2);
      at += 4;
    }
    for (const tsn of duplicates) {
      at = out.writeUInt32BE(tsn, at);
    }
    return out;
  }

  /** Records an arrival. @returns false if it is a duplicate, or there is no room for it */
  #accept(tsn: number, bytes: number): boolean {
    const ahead = (tsn - this.#cumulative) | 0;
    const isNext = ahead === 1;
    const isFull =
      this.#waitingBytes + bytes > RECEIVE_WINDOW || this.#waitingChunks >= MAX_WAITING_CHUNKS;
    if (ahead > MAX_TSN_AHEAD || (isFull && !isNext)) {
      return false;
    }
    // The next chunk may complete what waits, so it has room beyond the window.
    if (this.#waitingBytes > 2 * RECEIVE_WINDOW || this.#waitingChunks > 2 * MAX_WAITING_CHUNKS) {
      throw new ProtocolViolation('what waits can never be completed');
    }
    if (ahead <= 0 || !this.#addToRanges(tsn)) {
      this.#hasRepeats = true;
      if (this.#duplicates.length < MAX_DUPLICATES) {
        this.#duplicates.push(tsn);
      }
      return false;
    }
    const [first] = this.#ranges;
    if (first?.first === tsnPlus(this.#cumulative, 1)) {
      this.#cumulative = first.last;
      this.#ranges.shift();
    }
    return true;
  }

  /** @returns false if it is in a range, or would be one too many */
  #addToRanges(tsn: number): boolean {
    const ranges = this.#ranges;
    let at = ranges.length;
    while (at > 0 && !isAfter(tsn, ranges[at - 1]!.first)) {
      at--;
    }
    const before = ranges[at - 1];
    const after = ranges[at];
    if (after?.first === tsn || (before !== undefined && !isAfter(tsn, before.last))) {
      return false;
    }
    const joinsBefore = before?.last === tsnPlus(tsn, -1);
    const joinsAfter = after?.first === tsnPlus(tsn, 1);
    if (joinsBefore && joinsAfter) {
      before.last = after.last;
      ranges.splice(at, 1);
    } else if (joinsBefore) {
      before.last = tsn;
    } else if (joinsAfter) {
      after.first = tsn;
    } else if (ranges.length < MAX_RANGES || tsn === tsnPlus(this.#cumulative, 1)) {
      ranges.splice(at, 0, { first: tsn, last: tsn });
    } else {
      return false;
    }
    return true;
  }

  #advanceTo(tsn: number): void {
    this.#cumulative = tsn;
    const ranges = this.#ranges;
    while (ranges[0] !== undefined && !isAfter(ranges[0].first, tsnPlus(this.#cumulative, 1))) {
      if (isAfter(ranges[0].last, this.#cumulative)) {
        this.#cumulative = ranges[0].last;
      }
      ranges.shift();
    }
  }

  #assemble(run: Run): readonly InboundMessage[] {
    const before = this.#byLast.get(tsnPlus(run.first, -1));
    if (before !== undefined && !before.isEnded) {
      if (run.isBegun) {
        this.#discard(before); // its sender gave up the rest before sending it
      } else {
        this.#join(before, run);
        return this.#assembleWithNext(before);
      }
    }
    return this.#assembleWithNext(run);
  }

  #assembleWithNext(run: Run): readonly InboundMessage[] {
    const after = this.#byFirst.get(tsnPlus(run.last, 1));
    if (after !== undefined && !after.isBegun && !run.isEnded) {
      this.#remove(after);
      this.#join(run, after);
    }
    this.#byFirst.set(run.first, run);
    this.#byLast.set(run.last, run);
    if (!run.isBegun || !run.isEnded) {
      return [];
    }
    this.#remove(run);
    return this.#deliver(run);
  }

  /** Appends `next` to `run`. */
  #join(run: Run, next: Run): void {
    const isSame =
      run.stream === next.stream &&
      run.isUnordered === next.isUnordered &&
      (run.isUnordered || run.sequence === next.sequence);
    if (!isSame) {
      throw new ProtocolViolation('fragments of different messages follow each other');
    }
    if (run.bytes + next.bytes > MAX_INBOUND_BYTES) {
      throw new ProtocolViolation('a message is longer than announced');
    }
    this.#byLast.delete(run.last);
    run.last = next.last;
    run.isEnded = next.isEnded;
    run.bytes += next.bytes;
    for (const part of next.parts) {
      run.parts.push(part);
    }
  }

  #remove(run: Run): void {
    this.#byFirst.delete(run.first);
    this.#byLast.delete(run.last);
  }

  #discard(run: Run): void {
    this.#remove(run);
    this.#hold(-run.bytes, -run.parts.length);
  }

  #hold(bytes: number, chunks: number): void {
    this.#waitingBytes += bytes;
    this.#waitingChunks += chunks;
  }

  #deliver({ stream: id, sequence, isUnordered, protocol, bytes, parts }: Run): InboundMessage[] {
    const [only] = parts;
    const data = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts, bytes);
    const message = { stream: id, protocol, data };
    this.#hold(0, 1 - parts.length);
    if (isUnordered) {
      this.#hold(-bytes, -1);
      return [message];
    }
    const stream = this.#streams.get(id) ?? this.#openStream(id, 0);
    stream.waiting.set(sequence, message);
    return this.#inOrder(stream);
  }

  #openStream(id: number, next: number): Stream {
    const stream = { next, waiting: new Map<number, InboundMessage>() };
    if (id < MAX_INBOUND_STREAMS) {
      this.#streams.set(id, stream);
    }
    return stream;
  }

  /** The messages whose turn it is. */
  #inOrder(stream: Stream): InboundMessage[] {
    const messages: InboundMessage[] = [];
    for (;;) {
      const message = stream.waiting.get(stream.next);
      if (message === undefined) {
        return messages;
      }
      stream.waiting.delete(stream.next);
      this.#hold(-message.data.length, -1);
      messages.push(message);
      stream.next = (stream.next + 1) & 0xffff;
    }
  }

  /** Gives up what is missing up to a sequence number; what has arrived is delivered. */
  #skipStream(stream: Stream, skipped: number): InboundMessage[] {
    const ahead = (skipped + 1 - stream.next) & 0xffff;
    if (ahead === 0 || ahead > 0x7fff) {
      return [];
    }
    const position = (sequence: number): number => (sequence - stream.next) & 0xffff;
    const due = [...stream.waiting.keys()]
      .filter((sequence) => position(sequence) < ahead)
      .sort((one, other) => position(one) - position(other));
    const messages = due.flatMap((sequence) => {
      const message = stream.waiting.get(sequence);
      stream.waiting.delete(sequence);
      this.#hold(-(message?.data.length ?? 0), -1);
      return message ?? [];
    });
    stream.next = (skipped + 1) & 0xffff;
    return [...messages, ...this.#inOrder(stream)];
  }
}
