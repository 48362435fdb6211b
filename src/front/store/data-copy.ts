// Copies of what is durable in Redis, as lines of JSON: a head, a line for each key, an end with the
// count. Secrets stay sealed with SECRETS_KEY.
import type { Cluster, Redis } from 'ioredis';
import { wallMs } from '../../base/time.ts';
import { familyOf, type KeyFamily } from './key-families.ts';
import { ALL_KEYS, keys } from './keys.ts';
import type { RedisStore } from './redis.ts';
import { SCHEMA_VERSION, storedSchema } from './schema.ts';

const SCAN_COUNT = 500;

/** A key with its value: members of a set; else fields, scores by member, or a text. */
interface Entry {
  readonly key: string;
  readonly value: string | string[] | Record<string, string>;
  /** Unix milliseconds; undefined: it stays. */
  readonly expiresAtMs?: number;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** All keys of the store, in no order. @yields each once; some twice while others are written */
export async function* allKeys(store: RedisStore): AsyncGenerator<string> {
  const { client } = store;
  const servers = 'nodes' in client ? client.nodes('master') : [client];
  for (const server of servers) {
    let cursor = '0';
    do {
      const [next, found] = await store.use(() =>
        server.scan(cursor, 'MATCH', ALL_KEYS, 'COUNT', SCAN_COUNT),
      );
      cursor = next;
      yield* found;
    } while (cursor !== '0');
  }
}

/** @yields the lines of a copy, without their line ends */
export async function* exportData(store: RedisStore): AsyncGenerator<string> {
  const head = { mouthpiece: 'data', schema: await storedSchema(store), atMs: wallMs() };
  yield JSON.stringify(head);
  const seen = new Set<string>();
  for await (const key of allKeys(store)) {
    const family = familyOf(key);
    if (family?.isDurable === true && !seen.has(key)) {
      seen.add(key);
      const entry = await read(store, key, family);
      if (entry === undefined) {
        seen.delete(key); // it expired meanwhile
      } else {
        yield JSON.stringify(entry);
      }
    }
  }
  yield JSON.stringify({ end: seen.size });
}

async function read(
  store: RedisStore,
  key: string,
  { type }: KeyFamily,
): Promise<Entry | undefined> {
  const [value, ttlMs] = await store.use((client) =>
    Promise.all([valueOf(client, key, type), client.pttl(key)]),
  );
  if (value === undefined || ttlMs === -2) {
    return undefined;
  }
  return ttlMs < 0 ? { key, value } : { key, value, expiresAtMs: wallMs() + ttlMs };
}

async function valueOf(
  client: Redis | Cluster,
  key: string,
  type: KeyFamily['type'],
): Promise<Entry['value'] | undefined> {
  switch (type) {
    case 'hash':
      return await client.hgetall(key);
    case 'set':
      return await client.smembers(key);
    case 'string':
      return (await client.get(key)) ?? undefined;
    default: {
      const flat = await client.zrange(key, '0', '-1', 'WITHSCORES');
      return Object.fromEntries(
        Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!]),
      );
    }
  }
}

/**
 * Writes a copy into an empty Redis. Everything is checked before anything is written.
 * @param read yields the lines, each time from the first one
 * @returns number of keys written; what has expired since is left out
 * @throws Error with the number of the line that is wrong, or when Redis is not empty
 */
export async function importData(
  store: RedisStore,
  read: () => AsyncIterable<string>,
): Promise<number> {
  const schema = await check(read());
  for await (const key of allKeys(store)) {
    if (familyOf(key)?.isDurable === true) {
      throw new Error(
        `Redis holds data already, such as ${key}. Import into an empty Redis (another database, ` +
          'or another DATA_DIR), before a server has started on it.',
      );
    }
  }
  let count = 0;
  let number = 0;
  for await (const line of read()) {
    number++;
    const entry = number === 1 ? undefined : parse(line, number);
    if (entry !== undefined && 'key' in entry && !(entry.expiresAtMs! <= wallMs())) {
      await write(store, entry);
      count++;
    }
  }
  await store.use((client) => client.set(keys.schema(), schema));
  return count;
}

/** @returns the schema of a copy that is whole */
async function check(lines: AsyncIterable<string>): Promise<number> {
  let number = 0;
  let schema = 0;
  let end: number | undefined;
  for await (const line of lines) {
    number++;
    if (number === 1) {
      schema = headOf(line);
      continue;
    }
    if (end !== undefined) {
      throw new Error(`line ${number}: there is more after the end. Is it two copies in one file?`);
    }
    const entry = parse(line, number);
    end = 'end' in entry ? entry.end : undefined;
  }
  if (end === undefined || end !== number - 2) {
    throw new Error(
      `The copy is cut off: it has ${Math.max(0, number - 1)} lines of ${end ?? 'an unknown number'}.`,
    );
  }
  return schema;
}

function headOf(line: string): number {
  const head = objectOf(line, 1);
  const schema = head['schema'];
  if (head['mouthpiece'] !== 'data' || typeof schema !== 'number') {
    throw new Error('line 1: this is no file of npm run data -- export.');
  }
  if (schema > SCHEMA_VERSION) {
    throw new Error(
      `line 1: the copy has schema ${schema}, and this version of Mouthpiece knows ` +
        `${SCHEMA_VERSION}. Import it with a newer version.`,
    );
  }
  return schema;
}

function objectOf(line: string, number: number): Record<string, unknown> {
  try {
    const value = JSON.parse(line) as unknown;
    if (isRecord(value)) {
      return value;
    }
  } catch {
    // Told below.
  }
  throw new Error(`line ${number}: it is not a JSON object. The file is damaged.`);
}

function parse(line: string, number: number): Entry | { readonly end: number } {
  const { key, value, expiresAtMs, end } = objectOf(line, number);
  if (typeof end === 'number') {
    return { end };
  }
  const family = typeof key === 'string' ? familyOf(key) : undefined;
  if (family?.isDurable !== true || !fits(value, family.type)) {
    throw new Error(`line ${number}: it holds nothing that an export does. The file is damaged.`);
  }
  return {
    key: key as string,
    value: value as Entry['value'],
    ...(typeof expiresAtMs === 'number' ? { expiresAtMs } : {}),
  };
}

function fits(value: unknown, type: KeyFamily['type']): boolean {
  const areTexts = (all: readonly unknown[]): boolean =>
    all.length > 0 && all.every((one) => typeof one === 'string');
  switch (type) {
    case 'string':
      return typeof value === 'string';
    case 'set':
      return Array.isArray(value) && areTexts(value);
    case 'hash':
      return isRecord(value) && areTexts(Object.values(value));
    default:
      return (
        isRecord(value) &&
        areTexts(Object.values(value)) &&
        Object.values(value).every((score) => Number.isFinite(Number(score)))
      );
  }
}

async function write(store: RedisStore, { key, value, expiresAtMs }: Entry): Promise<void> {
  await store.use(async (client) => {
    if (typeof value === 'string') {
      await client.set(key, value);
    } else if (Array.isArray(value)) {
      await client.sadd(key, ...value);
    } else if (familyOf(key)!.type === 'hash') {
      await client.hset(key, value);
    } else {
      await client.zadd(key, ...Object.entries(value).flatMap(([name, score]) => [score, name]));
    }
    if (expiresAtMs !== undefined) {
      await client.pexpireat(key, expiresAtMs);
    }
  });
}
