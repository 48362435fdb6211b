// Limits answers to unverified addresses: token buckets in memory of a fixed size.
import { randomBytes } from 'node:crypto';
import net from 'node:net';

/** Sizes of an AddressBudget. */
export interface BudgetOptions {
  /** Answers per second and address, sustained. */
  readonly perSecond: number;
  /** Answers at once. */
  readonly burst: number;
  /** Number of buckets, a power of two. Addresses with the same hash share a bucket. */
  readonly buckets: number;
}

/** Enough for many clients behind one NAT: each asks two to four times when it connects. */
const DEFAULTS: BudgetOptions = { perSecond: 50, burst: 200, buckets: 16_384 };

/** One sender may own a whole IPv6 network: a /64 counts as one address. */
const IPV6_PREFIX_GROUPS = 4;

/** Token buckets by address. */
export class AddressBudget {
  readonly #options: BudgetOptions;
  readonly #tokens: Float32Array;
  readonly #atMs: Float64Array;
  /** Random, so that nobody can choose addresses that share a victim's bucket. */
  readonly #seed = randomBytes(4).readUInt32LE();

  constructor(nowMs: number, options: BudgetOptions = DEFAULTS) {
    this.#options = options;
    this.#tokens = new Float32Array(options.buckets).fill(options.burst);
    this.#atMs = new Float64Array(options.buckets).fill(nowMs);
  }

  /** Takes one answer. @returns false, taking nothing, when the budget of the address is used up */
  take(address: string, nowMs: number): boolean {
    const { perSecond, burst, buckets } = this.#options;
    const index = this.#hash(prefixOf(address)) & (buckets - 1);
    const earned = ((nowMs - (this.#atMs[index] ?? nowMs)) / 1000) * perSecond;
    const tokens = Math.min(burst, (this.#tokens[index] ?? 0) + Math.max(0, earned));
    this.#atMs[index] = nowMs;
    this.#tokens[index] = tokens < 1 ? tokens : tokens - 1;
    return tokens >= 1;
  }

  /** FNV-1a with a random seed and the finalizer of MurmurHash3. */
  #hash(text: string): number {
    let hash = this.#seed;
    for (let index = 0; index < text.length; index++) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }
}

/**
 * The address, or the /64 prefix of an IPv6 address. The system writes an address in one way only.
 */
function prefixOf(address: string): string {
  if (!net.isIPv6(address) || address.startsWith('::ffff:')) {
    return address;
  }
  const [head = '', tail] = address.split('%', 1)[0]!.split('::');
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const [left, right] = [groups(head), groups(tail ?? '')];
  const missing = tail === undefined ? 0 : 8 - left.length - right.length;
  const zeros = Array.from({ length: missing }, () => '0');
  return [...left, ...zeros, ...right].slice(0, IPV6_PREFIX_GROUPS).join(':');
}
