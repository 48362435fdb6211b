// The version of what is stored in Redis, and the migrations between versions.
import { newUuid } from '../../base/ids.ts';
import { every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import { keys } from './keys.ts';
import type { RedisStore } from './redis.ts';
import { RELEASE_LOCK } from './scripts.ts';

/**
 * One step to the next version. Servers of the version before run meanwhile (a rolling upgrade), so they
 * must understand the result. It may be cut off and begun again.
 */
export interface Migration {
  /** What it does, for the log. */
  readonly name: string;
  run(store: RedisStore): Promise<void>;
}

/** From version 1 to 2 the first, and so on. */
const MIGRATIONS: readonly Migration[] = [];

/** The version that this program reads and writes. */
export const SCHEMA_VERSION = MIGRATIONS.length + 1;

const LOCK_MS = 15_000;
const WAIT_MS = 120_000;
const POLL_MS = 200;

/** The version in Redis; 1 where none is written. @throws Error when it is no number */
export async function storedSchema(store: RedisStore): Promise<number> {
  const text = await store.use((client) => client.get(keys.schema()));
  const version = Number(text ?? 1);
  if (!Number.isInteger(version) || version < 1) {
    throw new Error(
      `The schema of the data in Redis is '${text}', not a number. Is it Mouthpiece's?`,
    );
  }
  return version;
}

/**
 * Brings the data to the version of this program. One of several servers does it; the others wait.
 * @throws Error that says what to do when the data is newer, or when another server takes too long
 */
export async function migrate(
  store: RedisStore,
  log: Logger,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const latest = migrations.length + 1;
  const startMs = monotonicMs();
  await store.use((client) => client.set(keys.schema(), 1, 'NX'));
  while (monotonicMs() - startMs < WAIT_MS) {
    const version = await storedSchema(store);
    if (version > latest) {
      throw new Error(
        `The data in Redis has schema ${version}, and this version of Mouthpiece knows ${latest}. ` +
          'Start a newer version, or import a backup of this one into an empty Redis.',
      );
    }
    if (version === latest) {
      return;
    }
    if (!(await step(store, log, version, migrations[version - 1]!))) {
      await sleep(POLL_MS);
    }
  }
  throw new Error(
    'Another server has been migrating the data in Redis for two minutes. See its log.',
  );
}

/** Runs one migration under the lock. @returns false while another server holds it */
async function step(
  store: RedisStore,
  log: Logger,
  version: number,
  migration: Migration,
): Promise<boolean> {
  const lock = keys.schemaLock();
  const holder = newUuid();
  if ((await store.use((client) => client.set(lock, holder, 'PX', LOCK_MS, 'NX'))) === null) {
    return false;
  }
  const extension = every(LOCK_MS / 3, 'the lock of a migration', () => {
    void store.use((client) => client.pexpire(lock, LOCK_MS)).catch(() => {});
  });
  try {
    if ((await storedSchema(store)) === version) {
      log.info(
        { from: version, to: version + 1 },
        `migrating the data in Redis: ${migration.name}`,
      );
      await migration.run(store);
      await store.use((client) => client.set(keys.schema(), version + 1));
    }
  } finally {
    clearInterval(extension);
    await store.run(RELEASE_LOCK, [lock], [holder]);
  }
  return true;
}
