// Limits for each client address: new connections, concurrent requests, requests without a key, and
// wrong keys or tokens.
import { ServiceError } from '../../base/errors.ts';
import { hashSecret } from '../../base/ids.ts';
import { monotonicMs } from '../../base/time.ts';
import { Addresses, limitKeyOf } from './addresses.ts';

/** Why a request or connection was refused; a label of mouthpiece_http_refused_total. */
export type Refusal =
  | 'requests_at_once'
  | 'open_requests'
  | 'wrong_keys'
  | 'new_connections'
  | 'all_connections'
  | 'body_memory'
  | 'slow_body';

/** Limits for each client address. */
export interface ClientLimitSettings {
  /** Addresses and networks whose X-Forwarded-For header is used. */
  readonly trustedProxies: readonly string[];
  /** Concurrent requests, and WebSockets that have not sent a valid token. */
  readonly requestsAtOnce: number;
  /** Requests that need no key, and refused WebSocket handshakes. */
  readonly openRequestsPerSecond: number;
  /** Wrong keys and tokens. */
  readonly wrongKeysPerMinute: number;
  /** New TCP connections, counted by the remote address of the connection. */
  readonly connectionsPerSecond: number;
}

/** The defaults; src/config.ts sets them from the environment. */
export const CLIENT_LIMITS: ClientLimitSettings = {
  trustedProxies: ['127.0.0.0/8', '::1'],
  requestsAtOnce: 1000,
  openRequestsPerSecond: 100,
  wrongKeysPerMinute: 60,
  connectionsPerSecond: 200,
};

/** A burst may use the rate of this many seconds at once. */
const OPEN_BURST_SECONDS = 5;
/** As above, for new connections. */
const CONNECTION_BURST_SECONDS = 10;
/** Addresses that are tracked at once. The one that was idle longest is dropped first. */
const MAX_ADDRESSES = 20_000;
/** Valid keys that are remembered, the most recent ones. */
const MAX_PROVEN_KEYS = 4096;
/** How long a valid key is remembered. */
const PROVEN_MS = 600_000;

/** A token bucket. Unlike base/token-bucket.ts it tells how long to wait. */
class Bucket {
  readonly #perSecond: number;
  readonly #most: number;
  #level: number;
  #atMs: number;

  constructor(perSecond: number, most: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#most = most;
    this.#level = most;
    this.#atMs = nowMs;
  }

  /** Seconds until one can be spent; 0: now. */
  waitSeconds(nowMs: number): number {
    this.#level = Math.min(
      this.#most,
      this.#level + (this.#perSecond * (nowMs - this.#atMs)) / 1000,
    );
    this.#atMs = nowMs;
    return this.#level >= 1 ? 0 : (1 - this.#level) / this.#perSecond;
  }

  spend(): void {
    this.#level = Math.max(0, this.#level - 1);
  }
}

interface Account {
  readonly open: Bucket;
  readonly wrong: Bucket;
  readonly connections: Bucket;
  atOnce: number;
}

/**
 * Limits for each client address. A trusted host that makes a request itself (by default: this
 * host, over loopback) has no limits. Requests through a trusted proxy count for the address that
 * it reports.
 */
export class ClientLimits {
  #options: ClientLimitSettings;
  readonly #onRefused: (reason: Refusal) => void;
  readonly #addresses: Addresses;
  readonly #now: () => number;
  /** In order of last use, the oldest first. */
  readonly #accounts = new Map<string, Account>();
  /** Hash of a recently valid key → until when it is remembered, in monotonic milliseconds. */
  readonly #proven = new Map<string, number>();

  constructor(
    options: ClientLimitSettings,
    onRefused: (reason: Refusal) => void,
    now: () => number = monotonicMs,
  ) {
    this.#options = options;
    this.#onRefused = onRefused;
    this.#addresses = new Addresses(options.trustedProxies);
    this.#now = now;
  }

