// The transaction ids of a client's latest checks: a captured one that is sent again from elsewhere is told by its id.

const MAX_IDS = 128;
/** Addresses that may use one id while none of them is proven: an attacker's copy may overtake the original. */
const MAX_ADDRESSES = 2;

/**
 * new: never seen. shared: seen from one other address, which has proven nothing, so that either may be the client's.
 * repeated: seen from this address. replayed: seen from another.
 */
export type RequestUse = 'new' | 'shared' | 'repeated' | 'replayed';

export class RequestMemory {
  /** Id to the addresses it came from, oldest first. */
  readonly #seen = new Map<string, string[]>();

  /** Takes note of an authentic request. `isProven`: whether an address has answered a check of ours. */
  use(id: string, address: string, isProven: (address: string) => boolean): RequestUse {
    const addresses = this.#seen.get(id);
    if (addresses === undefined) {
      this.#seen.set(id, [address]);
      const oldest = this.#seen.size > MAX_IDS ? this.#seen.keys().next().value : undefined;
      if (oldest !== undefined) this.#seen.delete(oldest);
      return 'new';
    }
    if (addresses.includes(address)) return 'repeated';
    if (addresses.length >= MAX_ADDRESSES || addresses.some((each) => isProven(each))) return 'replayed';
    addresses.push(address);
    return 'shared';
  }
}
