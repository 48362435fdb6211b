// Two real servers on one host pin their workers to different cores, as the kernel reports, while
// there are enough.
import assert from 'node:assert/strict';
import os from 'node:os';
import { test } from 'vitest';
import { startServer } from '../harness/server.ts';
import { workerCpus } from '../../bench/cpus.ts';

test('two servers do not pin their workers to one core', async (t) => {
  t.skip(os.availableParallelism() < 2, 'one CPU only');
  const first = await startServer();
  t.onTestFinished(async () => {
    await first.stop();
  });
  const second = await startServer();
  t.onTestFinished(async () => {
    await second.stop();
  });
  const [ours, theirs] = [workerCpus(first.process.pid!), workerCpus(second.process.pid!)];
  assert.equal(ours.length, 1);
  assert.equal(theirs.length, 1);
  // A server outside of this test may hold the other core. Then the second one shares with either
  // of them, and says which core it shares. Claims alone: test/front/placement/core-claims.test.ts.
  const shared = second.logs.find((line) => line.includes('workers share cores'));
  if (shared === undefined) {
    assert.notEqual(ours[0], theirs[0]);
  } else {
    assert.deepEqual((JSON.parse(shared) as { cpus: number[] }).cpus, theirs);
  }
  const third = await startServer({ env: { WORKERS: String(os.availableParallelism()) } });
  t.onTestFinished(async () => {
    await third.stop();
  });
  assert.ok(
    third.logs.some((line) => line.includes('workers share cores')),
    third.logs.join('\n'),
  );
});
