// Two servers on one host take different cores; a third shares and reports it. A server that is
// killed leaves no claim behind. Servers that do not see each other's sockets, as in containers,
// lock files. Servers with CPU sets of their own, as Kubernetes' static CPU manager gives them, pin
// their workers inside of these.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test, type TestContext } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import { type ClaimPlaces, claimCores } from '../../../src/front/placement/core-claims.ts';
import { native } from '../../../src/native/addon.ts';

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

/** The command line of a process with a CPU set of its own; undefined: not on this machine. */
type Confine = (t: TestContext, cpus: string) => readonly string[] | undefined;

/** Makes a cgroup of these CPUs, by the first or the second version. @returns its folder */
function makeCgroup(cpus: string): string | undefined {
  for (const hierarchy of ['/sys/fs/cgroup/cpuset', '/sys/fs/cgroup']) {
    const group = path.join(hierarchy, `mouthpiece-test-${process.pid}-${cpus}`);
    try {
      mkdirSync(group);
      writeFileSync(path.join(group, 'cpuset.cpus'), cpus);
      writeFileSync(path.join(group, 'cpuset.mems'), '0');
      return group;
    } catch {
      removeCgroup(group);
    }
  }
  return undefined;
}

/** @returns false while processes are in it */
function removeCgroup(group: string): boolean {
  try {
    rmdirSync(group);
  } catch {}
  return !existsSync(group);
}

/** As a container has it: a cgroup, and a network namespace, in which no claim of others is seen. */
const inContainer: Confine = (t, cpus) => {
  const canUnshare = spawnSync('unshare', ['--net', 'true']).status === 0;
  const group = canUnshare ? makeCgroup(cpus) : undefined;
  if (group === undefined) {
    return undefined;
  }
  t.onTestFinished(async () => {
    for (let tries = 0; !removeCgroup(group) && tries < 100; tries++) {
      await sleep(20);
    }
  });
  return ['sh', '-c', `echo $$ >${group}/cgroup.procs && exec unshare --net "$@"`, 'sh'];
};

/** Claims a core more than it may use, pins a thread to each as workers do, and says where they are. */
const PINNED = `
  import { Worker } from 'node:worker_threads';
  import { claimCores } from './src/front/placement/core-claims.ts';
  import { native } from './src/native/addon.ts';
  const thread = \`
    import { readFileSync } from 'node:fs';
    import { parentPort, workerData } from 'node:worker_threads';
    import { native } from '\${import.meta.resolve('./src/native/addon.ts')}';
    native.pinThread(Int32Array.of(workerData));
    const status = readFileSync('/proc/thread-self/status', 'utf8');
    parentPort.postMessage(/^Cpus_allowed_list:\\s*(.*)$/m.exec(status)[1]);\`;
  const allowed = native.allowedCpus();
  const { cpus, shared } = await claimCores(allowed, allowed.length + 1, PLACES);
  const pinned = await Promise.all(cpus.map((cpu) => new Promise((resolve) => {
    const url = new URL('data:text/javascript,' + encodeURIComponent(thread));
    new Worker(url, { workerData: cpu }).once('message', (list) => resolve(Number(list)));
  })));
  process.stdout.write(JSON.stringify({ allowed, pinned, shared }));
  setInterval(() => {}, 1000);`;

test.for<[string, Confine]>([
  ['an affinity mask', (_t, cpus) => ['taskset', '-c', cpus]],
  ['a cgroup and a network namespace', inContainer],
])('servers with CPU sets of their own, by %s, pin inside of these', async ([, confine], t) => {
  const all = native.allowedCpus();
  t.skip(all.length < 2, 'there is one CPU only');
  const half = all.length >> 1;
  const sets = [all.slice(0, half), all.slice(half)];
  const places = newSpace();
  const commands = sets.map((set) => confine(t, set.join(',')));
  t.skip(commands.includes(undefined), 'no cpuset can be made here: root makes them');
  const found = await Promise.all(
    commands.map(async (command) => {
      const [program, ...args] = [...command!, process.execPath];
      const child = spawn(
        program,
        [
          ...args,
          '--disable-warning=ExperimentalWarning',
          '--input-type=module',
          '-e',
          PINNED.replace('PLACES', JSON.stringify(places)),
        ],
        { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] },
      );
      t.onTestFinished(() => {
        child.kill('SIGKILL');
      });
      const ended = once(child, 'exit').then(() => assert.fail('it ended'));
      const [said] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer];
      return JSON.parse(said.toString()) as Record<'allowed' | 'pinned' | 'shared', number[]>;
    }),
  );
  for (const [index, { allowed, pinned, shared }] of found.entries()) {
    const set = sets[index]!;
    assert.deepEqual([allowed, shared], [set, []], 'it knows its own set, and shares with nobody');
    assert.deepEqual(pinned, [...set.toReversed(), set.at(-1)!]);
  }
});
