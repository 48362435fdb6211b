// Which messages of a LiveKit room are passed on to the front: all of the one whom the session
// heeds, and few of the others.
import { ProtobufFields } from '../base/protobuf.ts';
import { TokenBucket } from '../base/token-bucket.ts';

/** What becomes of a message. */
export type RoomMessageVerdict = 'heeded' | 'other' | 'dropped';

/** Speech comes in 70 messages a second where it is paced. */
const MESSAGES_PER_SECOND = 500;
/** A byte stream of ten minutes of speech has 1300. */
const MESSAGE_BURST = 8000;
/** Speech of 192 kHz in stereo, paced. */
const BYTES_PER_SECOND = 1024 * 1024;
/** Ten minutes of speech of 48 kHz. */
const BYTE_BURST = 64 * 1024 * 1024;
/** Others get an answer to their calls, so that they do not wait; what they stream is not read. */
const OTHERS_PER_SECOND = 20;
const OTHERS_BURST = 60;

/** DataPacket.participant_identity of LiveKit's protocol: the server writes it. */
const SENDER_FIELD = 4;

/** The messages of one session. */
export class RoomMessages {
  readonly #heededMessages: TokenBucket;
  readonly #heededBytes: TokenBucket;
  readonly #others: TokenBucket;
  #heeded: Buffer | undefined = undefined;

  constructor(nowMs: number) {
    this.#heededMessages = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST, nowMs);
    this.#heededBytes = new TokenBucket(BYTES_PER_SECOND, BYTE_BURST, nowMs);
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
    const sender = senderOf(data);
    if (sender !== undefined && this.#heeded.equals(sender)) {
      const isTaken =
        this.#heededMessages.take(1, nowMs) && this.#heededBytes.take(data.length, nowMs);
      return isTaken ? 'heeded' : 'dropped';
    }
    return this.#others.take(1, nowMs) ? 'other' : 'dropped';
  }
}

/**
 * The sender of a DataPacket, without decoding the rest of it: a message has up to 64 KiB.
 * @returns undefined when it names none, or is malformed
 */
export function senderOf(data: Buffer): Uint8Array | undefined {
  let sender: Uint8Array | undefined;
  const fields = new ProtobufFields(data);
  while (fields.next()) {
    if (fields.field === SENDER_FIELD && fields.hasBytes) {
      sender = fields.bytes; // the last one counts
    }
  }
  return fields.isMalformed ? undefined : sender;
}
