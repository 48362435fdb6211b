// Limits the main thread's time that messages take: of one socket, and of all sockets together.
import { TokenBucket } from '../../base/token-bucket.ts';
import { MAX_TEXT_BYTES } from './wire-protocol.ts';

/**
 * One unit is about a microsecond of the main thread. Measured: a two-byte message costs 0.6 us in
 * uWebSockets.js and about as much in this server; copying costs 0.5 ns per byte, parsing JSON that
 * consists of brackets 80 ns per byte.
 */
const BINARY_BYTES_PER_UNIT = 2048;
const TEXT_BYTES_PER_UNIT = 16;
/**
 * Units that a message costs. Text that is too long is not parsed, and costs as little as binary.
 */
export const costOf = (bytes: number, isBinary: boolean): number =>
  1 + bytes / (isBinary || bytes > MAX_TEXT_BYTES ? BINARY_BYTES_PER_UNIT : TEXT_BYTES_PER_UNIT);

/**
 * One socket, in units per second: four times what speech in pieces of 1 ms takes in real time. At
 * once: ten minutes of speech (the whole backlog) in 3200 messages of 6000 bytes are 12,600 units.
 * The burst also holds 5 minutes in pieces of 20 ms, or 24 seconds in pieces of 1 ms.
 */
const SOCKET_RATE = 4000;
const SOCKET_BURST = 24_000;
/**
 * Units that are dropped before the socket is closed, since dropping a message costs nearly as much
 * as handling it; and how fast that count decays.
 */
const SOCKET_PATIENCE = 24_000;
const SOCKET_PATIENCE_RATE = 1000;

/**
 * All sockets: a quarter of the thread, 0.05 s of it at once. With the fair shares, which come on
 * top, half of the thread. A flood is read at once: uWebSockets.js reads up to 512 KiB of a socket
 * before the next one, and cannot pause it. With the patience, 40 sockets that flood cost 0.16 s
 * in all before they are closed.
 */
const SHARED_RATE = 250_000;
const SHARED_BURST = 50_000;
const SHARED_PATIENCE = 25_000;
/**
 * Each socket has a fair share even when others use up the shared budget: SHARED_RATE divided by
 * the number of sockets, and so much at once.
 */
const FAIR_BURST = 1000;
/** A socket that exceeded its share by less than this is never closed to protect the others. */
const FAIR_PATIENCE = 1000;

/**
 * - `taken`: handle the message.
 * - `socket_rate`, `server_rate`: drop it. The socket, or all sockets together, exceeded the
 * budget.
 * - `exhausted`: drop it and close the socket, which exceeded its budget for long.
 */
export type Verdict = 'taken' | 'socket_rate' | 'server_rate' | 'exhausted';

/** The budget that all sockets share. */
export class SharedBudget {
  readonly spending: TokenBucket;
  readonly patience: TokenBucket;
  /** Number of sockets. */
  members = 0;

  constructor(nowMs: number) {
    this.spending = new TokenBucket(SHARED_RATE, SHARED_BURST, nowMs);
    this.patience = new TokenBucket(SHARED_PATIENCE, SHARED_PATIENCE, nowMs);
  }

  /** Units per second that each socket has in any case. */
  get fairRate(): number {
    return Math.min(SOCKET_RATE, SHARED_RATE / Math.max(1, this.members));
  }
}

/** The budget of one socket. Close it with the socket. */
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

  /** Decides on one message. @param cost from `costOf` */
  take(cost: number, nowMs: number): Verdict {
    this.#fair.rate = this.#shared.fairRate;
    const isFair = this.#fair.drain(cost, nowMs);
    if (!this.#own.take(cost, nowMs)) {
      return this.#isExhausted(cost, nowMs) ? 'exhausted' : 'socket_rate';
    }
    if (this.#shared.spending.drain(cost, nowMs) || isFair) {
      return 'taken';
    }
    return this.#isExhausted(cost, nowMs) ? 'exhausted' : 'server_rate';
  }

  /** Leaves the shared budget. May be called more than once. */
  close(): void {
    if (this.#isOpen) {
      this.#shared.members--;
    }
    this.#isOpen = false;
  }

  /** Counts a dropped message. @returns true: close the socket */
  #isExhausted(cost: number, nowMs: number): boolean {
    const isTolerated = this.#patience.take(cost, nowMs);
    const isTotalTolerated = this.#shared.patience.drain(cost, nowMs);
    return !isTolerated || (!isTotalTolerated && this.#patience.used > FAIR_PATIENCE);
  }
}
