// `npm run bench -- <scenario>... [--option value]`: runs scenarios, prints short tables, writes
// JSON and HTML; the exit code says whether all bounds held.
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Baseline, boundsAgainst, readBaseline } from './report/baseline.ts';
import { toCsv, toJunit } from './report/exports.ts';
import { toHtml } from './report/html.ts';
import { mergeRuns } from './report/merge.ts';
import { short } from './report/plot.ts';
import { ROOT, type Run, runScenario } from './run.ts';
import { type Options, type Scenario, type Target, holds } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';

const COMMON = `
  --small            seconds instead of minutes: does it run at all?
  --target URL       measure a server elsewhere (https://host or wss://host), with --key;
                     figures from inside the server are then left out
  --key KEY          API key for --target
  --out FOLDER       where reports go (bench/out)
  --baseline FILE    the .json report of an earlier run of the same scenario: fail where a bounded
                     figure is worse than there by more than --tolerance PERCENT (10)
  --csv FILE         write all figures there, too
  --junit FILE       write all bounds there as test cases, too
  --record           also append a line to bench/history/ and keep the report there`;

function usage(): string {
  const scenarios = SCENARIOS.map(
    ({ name, about, options }) =>
      `  ${name.padEnd(10)} ${about}\n${' '.repeat(13)}${Object.entries(options)
        .map(([option, value]) => `--${option} ${value}`)
        .join('  ')}`,
  );
  return (
    `npm run bench -- <scenario>... [options]\nnpm run bench -- merge a.json b.json ... ` +
    `[--out --baseline --csv --junit]   one report of several of load\n\n` +
    `${scenarios.join('\n')}\n\nFor all:${COMMON}\n`
  );
}

class UsageError extends Error {}
/** What the user can mend, told in one line. */
class Refusal extends Error {}

interface CommandLine {
  readonly scenarios: readonly Scenario[];
  /** Reports to merge, instead of running anything. */
  readonly merge: readonly string[];
  readonly given: Options;
  readonly target: Target | undefined;
  readonly small: boolean;
  readonly record: boolean;
  readonly out: string;
  readonly baseline: string | undefined;
  /** As a fraction. */
  readonly tolerance: number;
  readonly csv: string | undefined;
  readonly junit: string | undefined;
}

function parse(args: readonly string[]): CommandLine {
  const known = Object.fromEntries(
    SCENARIOS.flatMap(({ options }) =>
      Object.keys(options).map((name) => [name, { type: 'string' as const }]),
    ),
  );
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      ...known,
      small: { type: 'boolean', default: false },
      record: { type: 'boolean', default: false },
      target: { type: 'string' },
      key: { type: 'string' },
      out: { type: 'string', default: path.join(ROOT, 'bench/out') },
      baseline: { type: 'string' },
      tolerance: { type: 'string', default: '10' },
      csv: { type: 'string' },
      junit: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const given = values as Readonly<Record<string, string | boolean | undefined>>;
  if (given['help'] || positionals.length === 0) {
    throw new UsageError('');
  }
  const merge = positionals[0] === 'merge' ? positionals.slice(1) : [];
  if (positionals[0] === 'merge' && merge.length === 0) {
    throw new UsageError('merge needs the .json reports of load');
  }
  const scenarios = (merge.length > 0 ? ['load'] : positionals).map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name);
    if (found === undefined) {
      throw new UsageError(`there is no scenario '${name}'`);
    }
    return found;
  });
  const { target, key } = given;
  if (typeof target === 'string' && typeof key !== 'string') {
    throw new UsageError('--target needs --key');
  }
  if (typeof target === 'string' && !/^(https?|wss?):$/.test(URL.parse(target)?.protocol ?? '')) {
    throw new UsageError('--target must be a URL such as https://face.example.org');
  }
  const options: Record<string, string | number> = {};
  for (const name of Object.keys(known)) {
    const value = given[name];
    if (typeof value !== 'string') {
      continue;
    }
    const owner = scenarios.find((scenario) => name in scenario.options);
    if (owner === undefined) {
      throw new UsageError(`--${name} is not an option of ${positionals.join(', ')}`);
    }
    options[name] = typeof owner.options[name] === 'number' ? Number(value) : value;
    if (Number.isNaN(options[name])) {
      throw new UsageError(`--${name} must be a number`);
    }
  }
  const tolerance = Number(given['tolerance']) / 100;
  if (!(tolerance >= 0)) {
    throw new UsageError('--tolerance must be a percentage such as 10');
  }
  if (typeof given['baseline'] === 'string' && scenarios.length > 1) {
    throw new UsageError('--baseline is for one scenario at a time');
  }
  return {
    scenarios,
    merge,
    baseline: given['baseline'] as string | undefined,
    tolerance,
    csv: given['csv'] as string | undefined,
    junit: given['junit'] as string | undefined,
    given: options,
    small: given['small'] === true,
    record: given['record'] === true,
    out: String(given['out']),
    target:
      typeof target === 'string'
        ? { url: target.replace(/^ws/, 'http').replace(/(?<!\/)\/+$/, ''), apiKey: String(key) }
        : undefined,
  };
}

/**
 * @throws Refusal when nobody answers there, or the key is not taken: before any load is sent, and
 * without a stack trace.
 */
