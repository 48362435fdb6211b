// What one address may do: connect, ask at once, ask without a key, and send wrong keys and tokens.
import { ServiceError } from '../../base/errors.ts';
import { hashSecret } from '../../base/ids.ts';
import { monotonicMs } from '../../base/time.ts';
import { Addresses, limitKeyOf } from './addresses.ts';

/** What a request or connection was refused for. */
export type Refusal =
  | 'requests_at_once'
  | 'open_requests'
  | 'wrong_keys'
  | 'new_connections'
  | 'all_connections'
  | 'body_memory'
  | 'slow_body';

export interface ClientLimitSettings {
  readonly trustedProxies: readonly string[];
  /** Requests being answered, and WebSockets that have not shown a good token. */
  readonly requestsAtOnce: number;
  /** Requests that need no key, refused handshakes included. */
  readonly openRequestsPerSecond: number;
  /** Wrong keys and tokens. */
  readonly wrongKeysPerMinute: number;
  /** New TCP connections, counted for the other end of the connection itself. */
  readonly connectionsPerSecond: number;
}

export const CLIENT_LIMITS: ClientLimitSettings = {
  trustedProxies: ['127.0.0.0/8', '::1'],
  requestsAtOnce: 1000,
  openRequestsPerSecond: 100,
  wrongKeysPerMinute: 60,
  connectionsPerSecond: 200,
};

/** A burst of so many seconds' worth is allowed. */
const OPEN_BURST_SECONDS = 5;
const CONNECTION_BURST_SECONDS = 10;
/** Addresses remembered at once. Those that did nothing for longest are forgotten first. */
const MAX_ADDRESSES = 20_000;
const MAX_PROVEN_KEYS = 4096;
const PROVEN_MS = 600_000;

/** So many a second; `level` is what may be spent at once. */
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
 * Limits by address. A trusted machine that asks for itself (by default: this one, over loopback) has
 * none; requests that a trusted proxy passes on count for the address that it names.
 */
export class ClientLimits {
  readonly #options: ClientLimitSettings;
  readonly #onRefused: (reason: Refusal) => void;
  readonly #addresses: Addresses;
  readonly #now: () => number;
  /** The least recently seen first. */
  readonly #accounts = new Map<string, Account>();
  /** Hashes of keys that were good lately, and until when that counts. */
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

  /** Whom a request counts for. Undefined: it has no limits. */
  clientOf(peer: string, forwardedFor: string): string | undefined {
    return this.#addresses.clientOf(peer, forwardedFor);
  }

  /** Counts what was refused elsewhere for lack of room. */
  refuse(reason: Refusal): void {
    this.#onRefused(reason);
  }

  /** A new TCP connection. False: close it. */
  connect(peer: string): boolean {
    const client = this.#addresses.clientOf(peer, '');
    return (
      client === undefined ||
      this.#spend(this.#account(client).connections, 'new_connections') === 0
    );
  }

  /**
   * Begins a request or a WebSocket.
   * @param most at once, where that is less than usual
   * @returns what ends it, once
   * @throws RATE_LIMITED
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

  /** A request that needs no key. @throws RATE_LIMITED */
  open(client: string | undefined): void {
    if (client === undefined) {
      return;
    }
    const waitSeconds = this.#spend(this.#account(client).open, 'open_requests');
    if (waitSeconds > 0) {
      throw refusalOf(waitSeconds);
    }
  }

  /**
   * Before `key` (or a token; then without one) is looked up. An address that sent too many wrong ones
   * can go on with keys that were good lately, so that who shares it is not shut out.
   * @throws RATE_LIMITED
   */
  tryKey(client: string | undefined, key?: string): void {
    if (client === undefined) {
      return;
    }
    const waitSeconds = this.#account(client).wrong.waitSeconds(this.#now());
    if (waitSeconds > 0 && !(key !== undefined && this.#isProven(key))) {
      throw this.#refusal('wrong_keys', waitSeconds);
    }
  }

  rightKey(key: string): void {
    const hash = hashSecret(key);
    this.#proven.delete(hash);
    this.#proven.set(hash, this.#now() + PROVEN_MS);
    if (this.#proven.size > MAX_PROVEN_KEYS) {
      this.#proven.delete(this.#proven.keys().next().value!);
    }
  }

  /** A key or token that was wrong. */
  wrongKey(client: string | undefined, key?: string): void {
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
    const { openRequestsPerSecond, wrongKeysPerMinute, connectionsPerSecond } = this.#options;
    const nowMs = this.#now();
    if (this.#accounts.size >= MAX_ADDRESSES) {
      const [oldest] = this.#accounts.keys();
      this.#accounts.delete(oldest!);
    }
    return {
      open: new Bucket(openRequestsPerSecond, openRequestsPerSecond * OPEN_BURST_SECONDS, nowMs),
      wrong: new Bucket(wrongKeysPerMinute / 60, wrongKeysPerMinute, nowMs),
      connections: new Bucket(
        connectionsPerSecond,
        connectionsPerSecond * CONNECTION_BURST_SECONDS,
        nowMs,
      ),
      atOnce: 0,
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
