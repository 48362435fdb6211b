// Opens the database of a server for a command, and says on stderr which one that is.
import { existsSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { createLogger } from '../src/base/log.ts';
import { maskUserInfo } from '../src/base/hosts.ts';
import type { Config } from '../src/config.ts';
import { connectAside, type OpenStore } from '../src/front/process/open-store.ts';
import { readSettings } from '../src/settings-file.ts';
import { storeConfig } from '../src/store-config.ts';

/** A store, and the settings that led to it. */
export interface ConfiguredStore extends OpenStore {
  readonly config: Config;
}

/** @throws Error that says what to do when a setting is wrong, or there is no database */
export async function openStore(): Promise<ConfiguredStore> {
  const config = readSettings(process.env);
  const { DATA_DIR, REDIS_URL } = config;
  const isNew = REDIS_URL === undefined && !existsSync(path.join(DATA_DIR, 'redis'));
  const opened = await connectAside(storeConfig(config), createLogger('error'));
  process.stderr.write(
    REDIS_URL === undefined
      ? `Store: ${path.join(DATA_DIR, 'redis')} (DATA_DIR)\n`
      : `Store: ${maskUserInfo(REDIS_URL)} (REDIS_URL)\n`,
  );
  if (isNew) {
    process.stderr.write(
      `This store is NEW and empty: there was none in ${DATA_DIR}. If you meant that of a server, ` +
        'set its DATA_DIR or REDIS_URL.\n',
    );
  }
  return { ...opened, config };
}
