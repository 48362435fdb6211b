// Connects to the configured Redis, or starts a private one.
import path from 'node:path';
import type { Logger } from '../../base/log.ts';
import { runningPrivateRedis, startPrivateRedis } from './private-redis.ts';
import { RedisStore } from '../store/redis.ts';
import type { RedisAccess } from '../store/redis-client.ts';

/** Where the database is. */
export interface StoreConfig {
  /** Undefined: a private redis-server. */
  readonly redis: RedisAccess | undefined;
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
  if (config.redis !== undefined) {
    const store = await RedisStore.connect(config.redis, log);
    return { store, close: () => store.close() };
  }
  const server = await startPrivateRedis(config.dataDir, log);
  try {
    const store = await RedisStore.connect({ urls: [server.url] }, log);
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

/** Connects beside a server that may run: to its private redis-server where it has one. */
export async function connectAside(config: StoreConfig, log: Logger): Promise<OpenStore> {
  const running =
    config.redis === undefined ? await runningPrivateRedis(config.dataDir) : undefined;
  return await connectStore(
    running === undefined ? config : { ...config, redis: { urls: [running] } },
    log,
  );
}
