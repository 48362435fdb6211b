// The schema of the data in Redis, its copies and their check; the drill of docs/operations.md.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { newUuid } from '../../../src/base/ids.ts';
import { createLogger } from '../../../src/base/log.ts';
import { sleep, wallSeconds } from '../../../src/base/time.ts';
import { ApiKeys } from '../../../src/front/accounts/api-keys.ts';
import { FaceRecords } from '../../../src/front/faces/face-records.ts';
import { History } from '../../../src/front/history/history.ts';
import { SessionTokens } from '../../../src/front/sessions/session-tokens.ts';
import { checkData } from '../../../src/front/store/data-check.ts';
import { allKeys, exportData, importData } from '../../../src/front/store/data-copy.ts';
import { familyOf } from '../../../src/front/store/key-families.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { DEFAULT_LOOK } from '../../../src/media/face-look.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { migrate, storedSchema } from '../../../src/front/store/schema.ts';
import { startCluster, startRedis, type TestRedis } from '../redis-servers.ts';
import { GRANT, recordOf } from './records.ts';

const log = createLogger('silent');
let opened: { redis: TestRedis; store: RedisStore }[];
let directory: string;

beforeEach(() => {
  opened = [];
  directory = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-data-'));
});

afterEach(async () => {
  for (const { redis, store } of opened) {
    await store.close();
    await redis.close();
  }
  rmSync(directory, { recursive: true });
});

async function open(start = startRedis): Promise<{ redis: TestRedis; store: RedisStore }> {
  const redis = await start();
  const store = await RedisStore.connect({ urls: redis.url.split(',') }, log);
  opened.push({ redis, store });
  return { redis, store };
}

/** Writes something of each durable kind that has a class of its own. @returns an API key */
async function fill(store: RedisStore): Promise<string> {
  const { key } = await new ApiKeys(store, 1000).create('owner', 'laptop');
  await new FaceRecords(store).create('owner', 'Ada "the first"\n', DEFAULT_LOOK);
  const history = new History(store, 90);
  await history.write(recordOf(newUuid(), wallSeconds()), wallSeconds());
  await new SessionTokens(store, 600).create(GRANT);
  await store.use((client) => client.set(keys.transcript('one'), '{"items":[]}', 'PX', 60_000));
  return key;
}

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) {
    found.push(value);
  }
  return found;
}

async function durable(store: RedisStore): Promise<string[]> {
  const found = await all(allKeys(store));
  return found.filter((key) => familyOf(key)!.isDurable).toSorted();
}

function data(url: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const script = path.resolve(import.meta.dirname, '../../../scripts/data.ts');
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', script, ...args],
      { env: { ...process.env, REDIS_URL: url } },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
      },
    );
  });
}

test('a drill: export from one server, import into a cluster, and everything works', async () => {
  const [from, to] = [await open(), await open(startCluster)];
  const key = await fill(from.store);
  const file = path.join(directory, 'copy.jsonl');
  const exported = await data(from.redis.url, 'export', file);
  assert.equal(exported.code, 0, exported.err);
  assert.equal(statSync(file).mode & 0o777, 0o600, 'only this user may read it');

  const imported = await data(to.redis.url, 'import', file);
  assert.equal(imported.code, 0, imported.err);
  assert.deepEqual(await durable(to.store), await durable(from.store));
  assert.equal((await new ApiKeys(to.store, 1000).authenticate(key)).keyName, 'laptop');
  assert.equal((await new FaceRecords(to.store).list('owner'))[0]!.name, 'Ada "the first"\n');
  const ttlMs = await to.store.use((client) => client.pttl(keys.transcript('one')));
  assert.ok(ttlMs > 0 && ttlMs <= 60_000, `${ttlMs}`);
  const checked = await data(to.redis.url, 'check');
  assert.equal(checked.code, 0, checked.out);
  assert.match(checked.out, /1 {2}faces\n/);
  assert.ok(!readFileSync(file, 'utf8').includes(':token:'), 'tokens are not durable');

  const again = await data(to.redis.url, 'import', file);
  assert.equal(again.code, 1);
  assert.match(again.err, /^data: Redis holds data already/m);
});

