// Two servers on one host take different cores; a third shares and reports it. A server that is
// killed leaves no claim behind. Servers that do not see each other's sockets, as in containers,
// lock files.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test, type TestContext } from 'vitest';
import { type ClaimPlaces, claimCores } from '../../../src/front/placement/core-claims.ts';

const ROOT = new URL('../../../', import.meta.url);
let spaces = 0;
const newSpace = (): { space: string } => ({
  space: `mouthpiece-test-${process.pid}-${(spaces += 1)}`,
});

/** Another process that claims cores, prints them, and holds them until it ends. */
async function claimElsewhere(
  t: TestContext,
  allowed: readonly number[],
  workers: number,
  places: ClaimPlaces,
): Promise<{ child: ChildProcess; cpus: number[]; shared: number[] }> {
  const program = `
    import { claimCores } from './src/front/placement/core-claims.ts';
    const { cpus, shared } =
      await claimCores(${JSON.stringify(allowed)}, ${workers}, ${JSON.stringify(places)});
    process.stdout.write(JSON.stringify({ cpus, shared }));
    setInterval(() => {}, 1000);`;
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program],
    { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  t.onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, ...(JSON.parse(said.toString()) as { cpus: number[]; shared: number[] }) };
}

test('workers take the last cores, the first stay free; with too few they share evenly', async () => {
  const take = async (allowed: number[], workers: number): Promise<unknown[]> => {
    const claims = await claimCores(allowed, workers, newSpace());
    await claims.release();
    return [claims.cpus, claims.free, claims.shared];
  };
  assert.deepEqual(await take([0, 1, 2, 3], 3), [[3, 2, 1], [0], []]);
  assert.deepEqual(
    await take([2, 5, 7], 1),
    [[7], [2, 5], []],
    'a cpuset that is not the whole machine',
  );
  assert.deepEqual(await take([4], 2), [[4, 4], [], []]);
  assert.deepEqual(await take([0, 1], 4), [[1, 0, 1, 0], [], []]);
  assert.deepEqual(await take([], 1), [[undefined], [], []]);
});

/** Where servers see each other's claims, and what each of them is given for it. */
const PLACES: Readonly<Record<string, (t: TestContext) => () => ClaimPlaces>> = {
  sockets: () => {
    const space = newSpace();
    return () => space;
  },
  'lock files': (t) => {
    const lockDir = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-cores-'));
    t.onTestFinished(() => {
      rmSync(lockDir, { recursive: true });
    });
    return () => ({ ...newSpace(), lockDir });
  },
};

test.for(Object.entries(PLACES))(
  '%s: a second server takes other cores, a third shares; a killed one frees its own',
  async ([, meet], t) => {
    const places = meet(t);
    const first = await claimElsewhere(t, [0, 1, 2, 3], 2, places());
    assert.deepEqual([first.cpus, first.shared], [[3, 2], []]);
    const second = await claimCores([0, 1, 2, 3], 1, places());
    assert.deepEqual([second.cpus, second.free, second.shared], [[1], [0], []]);
    const third = await claimElsewhere(t, [0, 1, 2, 3], 3, places());
    assert.deepEqual(
      [third.cpus, third.shared],
      [
        [0, 3, 2],
        [3, 2],
      ],
    );
    await second.release();
    for (const { child } of [first, third]) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    const fourth = await claimCores([0, 1, 2, 3], 3, places());
    assert.deepEqual([fourth.cpus, fourth.free, fourth.shared], [[3, 2, 1], [0], []]);
    await fourth.release();
  },
);

test('a directory of locks that cannot be used is refused with what to set', async () => {
  for (const lockDir of ['/proc/none', '/dev/null']) {
    await assert.rejects(
      claimCores([0], 1, { ...newSpace(), lockDir }),
      new RegExp(`CORE_LOCK_DIR=${lockDir} cannot be used .*every server on this host may write`),
    );
  }
});
