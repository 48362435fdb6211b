// Jobs that two servers share: what a server leaves that stops, or whose storage is away, is done by
// the other one, and no attempt is lost for it.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import { createLogger } from '../../../src/base/log.ts';
import { JobQueue, type TakenJob } from '../../../src/front/queue/job-queue.ts';
import { JobRunner } from '../../../src/front/queue/job-runner.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { patience } from '../../harness/machine.ts';
import { until } from '../../harness/until.ts';
import { startRedis, type TestRedis } from '../redis-servers.ts';

const log = createLogger('silent');
let redis: TestRedis;
let store: RedisStore;
beforeAll(async () => {
  redis = await startRedis();
  store = await RedisStore.connect({ urls: [redis.url] }, log);
});
afterAll(async () => {
  await store.close();
  await redis.close();
});

type Job = TakenJob<object>;

/** A server that takes jobs, one at a time. */
function serverOf(serverId: string, work: (job: Job, signal: AbortSignal) => Promise<void>) {
  const queue = new JobQueue<object>({ store, name: 'face', serverId, capacity: 5 });
  const lost: string[] = [];
  const runner = new JobRunner<object>({
    queue,
    log,
    concurrency: 1,
    maxAttempts: 2,
    work,
    giveUp: (job, why) => {
      lost.push(`${job.id} ${why}`);
      return Promise.resolve();
    },
  });
  return { queue, runner, lost };
}
const untilAborted = (_job: Job, signal: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(new Error('stopped'));
    });
  });
const soon = (what: string, isTrue: () => boolean): Promise<void> =>
  until(isTrue, 10_000 * patience(), what);

test('a job of a server that stops is done by another one at once', async () => {
  const begun: string[] = [];
  const first = serverOf('first', (job, signal) => {
    begun.push(job.id);
    return untilAborted(job, signal);
  });
  await first.queue.enqueue('a', {});
  first.runner.wake();
  await soon('it is begun', () => begun.length === 1);
  const done: Job[] = [];
  const second = serverOf('second', (job) => {
    done.push(job);
    return Promise.resolve();
  });
  await first.runner.close();
  second.runner.wake();
  await soon('it is done', () => done.length === 1);
  assert.deepEqual(
    done.map(({ id, attempt }) => [id, attempt]),
    [['a', 1]],
  );
  await second.runner.close();
});

test('a job of a server that was taken for dead is done by another one, and only by that', async () => {
  let isStopped = false;
  const first = serverOf('paused', async (job, signal) => {
    await untilAborted(job, signal).catch(() => {});
    isStopped = true;
  });
  await first.queue.enqueue('d', {});
  first.runner.wake();
  const held = async (): Promise<string | null> =>
    await store.use((client) => client.hget(keys.jobsHolders('face'), 'd'));
  await until(async () => (await held()) === 'paused', 10_000 * patience(), 'it is begun');
  const finish = Promise.withResolvers<void>();
  const second = serverOf('judge', () => finish.promise);
  await second.runner.takeOver('paused');
  await until(async () => (await held()) === 'judge', 10_000 * patience(), 'it is taken');
  await soon('the first one stops', () => isStopped);
  await first.runner.close();
  assert.equal(await held(), 'judge', 'the first one did not end it');
  finish.resolve();
  await until(async () => !(await second.queue.has('d')), 10_000 * patience(), 'it is done');
  await second.runner.close();
});

test('a storage that is away costs no attempt; a fault of the job does', async () => {
  const attempts: number[] = [];
  let error: Error = new ServiceError('STORAGE_UNAVAILABLE');
  const server = serverOf('third', (job) => {
    attempts.push(job.attempt);
    return attempts.length > 5 ? Promise.resolve() : Promise.reject(error);
  });
  await server.queue.enqueue('b', {});
  server.runner.wake();
  for (let round = 1; round <= 5; round++) {
    await soon(`attempt ${round}`, () => attempts.length === round);
    if (round === 4) {
      error = new Error('a defect');
    }
    // What it waits for is over.
    await until(
      async () =>
        (await store.use((client) => client.hget(keys.jobsHolders('face'), 'b'))) === null ||
        round === 5,
      10_000 * patience(),
      'it is given back',
    );
    await store.use((client) => client.zadd(keys.jobsRunning('face'), 'XX', 0, 'b'));
    server.runner.wake();
  }
  await soon('it is done', () => attempts.length === 6);
  assert.deepEqual(attempts, [1, 1, 1, 1, 1, 2]);
  assert.deepEqual(server.lost, []);
  await server.runner.close();
});

test('a job whose file can never be read is given up, with longer and longer pauses', async () => {
  const pauses: number[] = [];
  const fault = new ServiceError('STORAGE_UNAVAILABLE');
  fault.cause = new Error('this object only');
  const away = new ServiceError('STORAGE_UNAVAILABLE');
  let tries = 0;
  const server = serverOf('fourth', () => {
    tries++;
    return Promise.reject(tries === 1 ? away : fault);
  });
  await server.queue.enqueue('c', {});
  server.runner.wake();
  for (let round = 1; round <= 61; round++) {
    await soon(`try ${round}`, () => tries === round);
    await until(
      async () =>
        (await store.use((client) => client.hget(keys.jobsHolders('face'), 'c'))) === null,
      10_000 * patience(),
      'it is given back',
    );
    const dueMs = Number(await store.use((client) => client.zscore(keys.jobsRunning('face'), 'c')));
    pauses.push(Math.round((dueMs - Date.now()) / 5000));
    await store.use((client) => client.zadd(keys.jobsRunning('face'), 'XX', 0, 'c'));
    server.runner.wake();
  }
  await soon('it is given up', () => server.lost.length === 1);
  assert.deepEqual([server.lost, tries], [['c files'], 61]);
  assert.deepEqual([pauses.slice(0, 6), pauses.at(-1)], [[1, 1, 2, 4, 6, 6], 6]);
  await until(async () => !(await server.queue.has('c')), 10_000 * patience(), 'it is forgotten');
  const left = await store.use((client) => client.hkeys(keys.jobsAttempts('face')));
  assert.ok(!left.some((field) => field.startsWith('c')), left.join());
  await server.runner.close();
});
