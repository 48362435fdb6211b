// Reads the body of a request: after its sender is known, at a minimum rate, within a memory
// budget.
import type { HttpResponse } from 'uWebSockets.js';
import { every } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { sleep } from '../../base/time.ts';
import { Blocks, type Chunk } from './body-blocks.ts';
import { UNPROVEN, type BodyBudget } from './body-budget.ts';
import type { ResponseState } from './response-state.ts';

/** The minimum rate of a body. A slower one is refused with REQUEST_TIMEOUT. */
export interface BodyPace {
  /** Length of a measuring window. */
  readonly windowMs: number;
  /** Bytes that must arrive in each window. */
  readonly bytesPerWindow: number;
  /** Time limit of the whole body. */
  readonly deadlineMs: number;
}

/**
 * The least rate: 16 KiB/s, and 2.4 Mbit/s for the longest body (88 MB). The window is
 * shorter than the 10 s after which uWebSockets.js closes a connection below 16 kB/s without a
 * reply.
 */
export const BODY_PACE: BodyPace = {
  windowMs: 8000,
  bytesPerWindow: 128 * 1024,
  deadlineMs: 300_000,
};

/**
 * How much of a refused body is still read and dropped. Closing a connection with unread bytes
 * resets it, and then the client may not see the reply (RFC 9112 section 9.6).
 */
const DISCARD = { maxBytes: 8 * 1024 * 1024, maxMs: 2000, pauseMs: 100 };

/**
 * A chunk of a chunked body costs 0.5 us of the main thread (measured) but only six bytes to send.
 * After this many chunks, their mean size must reach LEAST_MEAN_CHUNK_BYTES.
 */
const FREE_CHUNKS = 4096;
const LEAST_MEAN_CHUNK_BYTES = 64;

/** Options of RequestBody. */
export interface RequestBodyOptions {
  readonly limitBytes: number;
  readonly budget: BodyBudget;
  readonly pace: BodyPace;
  /** Called when the body is refused for lack of memory or for its rate. */
  readonly onRefused: (reason: 'body_memory' | 'slow_body') => void;
  /** Drop the whole body: the request is refused by its headers. */
  readonly unwanted: boolean;
}

/**
 * The body of one request. Make it before anything is awaited: uWebSockets.js passes chunks only to
 * a handler that is attached at once. Bytes that arrive with the head are kept. Then the connection
 * is paused until `admit` (the sender is known) or `discard` (the body is not wanted).
 */
