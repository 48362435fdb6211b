// The connection to Redis. Commands fail at once while it is disconnected. Scripts run by digest.
import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { ServiceError } from '../../base/errors.ts';
import { after, every, guarded } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs } from '../../base/time.ts';
import { createRedisClient, isSentinelUrl, type RedisAccess } from './redis-client.ts';
import type { Script } from './scripts.ts';

/**
 * How often Redis is asked whether it answers: one that hangs, or whose disk is full, keeps its
 * connections.
 */
const PING_INTERVAL_MS = 2000;

/** A reply of Redis to a script. */
export type RedisValue = string | number | null | RedisValue[];

/**
 * Redis for all stores. Every method rejects with STORE_UNAVAILABLE when Redis does not respond.
 */
export class RedisStore {
  readonly client: Redis | Cluster;
  readonly #log: Logger;
  readonly #digests = new Map<Script, string>();
  readonly #readyListeners = new Set<() => void>();
  readonly #pinger: NodeJS.Timeout;
  #isAnswering = true;
  #loggedMs = 0;

  private constructor(client: Redis | Cluster, log: Logger) {
    this.client = client;
    this.#log = log;
    client.on('error', (error: Error) => this.#logOutage(error));
    client.on('ready', () => {
      this.#isAnswering = true; // the next ping tells more
      for (const listener of this.#readyListeners) {
        guarded('a listener for the connection to Redis', listener)();
      }
    });
    this.#pinger = every(PING_INTERVAL_MS, 'the ping of Redis', () => this.ping()).unref();
  }

  /**
   * Connects.
   * @throws Error that says what to do when Redis does not respond within `timeoutMs`
   */
  static async connect(access: RedisAccess, log: Logger, timeoutMs = 10_000): Promise<RedisStore> {
    const client = createRedisClient(access);
    const store = new RedisStore(client, log);
    try {
      await becomesReady(client, timeoutMs);
    } catch (error) {
      clearInterval(store.#pinger);
      client.disconnect();
      throw new Error(
        `Redis at ${access.urls.map(withoutPassword).join(', ')} does not answer ` +
          `(${(error as Error).message}). Start it, or correct ${settingsOf(access)}.`,
        { cause: error },
      );
    }
    return store;
  }

  /** True while Redis answers: connected, and the last ping was answered without an error. */
  get ready(): boolean {
    return this.client.status === 'ready' && this.#isAnswering;
  }

  /** Calls `listener` after each reconnect. Returns a function that removes it. */
  onReady(listener: () => void): () => void {
    this.#readyListeners.add(listener);
    return () => {
      this.#readyListeners.delete(listener);
    };
  }

  /** Runs commands on the client. @throws ServiceError STORE_UNAVAILABLE when they fail */
  async use<T>(work: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    try {
      return await work(this.client);
    } catch (error) {
      if (error instanceof ServiceError) {
        throw error;
      }
      this.#logOutage(error as Error);
      throw Object.assign(new ServiceError('STORE_UNAVAILABLE'), { cause: error });
    }
  }

  /** Runs a script by its digest, or by its text when Redis does not know it yet. */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<RedisValue> {
    let digest = this.#digests.get(script);
    if (!digest) {
      digest = createHash('sha1').update(script.lua).digest('hex');
      this.#digests.set(script, digest);
    }
    const sha = digest;
    return this.use(async (client) => {
      try {
        return (await client.evalsha(sha, keys.length, ...keys, ...args)) as RedisValue;
      } catch (error) {
        if (!(error as Error).message.startsWith('NOSCRIPT')) {
          throw error;
        }
        return (await client.eval(script.lua, keys.length, ...keys, ...args)) as RedisValue;
      }
    });
  }

  /** Asks Redis whether it answers. One that cannot write to its disk refuses pings, too. */
  async ping(): Promise<boolean> {
    if (this.client.status !== 'ready') {
      return false;
    }
    this.#isAnswering = await this.use((client) => client.ping()).then(
      () => true,
      () => false,
    );
    return this.#isAnswering;
  }

  /** Ends the connection, after pending commands for up to 0.5 s. */
  async close(): Promise<void> {
    clearInterval(this.#pinger);
    this.#readyListeners.clear();
    const timeout = new Promise<void>((resolve) => {
      after(500, 'the end of a connection', () => {
        resolve();
      }).unref();
    });
    await Promise.race([this.client.quit().catch(() => {}), timeout]);
    this.client.disconnect();
  }

  /** Logs at most once a second. */
  #logOutage(error: Error): void {
    const now = monotonicMs();
    if (now - this.#loggedMs < 1000) {
      return;
    }
    this.#loggedMs = now;
    this.#log.warn({ err: error.message }, 'Redis does not answer');
  }
}

const settingsOf = ({ urls }: RedisAccess): string =>
  isSentinelUrl(urls[0]!) ? 'REDIS_URL or REDIS_SENTINEL_MASTER' : 'REDIS_URL';

const withoutPassword = (url: string): string => url.replace(/\/\/[^@/]*@/, '//');

/** Waits for the first connection. @throws Error with the last failure after `timeoutMs` */
function becomesReady(client: Redis | Cluster, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let last = 'timed out';
    const note = (error: Error): void => {
      last = error.message || last;
    };
    const timer = after(timeoutMs, 'the wait for Redis', () => {
      done(new Error(last));
    });
    const ready = (): void => done();
    const ended = (): void => done(new Error(last));
    const done = (error?: Error): void => {
      clearTimeout(timer);
      client.off('ready', ready);
      client.off('end', ended);
      client.off('error', note);
      if (error) {
        reject(error);
      } else {
        resolve();
      }
    };
    client.on('error', note);
    client.on('ready', ready);
    client.on('end', ended);
    client.connect().catch(note); // the retry strategy tries again
  });
}
