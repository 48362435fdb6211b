// How much a LiveKit server may say: its messages are read on the main thread.
import { TokenBucket } from '../../base/token-bucket.ts';
import type { RoomMeter } from './room-meter.ts';

/** Each participant that comes or goes causes a few messages. */
const MESSAGES_PER_SECOND = 200;
const MESSAGE_BURST = 2000;
/** The largest are those of a join: some 1000 bytes for each participant. */
const BYTES_PER_SECOND = 256 * 1024;
const BYTE_BURST = 2 * 1024 * 1024;

/** Lasts as long as a session, over all its connections. Times are `monotonicMs()`. */
export class SignalBudget {
  readonly #messages: TokenBucket;
  readonly #bytes: TokenBucket;
  readonly #meter: RoomMeter;

  constructor(meter: RoomMeter, nowMs: number) {
    this.#meter = meter;
    this.#messages = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST, nowMs);
    this.#bytes = new TokenBucket(BYTES_PER_SECOND, BYTE_BURST, nowMs);
  }

  /** @returns false: the server says too much. Close the connection */
  take(bytes: number, nowMs: number): boolean {
    const isTaken = this.#messages.take(1, nowMs) && this.#bytes.take(bytes, nowMs);
    if (!isTaken) {
      this.#meter.dropped('rate');
    }
    return isTaken;
  }
}
