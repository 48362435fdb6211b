// Looks through everything in Redis for what does not belong together.
import { allKeys } from './data-copy.ts';
import { familyOf, type KeyFamily } from './key-families.ts';
import { keys } from './keys.ts';
import type { RedisStore } from './redis.ts';

/** What was found. */
export interface DataReport {
  /** Number of keys by family. */
  readonly counts: ReadonlyMap<string, number>;
  /** In words, one for each thing that is wrong. */
  readonly problems: readonly string[];
}

/** Reads everything; writes nothing. */
export async function checkData(store: RedisStore): Promise<DataReport> {
  const counts = new Map<string, number>();
  const problems: string[] = [];
  const seen = new Set<string>();
  for await (const key of allKeys(store)) {
    if (seen.has(key)) {
      continue;
    }
    seen.add(key);
    const family = familyOf(key);
    if (family === undefined) {
      problems.push(`${key}: a key that Mouthpiece does not write`);
      continue;
    }
    counts.set(family.name, (counts.get(family.name) ?? 0) + 1);
    const type = await store.use((client) => client.type(key));
    if (type === family.type) {
      problems.push(...(await problemsOf(store, key, family)));
    } else if (type !== 'none') {
      problems.push(`${key}: a ${type} in the place of a ${family.type}`);
    }
  }
  return { counts, problems };
}

async function problemsOf(store: RedisStore, key: string, family: KeyFamily): Promise<string[]> {
  const json = family.isJson === true ? await brokenJson(store, key, family) : [];
  const id = key.slice(key.indexOf('{') + 1, key.indexOf('}'));
  const missing = await missingOf(store, key, family, id);
  return [...json, ...missing].map((problem) => `${key}: ${problem}`);
}

async function brokenJson(store: RedisStore, key: string, { type }: KeyFamily): Promise<string[]> {
  const values =
    type === 'hash'
      ? Object.entries(await store.use((client) => client.hgetall(key)))
      : [['its value', (await store.use((client) => client.get(key))) ?? 'null']];
  return values
    .filter(([, text]) => !isJson(text!))
    .map(([name]) => `${name} is no JSON: it cannot be read`);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What a list names that is not there, and what is there that its list does not name. */
async function missingOf(
  store: RedisStore,
  key: string,
  { name }: KeyFamily,
  id: string,
): Promise<string[]> {
  const absent = async (ids: readonly string[], keyOf: (id: string) => string) => {
    const found = await Promise.all(
      ids.map((one) => store.use((client) => client.exists(keyOf(one)))),
    );
    return ids.filter((_, i) => found[i] === 0).map((one) => `it names ${one}, which is gone`);
  };
  switch (name) {
    case 'ids of API keys':
      return await absent(await store.use((client) => client.smembers(key)), keys.apiKey);
    case 'API keys': {
      const isListed = await store.use((client) => client.sismember(keys.allApiKeys(), id));
      return isListed === 1 ? [] : ['it works, but the list of API keys does not name it'];
    }
    case 'faces of owners':
      return await absent(await store.use((client) => client.zrange(key, '0', '-1')), keys.face);
    case 'faces': {
      const { ownerId = '', status = '' } = await store.use((client) => client.hgetall(key));
      const rank = await store.use((client) => client.zscore(keys.facesOf(ownerId), id));
      return [
        ...(rank === null ? [`the list of its owner ${ownerId} does not name it`] : []),
        ...(status === '' ? ['it has no state'] : []),
      ];
    }
    case 'history': {
      const ids = await store.use((client) => client.zrange(key, '0', '-1'));
      const records = new Set(await store.use((client) => client.hkeys(keys.historyRecords(id))));
      return ids.filter((one) => !records.has(one)).map((one) => `it names ${one}, which is gone`);
    }
    default:
      return [];
  }
}
