// Which messages of a LiveKit room are passed on to the front: all of the one whom the session
// heeds, and few of the others.
import { TokenBucket } from '../base/token-bucket.ts';

/** What becomes of a message. */
export type RoomMessageVerdict = 'heeded' | 'other' | 'dropped';

/** Speech comes in 70 messages a second where it is paced. */
const MESSAGES_PER_SECOND = 500;
/** A byte stream of ten minutes of speech has 1300. */
const MESSAGE_BURST = 8000;
/** Others get an answer to their calls, so that they do not wait; what they stream is not read. */
const OTHERS_PER_SECOND = 20;
const OTHERS_BURST = 60;

/** DataPacket.participant_identity of LiveKit's protocol: the server writes it. */
const SENDER_FIELD = 4;
const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** The messages of one session. */
export class RoomMessages {
  readonly #heededBucket: TokenBucket;
  readonly #others: TokenBucket;
  #heeded: Buffer | undefined = undefined;

  constructor(nowMs: number) {
    this.#heededBucket = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST, nowMs);
    this.#others = new TokenBucket(OTHERS_PER_SECOND, OTHERS_BURST, nowMs);
  }

  /** Whose messages count. Before, none is passed on. */
  heed(identity: string): void {
    this.#heeded = Buffer.from(identity);
  }

  /** @param data a DataPacket as a protocol buffer */
  judge(data: Buffer, nowMs: number): RoomMessageVerdict {
    if (this.#heeded === undefined) {
      return 'dropped';
    }
    if (senderOf(data)?.equals(this.#heeded) === true) {
      return this.#heededBucket.take(1, nowMs) ? 'heeded' : 'dropped';
    }
    return this.#others.take(1, nowMs) ? 'other' : 'dropped';
  }
}

/**
 * The sender of a DataPacket, without decoding the rest of it: a message has up to 64 KiB.
 * @returns undefined when it names none, or is malformed
 */
export function senderOf(data: Buffer): Buffer | undefined {
  let sender: Buffer | undefined;
  for (let at = 0; at < data.length;) {
    const tag = varint(data, at);
    if (tag === undefined) {
      return undefined;
    }
    at = tag.next;
    const wire = tag.value & 7;
    if (wire === WIRE.varint) {
      const skipped = varint(data, at);
      if (skipped === undefined) {
        return undefined;
      }
      at = skipped.next;
    } else if (wire === WIRE.fixed64 || wire === WIRE.fixed32) {
      at += wire === WIRE.fixed64 ? 8 : 4;
    } else if (wire === WIRE.bytes) {
      const length = varint(data, at);
      if (length === undefined || length.value > data.length - length.next) {
        return undefined;
      }
      at = length.next + length.value;
      if (Math.floor(tag.value / 8) === SENDER_FIELD) {
        sender = data.subarray(length.next, at); // the last one counts
      }
    } else {
      return undefined;
    }
  }
  return sender;
}

/** At most ten bytes. Values beyond 2^53 are inexact, and never fit. */
function varint(
  data: Buffer,
  from: number,
): { readonly value: number; readonly next: number } | undefined {
  let value = 0;
  for (let at = from, scale = 1; at < data.length && at < from + 10; at++, scale *= 128) {
    const byte = data[at]!;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) {
      return { value, next: at + 1 };
    }
  }
  return undefined;
}
