// The transaction ids of a client's latest checks: a captured one that is sent again from elsewhere is told by its id.

const MAX_IDS = 128;
/** Addresses that may use one id while none of them is proven: an attacker's copy may overtake the original. */
const MAX_ADDRESSES = 2;
/** A client sends a check seven times at most (RFC 8489 section 6.2.1); more come from somebody else. */
const MAX_USES = 16;

/**
 * new: never seen. shared: seen from one other address, which has proven nothing, so that either may be the client's.
 * repeated: seen from this address. replayed: seen from another.
 * exhausted: seen too often to be answered again.
 */
export type RequestUse = 'new' | 'shared' | 'repeated' | 'replayed' | 'exhausted';

interface Seen {
  readonly addresses: string[];
  uses: number;
}

export class RequestMemory {
  /** By id, oldest first. */
  readonly #seen = new Map<string, Seen>();

  /** Takes note of an authentic request. `isProven`: whether an address has answered a check of ours. */
  use(id: string, address: string, isProven: (address: string) => boolean): RequestUse {
    const seen = this.#seen.get(id);
    if (seen === undefined) {
      this.#seen.set(id, { addresses: [address], uses: 1 });
      const oldest = this.#seen.size > MAX_IDS ? this.#seen.keys().next().value : undefined;
      if (oldest !== undefined) {
        this.#seen.delete(oldest);
      }
      return 'new';
    }
    const { addresses } = seen;
    if (addresses.includes(address)) {
      return ++seen.uses > MAX_USES ? 'exhausted' : 'repeated';
    }
    if (addresses.length >= MAX_ADDRESSES || addresses.some((each) => isProven(each))) {
      return 'replayed';
    }
    addresses.push(address);
    return 'shared';
  }
}
