// Detects replayed STUN requests by their transaction ids.

/** Transaction ids that are remembered, per client. */
const MAX_IDS = 128;
/**
 * Addresses that may use one id while none of them is validated: an attacker's copy may overtake
 * the original.
 */
const MAX_ADDRESSES = 2;
/**
 * A client sends a request seven times at most (RFC 8489 section 6.2.1). More come from someone
 * else.
 */
const MAX_USES = 16;

/**
 * new: first seen now.
 * shared: seen before from one other address, which is not validated: either may be the client's.
 * repeated: seen before from this address. replayed: seen before from another.
 * exhausted: seen too often to be answered again.
 */
export type RequestUse = 'new' | 'shared' | 'repeated' | 'replayed' | 'exhausted';

interface Entry {
  readonly addresses: string[];
  uses: number;
}

/** The latest requests of one client: who captured one can send it again, from any address. */
export class ReplayCache {
  /** By transaction id, the oldest first. */
  readonly #entries = new Map<string, Entry>();

  /**
   * Records an authentic request.
   * @param isValidated whether an address has answered a check of ours
   */
  use(id: string, address: string, isValidated: (address: string) => boolean): RequestUse {
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      this.#entries.set(id, { addresses: [address], uses: 1 });
      const oldest = this.#entries.size > MAX_IDS ? this.#entries.keys().next().value : undefined;
      if (oldest !== undefined) {
        this.#entries.delete(oldest);
      }
      return 'new';
    }
    const { addresses } = entry;
    if (addresses.includes(address)) {
      return ++entry.uses > MAX_USES ? 'exhausted' : 'repeated';
    }
    if (addresses.length >= MAX_ADDRESSES || addresses.some((each) => isValidated(each))) {
      return 'replayed';
    }
    addresses.push(address);
    return 'shared';
  }
}