export class RequestBody {
  readonly #res: HttpResponse;
  readonly #state: ResponseState;
  readonly #options: RequestBodyOptions;
  readonly #whole = Promise.withResolvers<readonly Chunk[]>();
  #account = UNPROVEN;
  readonly #blocks = new Blocks();
  #chunkCount = 0;
  #held = 0;
  #arrived = 0;
  #isKept: boolean;
  #isAdmitted = false;
  #isPaused = false;
  #isComplete = false;
  #isHopeless = false;
  /** Resolves when the body is complete or the client has left. */
  readonly #ended = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(res: HttpResponse, state: ResponseState, options: RequestBodyOptions) {
    this.#res = res;
    this.#state = state;
    this.#options = options;
    this.#isKept = !options.unwanted;
    this.#whole.promise.catch(() => {}); // not awaited when an earlier check refuses the request
    state.signal.addEventListener(
      'abort',
      () => {
        if (!this.#isComplete) {
          this.#fail(new Error('the client left'));
        }
        this.#ended.resolve();
      },
      { once: true },
    );
    res.onData((chunk, isLast) => {
      this.#take(chunk, isLast);
    });
  }

  /** Whether the client has sent the whole body. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /**
   * Reads the whole body. Its memory counts for `account`.
   * @throws ServiceError BODY_TOO_LARGE, TOO_MANY_CONNECTIONS (no memory left), REQUEST_TIMEOUT;
   *   Error when the client left
   */
  async admit(account: string): Promise<readonly Chunk[]> {
    this.#isAdmitted = true;
    if (this.#isKept) {
      const { budget } = this.#options;
      budget.give(this.#account, this.#held);
      this.#account = account;
      if (!budget.take(account, this.#held)) {
        this.#held = 0;
        this.#failForMemory();
      }
    }
    this.#resume();
    if (this.#isKept && !this.#isComplete) {
      this.#watch();
    }
    return await this.#whole.promise;
  }

  /** Frees the memory of the body. Call it at the end of every request. */
  release(): void {
    this.#isKept = false;
    this.#options.budget.give(this.#account, this.#held);
    this.#held = 0;
    this.#blocks.clear();
    clearInterval(this.#timer);
  }

  /**
   * Drops the body. Returns when it is complete, when nothing more arrives, or at the limits of
   * DISCARD.
   */
  async discard(): Promise<void> {
    this.release();
    this.#resume();
    if (this.#isHopeless) {
      return;
    }
    const start = this.#arrived;
    for (let waitedMs = 0; waitedMs < DISCARD.maxMs; waitedMs += DISCARD.pauseMs) {
      const before = this.#arrived;
      if (this.#isComplete || this.#state.aborted || before - start >= DISCARD.maxBytes) {
        return;
      }
      await Promise.race([this.#ended.promise, sleep(DISCARD.pauseMs)]);
      if (this.#arrived === before) {
        return;
      }
    }
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    this.#arrived += chunk.byteLength;
    this.#chunkCount++;
    this.#isComplete ||= isLast;
    if (isLast) {
      this.#ended.resolve();
    }
    if (!this.#isKept) {
      return;
    }
    if (
      this.#chunkCount > FREE_CHUNKS &&
      this.#arrived < this.#chunkCount * LEAST_MEAN_CHUNK_BYTES
    ) {
      this.#isHopeless = true;
      this.#fail(
        new ServiceError(
          'BODY_TOO_LARGE',
          'The body has too many small chunks. Send larger chunks, or a Content-Length.',
        ),
      );
      return;
    }
    if (this.#held + chunk.byteLength > this.#options.limitBytes) {
      this.#fail(new ServiceError('BODY_TOO_LARGE', bodyTooLargeMessage(this.#options.limitBytes)));
      return;
    }
    if (!this.#options.budget.take(this.#account, chunk.byteLength)) {
      this.#failForMemory();
      return;
    }
    this.#held += chunk.byteLength;
    this.#blocks.add(chunk, isLast);
    if (isLast) {
      clearInterval(this.#timer);
      this.#whole.resolve(this.#blocks.finish());
    } else if (!this.#isAdmitted) {
      this.#pause();
    }
  }

  #pause(): void {
    if (this.#isPaused || this.#state.aborted) {
      return;
    }
    this.#isPaused = true;
    this.#res.pause();
  }

  #resume(): void {
    if (!this.#isPaused || this.#state.aborted) {
      return;
    }
    this.#isPaused = false;
    this.#res.resume();
  }

  #watch(): void {
    const { windowMs, bytesPerWindow, deadlineMs } = this.#options.pace;
    let [seen, waitedMs] = [this.#arrived, 0];
    this.#timer = every(windowMs, 'the pace of a body', () => {
      waitedMs += windowMs;
      if (this.#arrived - seen < bytesPerWindow || waitedMs >= deadlineMs) {
        this.#isHopeless = true;
        this.#options.onRefused('slow_body');
        this.#fail(new ServiceError('REQUEST_TIMEOUT'));
      }
      seen = this.#arrived;
    });
  }

  #failForMemory(): void {
    this.#options.onRefused('body_memory');
    this.#fail(
      new ServiceError(
        'TOO_MANY_CONNECTIONS',
        'The server has no memory left for this upload. Try again after the time in Retry-After.',
        2,
      ),
    );
  }

  #fail(error: Error): void {
    if (!this.#isKept) {
      return;
    }
    this.release();
    this.#whole.reject(error);
  }
}

/** The error text of a body over `limitBytes`. */
export const bodyTooLargeMessage = (limitBytes: number): string => {
  const kib = Math.floor(limitBytes / 1024);
  const limit = kib >= 1024 ? `${Math.floor(kib / 1024)} MiB` : `${kib} KiB`;
  return `The request body is larger than the limit of this path (${limit}). Send a smaller one.`;
};
