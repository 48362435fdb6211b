// How much memory request bodies may take: in all, for each client, and while a key is not yet checked.

/** The account of requests whose API key is still being checked. */
export const UNPROVEN = '';

export interface BodyBudgetOptions {
  /** Bytes of all bodies in memory. */
  readonly maxBytes: number;
  /** Bytes of those whose key is still being checked: what came in the same read as the head. */
  readonly unprovenBytes: number;
}

export const BODY_BUDGET: BodyBudgetOptions = {
  maxBytes: 256 * 1024 * 1024,
  unprovenBytes: 64 * 1024 * 1024,
};

/**
 * An account may hold at most twice what then is left free (Choudhury and Hahne, "Dynamic Queue Length
 * Thresholds for Shared-Memory Packet Switches", 1998). So one client gets two thirds, a second one two
 * thirds of the rest, and none can take all.
 */
const SHARE_OF_FREE = 2;
/** Beyond this share of the budget the server is not ready: uploads are about to be refused. */
const FULL_SHARE = 0.9;

export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  readonly #accounts = new Map<string, number>();
  #held = 0;

  constructor(options: BodyBudgetOptions = BODY_BUDGET) {
    this.#options = options;
  }

  /** Bytes of all bodies in memory. */
  get held(): number {
    return this.#held;
  }
  get isFull(): boolean {
    return this.#held >= FULL_SHARE * this.#options.maxBytes;
  }

  /** False, and nothing is taken, when the account or all accounts together would hold too much. */
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
