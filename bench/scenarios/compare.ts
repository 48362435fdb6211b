// Two commits in turn on one machine: the same load against both, A B A B, so that a machine whose
// speed drifts is fair to each.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { quantile } from '../report/stats.ts';
import { ROOT, runScenario } from '../run.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  atLeast,
  atMost,
  number,
  text,
} from '../scenario.ts';
import { OUT } from './setup.ts';

const git = (...args: string[]): string =>
  execFileSync('git', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();

/** A checkout of `commit` that is set up and can start. @returns its folder */
function prepare(context: Context, commit: string): string {
  const hash = git('rev-parse', '--short=12', `${commit}^{commit}`);
  const folder = path.join(OUT, 'trees', hash);
  if (!existsSync(path.join(folder, 'package.json'))) {
    rmSync(folder, { recursive: true, force: true });
    git('worktree', 'prune');
    git('worktree', 'add', '--detach', folder, hash);
    context.defer(() => {
      git('worktree', 'remove', '--force', folder);
    });
  }
  shareNpmPackages(folder);
  context.progress(`setting up ${commit} (${hash})`);
  execFileSync(process.execPath, [path.join(folder, 'scripts/run.mjs'), 'setup'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return folder;
}

/**
 * Where both want the same npm packages, one copy of them is enough; the set-up knows by its stamp
 * that they are there.
 */
function shareNpmPackages(folder: string): void {
  const lock = (root: string): string => readFileSync(path.join(root, 'package-lock.json'), 'utf8');
  const stamp = path.join(ROOT, '.setup/npm');
  if (
    existsSync(path.join(folder, 'node_modules')) ||
    !existsSync(stamp) ||
    lock(folder) !== lock(ROOT)
  ) {
    return;
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  mkdirSync(path.join(folder, '.setup'), { recursive: true });
  copyFileSync(stamp, path.join(folder, '.setup/npm'));
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const { SCENARIOS } = await import('./index.ts');
  const scenario = SCENARIOS.find(({ name }) => name === text(options, 'scenario'));
  if (scenario === undefined || scenario.name === 'compare') {
    throw new Error(`--scenario must name another scenario, not ${text(options, 'scenario')}`);
  }
  if (text(options, 'old') === text(options, 'new')) {
    throw new Error('--old and --new must name two commits');
  }
  const sides = (['old', 'new'] as const).map((side) => ({
    side,
    commit: text(options, side),
    tree: prepare(context, text(options, side)),
    runs: [] as Readonly<Record<string, number>>[],
  }));
  for (let round = 0; round < number(options, 'rounds'); round++) {
    for (const { side, tree, runs } of sides) {
      const { outcome } = await runScenario(scenario, {
        tree,
        options: options['brief'] === 1 ? scenario.small : {},
        progress: (line) => {
          context.progress(`${side} ${round + 1}: ${line}`);
        },
      });
      runs.push(outcome.figures);
      for (const [name, value] of Object.entries(outcome.figures)) {
        context.record(`${name}: ${side}`, value, '');
      }
    }
  }
  const [old, fresh] = sides as [(typeof sides)[number], (typeof sides)[number]];
  const median = (runs: readonly Readonly<Record<string, number>>[], name: string): number =>
    quantile(runs.map((figures) => figures[name] ?? Number.NaN).filter(Number.isFinite), 0.5);
  const names = Object.keys(fresh.runs[0] ?? {});
  const rows = names.map(
    (name) =>
      [
        name,
        median(old.runs, name),
        median(fresh.runs, name),
        median(fresh.runs, name) / median(old.runs, name),
      ] as const,
  );
  const watched = text(options, 'watch');
  const ratio = rows.find(([name]) => name === watched)?.[3] ?? Number.NaN;
  const limit = number(options, 'limit');
  return {
    figures: Object.fromEntries(rows.map(([name, , , change]) => [`${name} new/old`, change])),
    bounds:
      watched === ''
        ? []
        : [
            limit >= 1
              ? atMost(`${watched}, new over old`, ratio, limit, 'x')
              : atLeast(`${watched}, new over old`, ratio, limit, 'x'),
          ],
    tables: [
      {
        title:
          `${scenario.name}: ${old.commit} against ${fresh.commit}, medians ` +
          `of ${options['rounds']} rounds in turn`,
        columns: ['', 'old', 'new', 'new/old'],
        rows: rows.map((row) => [...row]),
      },
    ],
    plots: [],
    notes: ["Both were measured by this checkout's bench."],
  };
}

export const compare: Scenario = {
  name: 'compare',
  about:
    'Runs a scenario on two commits in turn and prints their ratio; --watch FIGURE --limit ' +
    '1.1 makes it a test.',
  options: {
    old: 'HEAD~1',
    new: 'HEAD',
    scenario: 'latency',
    rounds: 2,
    brief: 0,
    watch: '',
    limit: 1.1,
  },
  small: { rounds: 1, brief: 1 },
  run,
};