  /** Changes the limits, but not the proxies. Rates that were used up are full again. */
  configure(options: ClientLimitSettings): void {
    this.#options = options;
    for (const account of this.#accounts.values()) {
      Object.assign(account, this.#buckets());
    }
  }

  /** The address that a request counts for; undefined when it has no limits. */
  clientOf(peer: string, forwardedFor: string): string | undefined {
    return this.#addresses.clientOf(peer, forwardedFor);
  }

  /** Counts a refusal that another part decided. */
  countRefusal(reason: Refusal): void {
    this.#onRefused(reason);
  }

  /** Counts a new TCP connection. Returns false when it must be closed. */
  admitConnection(peer: string): boolean {
    const client = this.#addresses.clientOf(peer, '');
    return (
      client === undefined ||
      this.#spend(this.#account(client).connections, 'new_connections') === 0
    );
  }

  /**
   * Counts the start of a request or a WebSocket.
   * @param most a lower limit of concurrent ones than `requestsAtOnce`
   * @returns a function that counts its end; calling it again does nothing
   * @throws ServiceError RATE_LIMITED
   */
  enter(client: string | undefined, most = Number.POSITIVE_INFINITY): () => void {
    if (client === undefined) {
      return () => {};
    }
    const account = this.#account(client);
    if (account.atOnce >= Math.min(most, this.#options.requestsAtOnce)) {
      throw this.#refusal('requests_at_once', 1);
    }
    account.atOnce++;
    let isOver = false;
    return () => {
      if (isOver) {
        return;
      }
      isOver = true;
      account.atOnce--;
    };
  }

  /** Counts a request that needs no key. @throws ServiceError RATE_LIMITED */
  countOpenRequest(client: string | undefined): void {
    if (client === undefined) {
      return;
    }
    const waitSeconds = this.#spend(this.#account(client).open, 'open_requests');
    if (waitSeconds > 0) {
      throw refusalOf(waitSeconds);
    }
  }

  /**
   * Call this before a key or token is looked up. An address that sent too many wrong ones may
   * still use keys that were valid recently, so that other users of a shared address are not locked
   * out.
   * @param key the API key; undefined for a token
   * @throws ServiceError RATE_LIMITED
   */
  checkKeyAttempt(client: string | undefined, key?: string): void {
    if (client === undefined) {
      return;
    }
    const waitSeconds = this.#account(client).wrong.waitSeconds(this.#now());
    if (waitSeconds > 0 && !(key !== undefined && this.#isProven(key))) {
      throw this.#refusal('wrong_keys', waitSeconds);
    }
  }

  /** Remembers a valid API key. */
  reportGoodKey(key: string): void {
    const hash = hashSecret(key);
    this.#proven.delete(hash);
    this.#proven.set(hash, this.#now() + PROVEN_MS);
    if (this.#proven.size > MAX_PROVEN_KEYS) {
      this.#proven.delete(this.#proven.keys().next().value!);
    }
  }

  /** Counts a wrong API key or token. */
  reportWrongKey(client: string | undefined, key?: string): void {
    if (key !== undefined) {
      this.#proven.delete(hashSecret(key));
    }
    if (client === undefined) {
      return;
    }
    const { wrong } = this.#account(client);
    wrong.waitSeconds(this.#now());
    wrong.spend();
  }

  #isProven(key: string): boolean {
    return (this.#proven.get(hashSecret(key)) ?? 0) > this.#now();
  }

  #account(client: string): Account {
    const name = limitKeyOf(client);
    const known = this.#accounts.get(name);
    if (known) {
      this.#accounts.delete(name);
    }
    const account = known ?? this.#newAccount();
    this.#accounts.set(name, account);
    return account;
  }

  #newAccount(): Account {
    if (this.#accounts.size >= MAX_ADDRESSES) {
      const [oldest] = this.#accounts.keys();
      this.#accounts.delete(oldest!);
    }
    return { ...this.#buckets(), atOnce: 0 };
  }

  #buckets(): Omit<Account, 'atOnce'> {
    const { openRequestsPerSecond, wrongKeysPerMinute, connectionsPerSecond } = this.#options;
    const nowMs = this.#now();
    return {
      open: new Bucket(openRequestsPerSecond, openRequestsPerSecond * OPEN_BURST_SECONDS, nowMs),
      wrong: new Bucket(wrongKeysPerMinute / 60, wrongKeysPerMinute, nowMs),
      connections: new Bucket(
        connectionsPerSecond,
        connectionsPerSecond * CONNECTION_BURST_SECONDS,
        nowMs,
      ),
    };
  }

  /** @returns seconds to wait; 0: spent */
  #spend(bucket: Bucket, reason: Refusal): number {
    const waitSeconds = bucket.waitSeconds(this.#now());
    if (waitSeconds > 0) {
      this.#onRefused(reason);
    } else {
      bucket.spend();
    }
    return waitSeconds;
  }

  #refusal(reason: Refusal, waitSeconds: number): ServiceError {
    this.#onRefused(reason);
    return refusalOf(waitSeconds);
  }
}

const refusalOf = (waitSeconds: number): ServiceError =>
  new ServiceError(
    'RATE_LIMITED',
    'Too many requests from this address. Try again after the time in Retry-After.',
    waitSeconds,
  );
