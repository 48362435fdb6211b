// How much of the main thread the messages of one socket, and of all sockets together, may take.
import { TokenBucket } from '../../base/token-bucket.ts';
import { MAX_TEXT_BYTES } from './wire-protocol.ts';

/**
 * One unit is about a microsecond of the main thread. Measured: a two-byte message costs 0.6 us in uWebSockets.js before our code
 * runs and about as much in it; copying costs 0.5 ns a byte, reading JSON that is all brackets 80 ns a byte.
 */
const BINARY_BYTES_PER_UNIT = 2048;
const TEXT_BYTES_PER_UNIT = 16;
/** Text that is too long to be looked at costs as little as bytes. */
export const costOf = (bytes: number, isBinary: boolean): number =>
  1 + bytes / (isBinary || bytes > MAX_TEXT_BYTES ? BINARY_BYTES_PER_UNIT : TEXT_BYTES_PER_UNIT);

/**
 * One socket. Sustained: four times what pieces of 1 ms in real time take. At once: ten minutes of speech (the whole backlog) in
 * pieces of 6000 bytes, 3200 messages, are 12,600 units; in pieces of 20 ms, 5 minutes; in pieces of 1 ms, 24 seconds.
 */
const SOCKET_RATE = 4000;
const SOCKET_BURST = 24_000;
/** What is dropped before the socket is closed: to drop a message costs nearly as much as to take it. */
const SOCKET_PATIENCE = 24_000;
const SOCKET_PATIENCE_RATE = 1000;

/** All sockets: a quarter of the thread, 0.1 s of it at once; with their fair parts, which stand beside it, half of the thread. */
const SHARED_RATE = 250_000;
const SHARED_BURST = 100_000;
const SHARED_PATIENCE = 50_000;
/** What each socket has left when all others use up the shared budget: its part of it, and so much at once. */
const FAIR_BURST = 2000;
/** A socket that has not gone beyond its bounds by more than this is not closed for the sake of others. */
const FAIR_PATIENCE = 2000;

/**
 * - `taken`: handle the message.
 * - `socket_rate`, `server_rate`: drop it; the socket, or all sockets together, went beyond their budget.
 * - `exhausted`: drop it and close the socket; it has gone far beyond for long.
 */
export type Verdict = 'taken' | 'socket_rate' | 'server_rate' | 'exhausted';

/** What all sockets share. */
export class SharedBudget {
  readonly spending: TokenBucket;
  readonly patience: TokenBucket;
  /** Sockets that share it. */
  members = 0;

  constructor(nowMs: number) {
    this.spending = new TokenBucket(SHARED_RATE, SHARED_BURST, nowMs);
    this.patience = new TokenBucket(SHARED_PATIENCE, SHARED_PATIENCE, nowMs);
  }

  get fairRate(): number {
    return Math.min(SOCKET_RATE, SHARED_RATE / Math.max(1, this.members));
  }
}

/** What one socket may send. Close it when the socket is gone. */
export class MessageBudget {
  readonly #shared: SharedBudget;
  readonly #own: TokenBucket;
  readonly #fair: TokenBucket;
  readonly #patience: TokenBucket;
  #isOpen = true;

  constructor(shared: SharedBudget, nowMs: number) {
    this.#shared = shared;
    this.#own = new TokenBucket(SOCKET_RATE, SOCKET_BURST, nowMs);
    this.#fair = new TokenBucket(SOCKET_RATE, FAIR_BURST, nowMs);
    this.#patience = new TokenBucket(SOCKET_PATIENCE_RATE, SOCKET_PATIENCE, nowMs);
    shared.members++;
  }

  /** @param cost as `costOf` has it */
  take(cost: number, nowMs: number): Verdict {
    this.#fair.rate = this.#shared.fairRate;
    const isFair = this.#fair.drain(cost, nowMs);
    if (!this.#own.take(cost, nowMs)) {
      return this.#beyond(cost, nowMs) ? 'exhausted' : 'socket_rate';
    }
    if (this.#shared.spending.drain(cost, nowMs) || isFair) {
      return 'taken';
    }
    return this.#beyond(cost, nowMs) ? 'exhausted' : 'server_rate';
  }

  close(): void {
    if (this.#isOpen) {
      this.#shared.members--;
    }
    this.#isOpen = false;
  }

  /** @returns true when the socket is to be closed */
  #beyond(cost: number, nowMs: number): boolean {
    const isBorne = this.#patience.take(cost, nowMs);
    const isBorneTogether = this.#shared.patience.drain(cost, nowMs);
    return !isBorne || (!isBorneTogether && this.#patience.used > FAIR_PATIENCE);
  }
}
