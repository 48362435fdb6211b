// Takes turns: several renderings are under way, but only so many at a time work, a segment each, so that a short video does not wait behind a long one.
import { monotonicMs } from '../../base/time.ts';

export class FairSemaphore {
  readonly #waiting: Lease[] = [];
  #free: number;

  /** `count`: how many may work at a time. */
  constructor(count: number) {
    this.#free = count;
  }

  /** For one rendering, which at first does not have its turn. */
  join(): Lease {
    const turn = new Lease({
      wait: () => {
        this.#waiting.push(turn);
        this.#next();
      },
      giveBack: () => {
        this.#free++;
        this.#next();
      },
      leave: () => {
        this.#waiting.splice(this.#waiting.indexOf(turn) >>> 0, 1);
      },
    });
    return turn;
  }

  #next(): void {
    while (this.#free > 0 && this.#waiting.length > 0) {
      this.#free--;
      this.#waiting.shift()!.begin();
    }
  }
}

interface Desk {
  readonly wait: () => void;
  readonly giveBack: () => void;
  readonly leave: () => void;
}

export class Lease {
  readonly #desk: Desk;
  #begun: (() => void) | undefined;
  #sinceMs: number | undefined;
  #workedMs = 0;
  #isOver = false;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Seconds for which it had its turn, now included. */
  get workedSeconds(): number {
    return (
      (this.#workedMs + (this.#sinceMs === undefined ? 0 : monotonicMs() - this.#sinceMs)) / 1000
    );
  }

  /** Resolves when it has its turn, behind all that ask already; never once it has ended. */
  take(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isOver) {
        return;
      }
      this.#begun = resolve;
      this.#desk.wait();
    });
  }

  /** For `Turns`: now it is its turn. */
  begin(): void {
    this.#sinceMs = monotonicMs();
    this.#begun?.();
    this.#begun = undefined;
  }

  /** Lets the next one work. */
  pass(): void {
    if (this.#sinceMs === undefined) {
      return;
    }
    this.#workedMs += monotonicMs() - this.#sinceMs;
    this.#sinceMs = undefined;
    this.#desk.giveBack();
  }

  /** It takes no more turns: it is done, or given up. */
  end(): void {
    this.#isOver = true;
    if (this.#begun) {
      this.#desk.leave();
    }
    this.#begun = undefined;
    this.pass();
  }
}