async function checkTarget({ url, apiKey }: Target): Promise<void> {
  const answer = await fetch(`${url}/faces`, {
    headers: { 'x-service-api-key': apiKey },
    signal: AbortSignal.timeout(10_000),
  }).catch((error: unknown) => {
    throw new Refusal(
      `${url} does not answer (${reasonOf(error)}). Start the server, or correct --target.`,
    );
  });
  if (answer.status === 401) {
    throw new Refusal(
      `${url} does not take this key. Correct --key: it lies in the file api-key of the ` +
        `server's DATA_DIR.`,
    );
  }
  if (!answer.ok) {
    throw new Refusal(`${url}/faces answered ${answer.status}. Is this a Mouthpiece server?`);
  }
}

/** `fetch failed` says nothing: its cause does. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { cause } = error;
  return cause instanceof Error
    ? ((cause as NodeJS.ErrnoException).code ?? cause.message)
    : error.message;
};

/** Errors that tell of a defect of ours; others are told by their message. */
const isDefect = (error: unknown): boolean =>
  !(error instanceof Error) ||
  ((error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) &&
    error.cause === undefined);

function print(run: Run): void {
  const { bounds, tables, notes } = run.outcome;
  for (const { title, columns, rows } of tables) {
    const texts = [
      columns,
      ...rows.map((row) => row.map((value) => (typeof value === 'number' ? short(value) : value))),
    ];
    const widths = columns.map((_, column) =>
      Math.max(...texts.map((row) => (row[column] ?? '').length)),
    );
    console.log(`\n${title}`);
    for (const row of texts) {
      const cells = row.map((value, column) =>
        column === 0 ? value.padEnd(widths[column]!) : value.padStart(widths[column]!),
      );
      console.log(`  ${cells.join('  ')}`);
    }
  }
  console.log('\nbounds');
  for (const bound of bounds) {
    console.log(
      `  ${holds(bound) ? 'holds ' : 'BROKEN'}  ${bound.name}: ${short(bound.value)} ${bound.unit} ` +
        `(${bound.relation === '<=' ? '≤' : '≥'} ${short(bound.limit)} ${bound.unit})`,
    );
  }
  for (const note of notes) {
    console.log(`  note: ${note}`);
  }
}

/** The run with the bounds that the baseline sets. */
const judged = (run: Run, baseline: Baseline, tolerance: number): Run => ({
  ...run,
  outcome: {
    ...run.outcome,
    bounds: [...run.outcome.bounds, ...boundsAgainst(baseline, run.outcome.bounds, tolerance)],
  },
});

function keep(run: Run, folder: string, record: boolean): string {
  mkdirSync(folder, { recursive: true });
  const base = path.join(folder, `${run.scenario}-${run.startedAt.replaceAll(/[:.]/g, '-')}`);
  writeFileSync(`${base}.json`, `${JSON.stringify(run, null, 1)}\n`);
  writeFileSync(`${base}.html`, toHtml(run));
  if (record) {
    const {
      scenario,
      startedAt,
      commit,
      machine,
      options,
      outcome: { figures, bounds },
    } = run;
    const history = path.join(ROOT, 'bench/history');
    const broken = bounds.filter((bound) => !holds(bound)).map(({ name }) => name);
    appendFileSync(
      path.join(history, `${scenario}.jsonl`),
      `${JSON.stringify({ startedAt, commit, machine, options, figures, broken })}\n`,
    );
    writeFileSync(path.join(history, `${scenario}.html`), toHtml(run));
  }
  return base;
}

try {
  const line = parse(process.argv.slice(2));
  const { scenarios, given, target, small, record, out } = line;
  const baseline = line.baseline === undefined ? undefined : readBaseline(line.baseline);
  if (baseline !== undefined && baseline.scenario !== scenarios[0]!.name) {
    throw new Refusal(`--baseline is a run of ${baseline.scenario}, not of ${scenarios[0]!.name}`);
  }
  if (target !== undefined) {
    await checkTarget(target);
  }
  const runs: Run[] = [];
  const finish = (measured: Run): void => {
    const run = baseline === undefined ? measured : judged(measured, baseline, line.tolerance);
    print(run);
    console.log(`  report: ${path.relative(process.cwd(), keep(run, out, record))}.html`);
    runs.push(run);
  };
  if (line.merge.length > 0) {
    finish(mergeRuns(line.merge));
  }
  for (const scenario of line.merge.length > 0 ? [] : scenarios) {
    const began = performance.now();
    console.error(`── ${scenario.name}: ${scenario.about}`);
    const own = Object.fromEntries(
      Object.entries(given).filter(([name]) => name in scenario.options),
    );
    const measured = await runScenario(scenario, {
      options: { ...(small ? scenario.small : {}), ...own },
      target,
      progress: (line) => {
        console.error(`${((performance.now() - began) / 1000).toFixed(0).padStart(5)} s  ${line}`);
      },
    });
    finish(measured);
  }
  if (line.csv !== undefined) {
    writeFileSync(line.csv, toCsv(runs));
  }
  if (line.junit !== undefined) {
    writeFileSync(line.junit, toJunit(runs));
  }
  process.exitCode = runs.every(({ outcome }) => outcome.bounds.every(holds)) ? 0 : 1;
} catch (error) {
  if (
    error instanceof UsageError ||
    (error instanceof TypeError &&
      (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS'))
  ) {
    console.error(`${error.message === '' ? '' : `${error.message}\n\n`}${usage()}`);
  } else if (isDefect(error)) {
    throw error;
  } else {
    const { message, cause } = error as Error;
    console.error(`bench: ${message}${cause === undefined ? '' : ` (${reasonOf(error)})`}`);
  }
  process.exitCode = 2;
}
