// Connects to the configured Redis, or starts a private one.
import path from 'node:path';
import type { Logger } from '../../base/log.ts';
import { startPrivateRedis } from './private-redis.ts';
import { RedisStore } from '../store/redis.ts';

/** Where the database is. */
export interface StoreConfig {
  /** One URL, or several separated by commas for a cluster. Undefined: a private redis-server. */
  readonly redisUrl: string | undefined;
  /** Where a private redis-server keeps its files. */
  readonly dataDir: string;
}

/** A connected store. */
export interface OpenStore {
  readonly store: RedisStore;
  /** Ends the connection and the private redis-server. */
  close(): Promise<void>;
}

/** @throws Error that says what to do when there is no database */
export async function connectStore(config: StoreConfig, log: Logger): Promise<OpenStore> {
  if (config.redisUrl !== undefined) {
    const store = await RedisStore.connect(
      config.redisUrl.split(',').map((url) => url.trim()),
      log,
    );
    return { store, close: () => store.close() };
  }
  const server = await startPrivateRedis(config.dataDir, log);
  try {
    const store = await RedisStore.connect([server.url], log);
    return {
      store,
      async close() {
        await store.close();
        await server.close();
      },
    };
  } catch (error) {
    await server.close();
    throw new Error(
      `The private redis-server in DATA_DIR=${config.dataDir} cannot be reached: see ` +
        `${path.join(config.dataDir, 'redis/redis.log')}, or set REDIS_URL to a Redis that ` +
        'runs elsewhere.',
      { cause: error },
    );
  }
}
