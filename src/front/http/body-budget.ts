// Limits the memory of request bodies: in total, for each client, and before the API key is
// checked.

/** The account of all requests whose API key is not checked yet. */
export const UNPROVEN = '';

/** Limits of a BodyBudget. */
export interface BodyBudgetOptions {
  /** Limit of all bodies in memory, in bytes. */
  readonly maxBytes: number;
  /** Limit of all bodies whose API key is not checked yet: what arrived together with the head. */
  readonly unprovenBytes: number;
}

/** The limits of a server. The longest body of the interface has 88 MB (POST /static/audio). */
export const BODY_BUDGET: BodyBudgetOptions = {
  maxBytes: 256 * 1024 * 1024,
  unprovenBytes: 64 * 1024 * 1024,
};

/**
 * An account may hold at most this many times the memory that is then left free (Choudhury and
 * Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998). So one client
 * gets two thirds, a second one two thirds of the rest, and no client can take everything.
 */
const SHARE_OF_FREE = 2;
/** Beyond this share of the budget the server reports that it is not ready for uploads. */
const FULL_SHARE = 0.9;

/** The memory that request bodies hold, by account (an API key or an address). */
export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  readonly #accounts = new Map<string, number>();
  #held = 0;

  constructor(options: BodyBudgetOptions = BODY_BUDGET) {
    this.#options = options;
  }

  /** Bytes that all bodies hold. */
  get held(): number {
    return this.#held;
  }
  /** True when uploads are about to be refused. */
  get isFull(): boolean {
    return this.#held >= FULL_SHARE * this.#options.maxBytes;
  }

  /**
   * Reserves `bytes`. Returns false and reserves nothing when the account or the total would be too
   * large.
   */
  take(account: string, bytes: number): boolean {
    const own = (this.#accounts.get(account) ?? 0) + bytes;
    const free = this.#options.maxBytes - this.#held - bytes;
    const most = account === UNPROVEN ? this.#options.unprovenBytes : SHARE_OF_FREE * free;
    if (free < 0 || own > most) {
      return false;
    }
    this.#accounts.set(account, own);
    this.#held += bytes;
    return true;
  }

  /** Releases `bytes` that `take` reserved. */
  give(account: string, bytes: number): void {
    const left = (this.#accounts.get(account) ?? 0) - bytes;
    if (left > 0) {
      this.#accounts.set(account, left);
    } else {
      this.#accounts.delete(account);
    }
    this.#held -= bytes;
  }
}
