// Reports of load from several machines as one.
import { readFileSync } from 'node:fs';
import { mergeLoads } from '../load/load-data.ts';
import { loadOutcome } from '../load/load-report.ts';
import type { Run } from '../run.ts';
import { machine } from './stats.ts';

/**
 * Merges the JSON reports of `load`. Bounds are those of the first.
 * @throws Error that says which file is none, or why they do not fit
 */
export function mergeRuns(files: readonly string[]): Run {
  const runs = files.map(readRun);
  const first = runs[0]!;
  const begin = Math.min(...runs.map(({ startedAt }) => Date.parse(startedAt)));
  const end = Math.max(
    ...runs.map(({ startedAt, durationSeconds }) => Date.parse(startedAt) + durationSeconds * 1000),
  );
  const unique = (values: readonly string[]): string => [...new Set(values)].join(', ');
  return {
    scenario: first.scenario,
    about: `${first.about} Merged from ${runs.length} reports.`,
    startedAt: new Date(begin).toISOString(),
    durationSeconds: (end - begin) / 1000,
    commit: unique(runs.map(({ commit }) => commit)),
    target: unique(runs.map(({ target }) => target)),
    machine: machine(),
    options: first.options,
    outcome: loadOutcome(mergeLoads(runs.map(({ outcome }) => outcome.load!)), first.options),
    course: [],
  };
}

function readRun(file: string): Run {
  let found: Partial<Run> | null;
  try {
    found = JSON.parse(readFileSync(file, 'utf8')) as Partial<Run> | null;
  } catch (error) {
    throw new Error(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  if (found?.outcome?.load?.targets === undefined) {
    throw new Error(`${file} is no report of load: take the .json files of npm run bench -- load`);
  }
  return found as Run;
}
