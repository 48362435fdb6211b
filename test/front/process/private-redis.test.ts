// The private redis-server: keeps its data, comes back when it dies, and never outlives its server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { patience } from '../../harness/machine.ts';
import { createLogger } from '../../../src/base/log.ts';
import { sleep } from '../../../src/base/time.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { connectStore } from '../../../src/front/process/open-store.ts';
import { runningPrivateRedis } from '../../../src/front/process/private-redis.ts';

const log = createLogger('silent');
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-private-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Asked of the server itself: Redis and Valkey call their processes differently. */
const pidOf = async (store: RedisStore): Promise<number> =>
  Number(/^process_id:(\d+)/m.exec(await store.use((client) => client.info('server')))?.[1]);

test('data is kept across an orderly stop and a start', async () => {
  const dataDir = path.join(directory, 'orderly');
  const first = await connectStore({ redis: undefined, dataDir }, log);
  await first.store.use((client) => client.set('k', 'v'));
  await first.close();
  assert.equal(await runningPrivateRedis(dataDir), undefined);
  const second = await connectStore({ redis: undefined, dataDir }, log);
  assert.equal(await second.store.use((client) => client.get('k')), 'v');
  await second.close();
});

test('it listens on no TCP port, and only this user may open its socket', async () => {
  const dataDir = path.join(directory, 'closed');
  const opened = await connectStore({ redis: undefined, dataDir }, log);
  const [, port] = (await opened.store.use((client) => client.config('GET', 'port'))) as [
    string,
    string,
  ];
  assert.equal(port, '0');
  const url = await runningPrivateRedis(dataDir);
  assert.ok(url);
  assert.equal((await stat(url.slice('unix://'.length))).mode & 0o777, 0o700);
  await opened.close();
});

test('when it is killed it is restarted with its data; requests meanwhile are refused quickly', async () => {
  const dataDir = path.join(directory, 'killed');
  const opened = await connectStore({ redis: undefined, dataDir }, log);
  await opened.store.use((client) => client.set('k', 'kept'));
  const pid = await pidOf(opened.store);
  assert.ok(pid);
  const back = new Promise<void>((resolve) => {
    opened.store.onReady(resolve);
  });
  process.kill(pid, 'SIGKILL');
  await sleep(10);
  const startMs = performance.now();
  await opened.store
    .use((client) => client.get('k'))
    .catch((error: { code: string }) => {
      assert.equal(error.code, 'STORE_UNAVAILABLE');
    });
  assert.ok(performance.now() - startMs < 2500 * patience());
  await back;
  assert.equal(await opened.store.use((client) => client.get('k')), 'kept');
  await opened.close();
});

test('a restart that fails for lack of processes or descriptors is retried until it succeeds', async (t) => {
  const dataDir = path.join(directory, 'unstartable');
  const opened = await connectStore({ redis: undefined, dataDir }, log);
  t.onTestFinished(() => opened.close());
  const pid = await pidOf(opened.store);
  const back = new Promise<void>((resolve) => {
    opened.store.onReady(resolve);
  });
  const kept = process.env['PATH'];
  t.onTestFinished(() => {
    process.env['PATH'] = kept;
  });
  process.env['PATH'] = '/nowhere'; // spawn fails, as it does with EMFILE or EAGAIN: an error and no exit
  process.kill(pid, 'SIGKILL');
  await sleep(500);
  process.env['PATH'] = kept;
  await back;
});

test('after kill -9 of the server its redis-server ends too, and a new server finds the data', async () => {
  const dataDir = path.join(directory, 'orphan');
  const index = path.resolve(import.meta.dirname, '../../../src/front/process/open-store.ts');
  const logModule = path.resolve(import.meta.dirname, '../../../src/base/log.ts');
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `
    import { connectStore } from ${JSON.stringify(index)};
    import { createLogger } from ${JSON.stringify(logModule)};
    const config = { redis: undefined, dataDir: ${JSON.stringify(dataDir)} };
    const { store } = await connectStore(config, createLogger('silent'));
    await store.use((client) => client.set('k', 'survives'));
    console.log(/process_id:(\\d+)/.exec(await store.use((client) => client.info('server')))[1]);
    setInterval(() => {}, 1000);`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const pid = Number(String((await once(child.stdout, 'data'))[0]));
  assert.ok(pid);
  child.kill('SIGKILL');
  const second = await connectStore({ redis: undefined, dataDir }, log); // waits for the orphan to end
  assert.equal(await second.store.use((client) => client.get('k')), 'survives');
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  await second.close();
});

test('a second server on the same directory is refused with a message', async () => {
  const dataDir = path.join(directory, 'twice');
  const opened = await connectStore({ redis: undefined, dataDir }, log);
  await assert.rejects(
    connectStore({ redis: undefined, dataDir }, log),
    /Another server is using .*twice/,
  );
  assert.equal(await opened.store.ping(), true, 'the first one goes on');
  await opened.close();
});

test('a stale socket file and a very long directory name do not prevent the start', async () => {
  const dataDir = path.join(directory, 'x'.repeat(120));
  const first = await connectStore({ redis: undefined, dataDir }, log);
  const url = await runningPrivateRedis(dataDir);
  assert.ok(url && Buffer.byteLength(url) < 115);
  await first.close();
  const stale = spawn(
    process.execPath,
    [
      '-e',
      `require('net').createServer().listen(${JSON.stringify(url.slice('unix://'.length))}, ` +
        `() => console.log('up'))`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await once(stale.stdout, 'data');
  stale.kill('SIGKILL'); // leaves its socket file behind
  await once(stale, 'exit');
  const second = await connectStore({ redis: undefined, dataDir }, log);
  assert.equal(await second.store.ping(), true);
  await second.close();
});

test('an address where nothing listens is reported in one line', async () => {
  await assert.rejects(
    RedisStore.connect({ urls: ['redis://user:hidden@127.0.0.1:1'] }, log, 300),
    (error: Error) => {
      assert.match(
        error.message,
        /^Redis at redis:\/\/127\.0\.0\.1:1 does not answer \(.*ECONNREFUSED.*\)\. Start it, or correct REDIS_URL\.$/,
      );
      return true;
    },
  );
});
