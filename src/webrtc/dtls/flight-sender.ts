// Sends the server's handshake flights, and retransmits the latest one (RFC 6347 section 4.2.4).
import { HANDSHAKE } from './handshake.ts';
import { CONTENT, plainRecord, type RecordCipher } from './records.ts';

/**
 * First and last interval of the retransmission timer; it doubles in between. RFC 6347 section
 * 4.2.4.1 suggests 1 s at first.
 */
const FIRST_RETRANSMIT_MS = 500;
const LAST_RETRANSMIT_MS = 4_000;
/**
 * Least time between two transmissions in answer to repeated messages, so that no one can use us as
 * an amplifier.
 */
const MIN_REPLY_INTERVAL_MS = 200;
/**
 * A flight is sent at most this often: six times in 15 s by the timer, and in answer to repeated
 * messages.
 */
const MAX_FLIGHT_SENDINGS = 20;
/** Handshake bytes in one datagram: below the 1200 bytes that every path carries. */
const FLIGHT_BYTES = 1_150;

/** A message in plain form: content type and fragment. */
type FlightMessage = readonly [contentType: number, fragment: Buffer];

/** Times are `monotonicMs()`. */
export class FlightSender {
  readonly #send: (datagram: Buffer) => void;
  #messages: readonly FlightMessage[] = [];
  #cipher: RecordCipher | undefined = undefined;
  #plainSequence = 0;
  #retransmitMs = FIRST_RETRANSMIT_MS;
  #nextRetransmitMs = Number.POSITIVE_INFINITY;
  #sendings = 0;
  #lastSentMs = Number.NEGATIVE_INFINITY;

  constructor(send: (datagram: Buffer) => void) {
    this.#send = send;
  }

  /** Sends the first flight, ServerHello to ServerHelloDone. The timer retransmits it. */
  sendHello(messages: readonly Buffer[], nowMs: number): void {
    this.#messages = messages.map((message) => [CONTENT.handshake, message]);
    this.#transmit(nowMs);
    this.#nextRetransmitMs = nowMs + this.#retransmitMs;
  }

  /**
   * Sends the last flight, ChangeCipherSpec and Finished. No timer: the client repeats its own
   * flight if this one is lost.
   */
  sendFinished(finished: Buffer, cipher: RecordCipher, nowMs: number): void {
    this.#messages = [
      [CONTENT.changeCipherSpec, Buffer.from([1])],
      [CONTENT.handshake, finished],
    ];
    this.#cipher = cipher;
    this.#sendings = 0;
    this.#nextRetransmitMs = Number.POSITIVE_INFINITY;
    this.#transmit(nowMs);
  }

  /** Retransmits the current flight when the timer has expired. */
  poll(nowMs: number): void {
    if (nowMs < this.#nextRetransmitMs) {
      return;
    }
    this.#transmit(nowMs);
    this.#retransmitMs = Math.min(this.#retransmitMs * 2, LAST_RETRANSMIT_MS);
    this.#nextRetransmitMs = nowMs + this.#retransmitMs;
  }

  /**
   * Answers a repeated message of the client with the current flight, a few times a second at most.
   */
  onRepeatedMessage(nowMs: number): void {
    if (nowMs - this.#lastSentMs >= MIN_REPLY_INTERVAL_MS) {
      this.#transmit(nowMs);
    }
  }

  /** Sends the current flight at once: it could not be sent when it was due. */
  resend(nowMs: number): void {
    this.#transmit(nowMs);
  }

  /** Sends one record in the clear. */
  sendPlain(contentType: number, fragment: Buffer): void {
    this.#send(plainRecord(contentType, this.#plainSequence++, fragment));
  }

  /** Forgets the flight and its key. */
  clear(): void {
    this.#messages = [];
    this.#cipher = undefined;
  }

  /**
   * Each message fits into one record. The first flight, with a certificate of 300 bytes, fits into
   * one datagram.
   */
  #transmit(nowMs: number): void {
    if (++this.#sendings > MAX_FLIGHT_SENDINGS) {
      return;
    }
    this.#lastSentMs = nowMs;
    let records: Buffer[] = [];
    let bytes = 0;
    for (const [type, fragment] of this.#messages) {
      const isFinished = type === CONTENT.handshake && fragment[0] === HANDSHAKE.finished;
      const record =
        isFinished && this.#cipher !== undefined
          ? this.#cipher.seal(type, fragment)
          : plainRecord(type, this.#plainSequence++, fragment);
      if (bytes + record.length > FLIGHT_BYTES && records.length > 0) {
        this.#send(Buffer.concat(records));
        records = [];
        bytes = 0;
      }
      records.push(record);
      bytes += record.length;
    }
    if (records.length > 0) {
      this.#send(Buffer.concat(records));
    }
  }
}
