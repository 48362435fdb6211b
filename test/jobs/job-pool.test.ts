// The job pool: its threads stay off the cores of the media workers and have the lowest priority.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'vitest';
import { createJobPool } from '../../src/jobs/job-pool.ts';
import { stopFlag } from '../../src/base/stop-flag.ts';
import { native } from '../../src/native/addon.ts';
import { portraitOf } from './face/portraits.ts';

interface Thread {
  readonly id: string;
  readonly cpus: string;
  readonly nice: number;
}

const threads = (): Thread[] =>
  readdirSync('/proc/self/task').map((id) => ({
    id,
    cpus: /^Cpus_allowed_list:\s*(\S+)/m.exec(
      readFileSync(`/proc/self/task/${id}/status`, 'utf8'),
    )![1]!,
    nice: Number(readFileSync(`/proc/self/task/${id}/stat`, 'utf8').split(') ')[1]!.split(' ')[16]),
  }));

test('job threads run on the given CPUs at the lowest priority; the caller does not', async (t) => {
  t.skip(
    Boolean(native.allowedCpus().length < 2 && 'there is one CPU only'),
    'there is one CPU only',
  );
  const cpu = native.allowedCpus()[0]!;
  const before = new Set(threads().map(({ id }) => id));
  const pool = createJobPool('test', 1, [cpu]);
  try {
    assert.deepEqual(
      await pool.run(
        'audioBody',
        { chunks: [Buffer.from('{"a": 1}')], fields: ['a'] },
        { timeoutMs: 20_000 },
      ),
      { kind: 'value', value: { a: 1 } },
    );
    const now = threads();
    assert.ok(
      now.some(({ id, cpus, nice }) => !before.has(id) && cpus === String(cpu) && nice === 19),
      JSON.stringify(now),
    );
    assert.notEqual(now.find(({ id }) => Number(id) === native.threadId())!.cpus, String(cpu));
  } finally {
    await pool.close();
  }
});

test('a face that is over its time, or whose pool closes, ends by itself', async () => {
  const pool = createJobPool('test', 1, []);
  const create = (timeoutMs: number): Promise<unknown> => {
    const stop = stopFlag();
    const task = { image: portraitOf('ava'), name: 'test', stop };
    return pool.run('face', task, { timeoutMs, stop });
  };
  for (const timeoutMs of [1, 300]) {
    await assert.rejects(create(timeoutMs), { name: 'AbortError' });
  }
  const last = create(200_000);
  await Promise.all([assert.rejects(last), pool.close()]);
});
