// Opens the database the configuration names, or a private one.
import path from 'node:path';
import type { Logger } from '../../base/log.ts';
import { startPrivateRedis } from './private-redis.ts';
import { RedisStore } from '../store/redis.ts';

export interface StoreConfig {
  /** One URL, or several separated by commas for a cluster. Undefined: a private redis-server under `dataDir`. */
  readonly redisUrl: string | undefined;
  readonly dataDir: string;
}

export interface OpenStore {
  readonly store: RedisStore;
  close(): Promise<void>;
}

/** @throws Error with one line to act on when there is no database to be had. */
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
      `The redis-server of our own on DATA_DIR=${config.dataDir} does not stay: see ${path.join(config.dataDir, 'redis/redis.log')}, or set REDIS_URL to a Redis that runs elsewhere.`,
      { cause: error },
    );
  }
}
