// The settings of Redis as the store takes them.
import { readFileSync } from 'node:fs';
import { type Config, ConfigError } from './config.ts';
import type { StoreConfig } from './front/process/open-store.ts';

/** @throws ConfigError when a file of a certificate cannot be read */
export function storeConfig(config: Config): StoreConfig {
  const { DATA_DIR: dataDir, REDIS_URL: url } = config;
  if (url === undefined) {
    return { redis: undefined, dataDir };
  }
  return {
    redis: {
      urls: url.split(',').map((one) => one.trim()),
      username: config.REDIS_USERNAME,
      password: config.REDIS_PASSWORD,
      sentinelMaster: config.REDIS_SENTINEL_MASTER,
      ca: pemOf('REDIS_CA_FILE', config.REDIS_CA_FILE),
      cert: pemOf('REDIS_CERT_FILE', config.REDIS_CERT_FILE),
      key: pemOf('REDIS_KEY_FILE', config.REDIS_KEY_FILE),
    },
    dataDir,
  };
}

function pemOf(setting: string, file: string | undefined): string | undefined {
  if (file === undefined) {
    return undefined;
  }
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${setting}=${file}: ${(error as Error).message}`);
  }
}
