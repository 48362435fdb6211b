// Real servers on one host pin their workers to different cores, as the kernel reports, while there
// are enough. Each has a network of its own, as in a container, so that they do not see each other's
// sockets: lock files keep them apart. Claims alone: test/front/placement/core-claims.test.ts.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';
import { startServer } from '../harness/server.ts';
import { workerCpus } from '../../bench/cpus.ts';

const APART = ['unshare', '--map-root-user', '--net'];
const apart = spawnSync(APART[0]!, [...APART.slice(1), 'true']).status === 0 ? APART : [];

test('two servers do not pin their workers to one core', async (t) => {
  t.skip(os.availableParallelism() < 2, 'one CPU only');
  if (apart.length === 0) {
    console.info('unshare is not permitted here: the servers have one network');
  }
  const locks = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-cores-'));
  const start = async (env: Record<string, string> = {}): ReturnType<typeof startServer> => {
    const server = await startServer({ env: { ...env, CORE_LOCK_DIR: locks }, launcher: apart });
    t.onTestFinished(async () => {
      await server.stop();
    });
    return server;
  };
  t.onTestFinished(() => {
    rmSync(locks, { recursive: true });
  });
  const first = await start();
  const second = await start();
  const [ours, theirs] = [workerCpus(first.process.pid!), workerCpus(second.process.pid!)];
  assert.equal(ours.length, 1);
  assert.equal(theirs.length, 1);
  // Without unshare a server outside of this test may hold the other core. Then the second one
  // shares with either of them, and says which core it shares.
  const shared = second.logs.find((line) => line.includes('workers share cores'));
  if (shared === undefined) {
    assert.notEqual(ours[0], theirs[0]);
  } else {
    assert.deepEqual((JSON.parse(shared) as { cpus: number[] }).cpus, theirs);
  }
  const third = await start({ WORKERS: String(os.availableParallelism()) });
  assert.ok(
    third.logs.some((line) => line.includes('workers share cores')),
    third.logs.join('\n'),
  );
});
