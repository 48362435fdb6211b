// A semaphore that is fair between renderings: only so many work at a time, one segment each, so
// that a short video does not wait behind a long one.
import { monotonicMs } from '../../base/time.ts';

/** Grants permits in the order of asking. */
export class FairSemaphore {
  readonly #waiting: Permit[] = [];
  #free: number;

  /** @param count how many may work at a time */
  constructor(count: number) {
    this.#free = count;
  }

  /** The permit of one rendering, which does not hold it yet. */
  join(): Permit {
    const permit = new Permit({
      wait: () => {
        this.#waiting.push(permit);
        this.#grantFree();
      },
      giveBack: () => {
        this.#free++;
        this.#grantFree();
      },
      leave: () => {
        this.#waiting.splice(this.#waiting.indexOf(permit) >>> 0, 1);
      },
    });
    return permit;
  }

  #grantFree(): void {
    while (this.#free > 0 && this.#waiting.length > 0) {
      this.#free--;
      this.#waiting.shift()!.grant();
    }
  }
}

/** The semaphore as its permits see it. */
interface PermitQueue {
  /** Joins the queue. */
  readonly wait: () => void;
  /** Gives a held permit back. */
  readonly giveBack: () => void;
  /** Leaves the queue. */
  readonly leave: () => void;
}

/** One rendering's right to work. */
export class Permit {
  readonly #queue: PermitQueue;
  #onGranted: (() => void) | undefined;
  /** When it was granted, monotonic; undefined while it is not held. */
  #sinceMs: number | undefined;
  #workedMs = 0;
  #isClosed = false;

  constructor(queue: PermitQueue) {
    this.#queue = queue;
  }

  /** Seconds for which it was held in all, until now. */
  get workedSeconds(): number {
    return (
      (this.#workedMs + (this.#sinceMs === undefined ? 0 : monotonicMs() - this.#sinceMs)) / 1000
    );
  }

  /** Resolves when it is granted, after all that wait already. Never resolves once it is closed. */
  acquire(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) {
        return;
      }
      this.#onGranted = resolve;
      this.#queue.wait();
    });
  }

  /** For FairSemaphore alone. */
  grant(): void {
    this.#sinceMs = monotonicMs();
    this.#onGranted?.();
    this.#onGranted = undefined;
  }

  /** Lets the next one work. Does nothing when it is not held. */
  release(): void {
    if (this.#sinceMs === undefined) {
      return;
    }
    this.#workedMs += monotonicMs() - this.#sinceMs;
    this.#sinceMs = undefined;
    this.#queue.giveBack();
  }

  /** The rendering is over: gives the permit back, or leaves the queue. */
  close(): void {
    this.#isClosed = true;
    if (this.#onGranted) {
      this.#queue.leave();
    }
    this.#onGranted = undefined;
    this.release();
  }
}
