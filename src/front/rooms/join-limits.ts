// How often avatars are sent into rooms: a caller names the server, and each join makes us connect
// to it.
import { ServiceError } from '../../base/errors.ts';
import { TokenBucket } from '../../base/token-bucket.ts';

const JOINS_PER_MINUTE = 60;
const JOIN_BURST = 60;
/** Keys that are remembered; the one that began first is forgotten. */
const MAX_KEYS = 10_000;

/** The joins of each API key. Times are `monotonicMs()`. */
export class JoinLimits {
  readonly #buckets = new Map<string, TokenBucket>();

  /** @throws ServiceError RATE_LIMITED */
  take(keyId: string, nowMs: number): void {
    let bucket = this.#buckets.get(keyId);
    if (bucket === undefined) {
      bucket = new TokenBucket(JOINS_PER_MINUTE / 60, JOIN_BURST, nowMs);
      this.#buckets.set(keyId, bucket);
      const [first] = this.#buckets.keys();
      if (this.#buckets.size > MAX_KEYS) {
        this.#buckets.delete(first!);
      }
    }
    if (!bucket.take(1, nowMs)) {
      throw new ServiceError('RATE_LIMITED', undefined, 60 / JOINS_PER_MINUTE);
    }
  }
}
