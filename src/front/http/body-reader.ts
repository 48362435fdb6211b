// Reading a request's body: not before its sender is known, at no less than some pace, within a budget.
import type { HttpResponse } from 'uWebSockets.js';
import { every } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { sleep } from '../../base/time.ts';
import { Blocks, type Chunk } from './body-blocks.ts';
import { UNPROVEN, type BodyBudget } from './body-budget.ts';
import type { WireState } from './reply.ts';

export interface BodyPace {
  /** In each window so many bytes must come... */
  readonly windowMs: number;
  readonly bytesPerWindow: number;
  /** ...and all of them within this. */
  readonly deadlineMs: number;
}

/**
 * 32 KiB/s, and 88 MB (the longest body) at 2.4 Mbit/s. The window is shorter than the 10 s after which
 * uWebSockets.js closes the connection of a client below 16 kB/s without an answer.
 */
export const BODY_PACE: BodyPace = {
  windowMs: 8000,
  bytesPerWindow: 256 * 1024,
  deadlineMs: 300_000,
};

/**
 * What is still read, and dropped, of a body that nobody wants: a connection that is closed with unread
 * bytes is reset, and then its sender may not see the answer.
 */
const DISCARD = { maxBytes: 8 * 1024 * 1024, maxMs: 2000, pauseMs: 100 };

/** Each chunk of a chunked body takes the thread for 0.5 us, and needs no more than six bytes to send. */
const FREE_CHUNKS = 4096;
const LEAST_MEAN_CHUNK_BYTES = 64;

export interface RequestBodyOptions {
  readonly limitBytes: number;
  readonly budget: BodyBudget;
  readonly pace: BodyPace;
  readonly onRefused: (reason: 'body_memory' | 'slow_body') => void;
  /** Drop all of it: it is known already that the request is refused. */
  readonly unwanted: boolean;
}

/**
 * One body. uWebSockets.js gives chunks only to a handler attached at once, so this is made before
 * anything is awaited. What came with the head is kept, and the connection is paused until `admit` says
 * whose it is, or `discard` that nobody wants it.
 */
export class RequestBody {
  readonly #res: HttpResponse;
  readonly #state: WireState;
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
  /** Once all has come, or the client left. */
  readonly #ended = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(res: HttpResponse, state: WireState, options: RequestBodyOptions) {
    this.#res = res;
    this.#state = state;
    this.#options = options;
    this.#isKept = !options.unwanted;
    this.#whole.promise.catch(() => {}); // nobody awaits it when another check fails first
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

  /** Whether the client has sent all of it. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /**
   * Reads the rest on account of `account`.
   * @throws ServiceError BODY_TOO_LARGE, TOO_MANY_CONNECTIONS (no memory left for it), REQUEST_TIMEOUT;
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

  /** Gives back what is held. To be called once the body is done with, however the request ends. */
  release(): void {
    this.#isKept = false;
    this.#options.budget.give(this.#account, this.#held);
    this.#held = 0;
    this.#blocks.clear();
    clearInterval(this.#timer);
  }

  /** Drops what there is and what comes: until all has come, nothing comes, or for too long. */
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
        new ServiceError('BODY_TOO_LARGE', 'The body has too many small chunks. Send larger ones.'),
      );
      return;
    }
    if (this.#held + chunk.byteLength > this.#options.limitBytes) {
      this.#fail(new ServiceError('BODY_TOO_LARGE', tooLarge(this.#options.limitBytes)));
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
        'Too many large uploads at once. Try again shortly.',
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

export const tooLarge = (limitBytes: number): string => {
  const kib = Math.floor(limitBytes / 1024);
  const limit = kib >= 1024 ? `${Math.floor(kib / 1024)} MiB` : `${kib} KiB`;
  return `The request body is over this path's limit of ${limit}.`;
};