test('a copy that is damaged, cut off or newer writes nothing', async () => {
  const [{ store: from }, { store, redis }] = [await open(), await open()];
  await fill(from);
  const lines = await all(exportData(from));
  const whole = lines.map((line) => `${line}\n`).join('');
  for (const [text, reason] of [
    ['', /cut off/],
    ['{}\n', /line 1: this is no file/],
    [lines.slice(0, -1).join('\n'), /cut off/],
    [lines.toSpliced(2, 1).join('\n'), /cut off/],
    [whole + whole, /two copies/],
    [whole.replace('"schema":1', '"schema":99'), /newer version/],
    [lines.toSpliced(1, 1, '{"key": "mp:face:{x}", "value": {"a": 1}}').join('\n'), /line 2/],
    [lines.toSpliced(1, 1, '{"key": "other", "value": "a"}').join('\n'), /line 2/],
    [lines.toSpliced(1, 1, '{"key": "mp:fa').join('\n'), /line 2: it is not a JSON/],
  ] as const) {
    await assert.rejects(
      importData(store, async function* () {
        yield* text.split('\n').filter((line) => line !== '');
      }),
      reason,
    );
    assert.deepEqual(await durable(store), []);
  }
  const { code, err } = await data(redis.url, 'import', path.join(directory, 'absent'));
  assert.equal(code, 1);
  assert.match(err, /^Store: .*\ndata: ENOENT/);
  assert.equal((await data(redis.url, 'destroy')).code, 2);
});

test('the check finds what does not belong together', async () => {
  const { store } = await open();
  await fill(store);
  assert.deepEqual((await checkData(store)).problems, []);
  await store.use(async (client) => {
    await client.zadd(keys.facesOf('owner'), 1, 'lost');
    await client.hset(keys.agents('owner'), 'agent', '{');
    await client.set(keys.apiKeyLive('x'), 'a text');
    await client.set('mp:elsewhere', 1);
    await client.srem(keys.allApiKeys(), ...(await client.smembers(keys.allApiKeys())));
  });
  const { problems } = await checkData(store);
  for (const reason of [
    /faces:\{owner\}: it names lost, which is gone/,
    /agents:\{owner\}: agent is no JSON/,
    /live: a string in the place of a zset/,
    /mp:elsewhere: a key that Mouthpiece does not write/,
    /mp:key:\{\w+\}: it works, but the list/,
  ]) {
    assert.ok(
      problems.some((problem) => reason.test(problem)),
      `${reason} in ${problems.join()}`,
    );
  }
  assert.equal(problems.length, 5);
});

test('every family of keys is known once', () => {
  for (const build of Object.values(keys) as ((id: string) => string)[]) {
    const key = build('ab-12');
    assert.notEqual(familyOf(key), undefined, key);
  }
});

test('of several servers one migrates, once; data of a newer version is refused', async () => {
  const { store } = await open();
  const runs: string[] = [];
  const migrations = ['first', 'second'].map((name) => ({
    name,
    run: async () => {
      runs.push(name);
      await sleep(300);
    },
  }));
  await Promise.all(Array.from({ length: 4 }, () => migrate(store, log, migrations)));
  assert.deepEqual(runs, ['first', 'second']);
  assert.equal(await storedSchema(store), 3);
  await migrate(store, log, migrations);
  assert.equal(runs.length, 2);
  await assert.rejects(migrate(store, log), /has schema 3, and this version .* knows 1/);
});

test('a migration that fails is begun again', async () => {
  const { store } = await open();
  let runs = 0;
  const migrations = [
    {
      name: 'second time lucky',
      run: () => (++runs === 1 ? Promise.reject(new Error('no')) : Promise.resolve()),
    },
  ];
  await assert.rejects(migrate(store, log, migrations), /^Error: no$/);
  await migrate(store, log, migrations);
  assert.deepEqual([runs, await storedSchema(store)], [2, 2]);
});
