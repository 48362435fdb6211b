// `npm run fuzz`: runs the fuzz targets, two at a time, and tells what they found
// (docs/fuzzing.md).
import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { explain, readArguments } from '../../scripts/command-line.ts';
import { CATALOGUE, corpusOf, regressionsOf, ROOT, type CatalogueEntry } from './catalogue.ts';

const USAGE = `Usage: npm run fuzz -- [TARGET...] [options]
  --seconds N   how long all of it takes together (3600)
  --each N      how long each target runs instead; those of small parsers half as long
  --fixed N     a fixed number of inputs for each target instead: N times those of the catalogue
  --seed N      the same mutations again, as far as time allows; another seed each time unless told
  --fresh       begins with the kept inputs alone, and leaves nothing behind but what broke something
  --keep        afterwards, adds what reached something new to the kept inputs (test/fuzz/corpus)
Targets: ${CATALOGUE.map(({ name }) => name).join(' ')}`;

/**
 * Flags for the JavaScript targets: WebAssembly must check its bounds itself, since SIGSEGV is
 * libFuzzer's here.
 */
const NODE_FLAGS = [
  '--disable-warning=ExperimentalWarning',
  '--disable-wasm-trap-handler',
  '--max-old-space-size=768',
];
const LANES = Math.min(2, os.availableParallelism());
/** Of resident memory, sanitizers' and compiled WebAssembly included. */
const MEMORY_LIMIT_MB = 1536;
/** Long, since other programs may have the processors. */
const HANG_SECONDS = 60;
const LIMITS = [`-timeout=${HANG_SECONDS}`, `-rss_limit_mb=${MEMORY_LIMIT_MB}`];
/** A larger input says little that a small one does not. */
const MAX_KEPT_BYTES = 8 * 1024;
const TAIL_BYTES = 64 * 1024;
const MAX_LINE = 300;

interface Outcome {
  readonly isFine: boolean;
  readonly output: string;
}

const { values, positionals } = readArguments(USAGE, {
  seconds: { type: 'string' },
  each: { type: 'string' },
  fixed: { type: 'string' },
  seed: { type: 'string' },
  keep: { type: 'boolean', default: false },
  fresh: { type: 'boolean', default: false },
});
const number = (text: string | undefined, unless: number): number => {
  const value = text === undefined ? unless : Number(text);
  return Number.isFinite(value) && value >= 0
    ? value
    : explain(USAGE, `'${text}' is not a number of seconds or inputs, or not a seed.`);
};
const chosen =
  positionals.length === 0
    ? CATALOGUE
    : positionals.map(
        (name) =>
          CATALOGUE.find((entry) => entry.name === name) ??
          explain(USAGE, `There is no fuzz target '${name}'.`),
      );
const seed = Math.floor(number(values.seed, 1 + Math.random() * 1e9));
const times = values.fixed === undefined ? undefined : number(values.fixed, 1);
const shares = chosen.reduce((sum, { share }) => sum + share, 0);
/**
 * The last target on one lane may leave the other one idle: what two lanes can do is counted as if
 * it could not.
 */
const secondsEach =
  values.each === undefined
    ? (number(values.seconds, 3600) * Math.min(LANES, chosen.length)) / shares
    : number(values.each, 0);

/** New inputs gather here, and are where the next run begins. */
const work = values.fresh
  ? mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-fuzz-'))
  : path.join(ROOT, 'test/out/fuzz');
const workOf = (name: string): string => path.join(work, name);

function commandOf({ name, kind }: CatalogueEntry): readonly [string, ...string[]] {
  return kind === 'native'
    ? [path.join(ROOT, 'native/build/memory', `${name}_fuzz`)]
    : [
        process.execPath,
        ...NODE_FLAGS,
        path.join(import.meta.dirname, 'engine/run-target.ts'),
        name,
      ];
}

function launch(entry: CatalogueEntry, options: readonly string[]): Promise<Outcome> {
  const [program, ...args] = commandOf(entry);
  const env = {
    ...process.env,
    ASAN_OPTIONS: 'detect_leaks=1:allocator_may_return_null=1',
    UBSAN_OPTIONS: 'print_stacktrace=1',
  };
  const child = spawn(program, [...args, ...options], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const take = (chunk: Buffer): void => {
    output = (output + chunk.toString('latin1')).slice(-TAIL_BYTES);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  return new Promise((resolve) => {
    child.once('error', (error) => {
      resolve({ isFine: false, output: String(error) });
    });
    child.once('close', (code) => {
      resolve({ isFine: code === 0, output });
    });
  });
}

/** "12345 runs, 4567/s, 50 branches, 22 inputs, 210 MB", from libFuzzer's last words. */
function summary(output: string): string {
  const last = (pattern: RegExp): string => [...output.matchAll(pattern)].at(-1)?.[1] ?? '?';
  const counters = /\((\d+) inline 8-bit counters\)/.exec(output)?.[1];
  const of = counters === undefined ? '' : ` of ${counters}`;
  return (
    `${last(/number_of_executed_units: (\d+)/g)} ` +
    `runs, ${last(/average_exec_per_sec: +(\d+)/g)}/s, ` +
    `${last(/ cov: (\d+)/g)}${of} branches, ${last(/ corp: (\d+)/g)} inputs, ` +
    `${last(/peak_rss_mb: +(\d+)/g)} MB`
  );
}

/** What a busy machine can cause as well as a defect. */
const RESOURCE_FAILURE =
  /libFuzzer: (?:out-of-memory|timeout)|^TooSlow|ran out of heap|heap out of memory/m;

/**
 * Tells a defect from a machine that was short of time or memory: the kept inputs run alone, then
 * the same inputs again.
 */
async function isDefect(
  entry: CatalogueEntry,
  output: string,
  inputs: readonly string[],
  runAgain: () => Promise<Outcome>,
): Promise<boolean> {
  if (!RESOURCE_FAILURE.test(output)) {
    return true;
  }
  for (const input of inputs) {
    const alone = await launch(entry, [input, ...LIMITS]);
    if (!alone.isFine) {
      return true;
    }
  }
  const { isFine } = await runAgain();
  return !isFine;
}

/** Why it failed, from libFuzzer's last words. */
const endOf = (output: string): string =>
  output
    .split('\n')
    .filter((line) => !/^#\d|^INFO|^WARNING: Failed to find|^stat::|# Uses:|^Base64/.test(line))
    .map((line) => line.slice(0, MAX_LINE))
    .slice(-40)
    .join('\n');

/** What is told of failures, after all targets have run. */
const details: string[] = [];

async function fuzz(entry: CatalogueEntry): Promise<boolean> {
  const { name } = entry;
  const [gathered, kept, regressions] = [workOf(name), corpusOf(name), regressionsOf(name)];
  for (const folder of [gathered, kept, regressions]) {
    mkdirSync(folder, { recursive: true });
  }
  const before = new Set(readdirSync(regressions));
  const seconds = Math.max(1, Math.round(secondsEach * entry.share));
  const run = (): Promise<Outcome> =>
    launch(entry, [
      gathered,
      kept,
      regressions,
      `-artifact_prefix=${regressions}/`,
      times === undefined
        ? `-max_total_time=${seconds}`
        : `-runs=${Math.ceil(entry.inputs * times)}`,
      `-seed=${seed}`,
      ...LIMITS,
      '-print_final_stats=1',
      '-reload=0',
      '-keep_seed=1', // decoders in WebAssembly and C have no counters: their inputs would be thrown away
    ]);
  const { isFine, output } = await run();
  const found = readdirSync(regressions).filter((file) => !before.has(file));
  const files = found.map((file) => path.join(regressions, file));
  const isOnlyNoise = !isFine && !(await isDefect(entry, output, files, run));
  if (isOnlyNoise) {
    files.forEach((file) => {
      rmSync(file);
    });
  }
  for (const folder of [kept, regressions]) {
    if (readdirSync(folder).length === 0) {
      rmdirSync(folder);
    }
  }
  const verdict = isFine ? 'ok    ' : isOnlyNoise ? 'UNSURE' : 'FAILED';
  console.log(`${name.padEnd(16)} ${verdict} ${summary(output)}`);
  if (isFine) {
    return true;
  }
  if (isOnlyNoise) {
    console.log(
      '  Short of time or memory once. Neither the input alone nor the same run again was: ' +
        'counted as the load of the machine, not as a defect.',
    );
    return true;
  }
  details.push(`${name}:`, endOf(output));
  for (const file of files) {
    const bytes = readFileSync(file);
    details.push(
      `  ${path.relative(ROOT, file)}`,
      ...(bytes.length <= MAX_KEPT_BYTES ? [`  Base64: ${bytes.toString('base64')}`] : []),
    );
  }
  details.push(
    `  again: npm run fuzz -- ${name} --each 1 (kept inputs come first), or npm test fuzz/replay`,
  );
  return false;
}

/** Adds to the kept inputs those that reach a branch that none of them does, however often. */
async function keep(entry: CatalogueEntry): Promise<void> {
  const { name } = entry;
  const kept = corpusOf(name);
  const small = path.join(ROOT, 'test/out/fuzz-small', name);
  for (const folder of [kept, small]) {
    mkdirSync(folder, { recursive: true });
  }
  for (const file of readdirSync(workOf(name))) {
    const from = path.join(workOf(name), file);
    if (statSync(from).size <= MAX_KEPT_BYTES) {
      copyFileSync(from, path.join(small, file));
    }
  }
  const before = readdirSync(kept).length;
  const { isFine, output } = await launch(entry, [
    '-merge=1',
    '-use_counters=0',
    `-timeout=${HANG_SECONDS}`,
    kept,
    small,
  ]);
  console.log(
    `${name.padEnd(16)} ${
      isFine
        ? `${readdirSync(kept).length - before} inputs kept`
        : `could not be merged:\n${output.slice(-2000)}`
    }`,
  );
}

const built = spawnSync(
  process.execPath,
  [path.join(ROOT, 'scripts/build-native.mjs'), '--memory'],
  {
    cwd: ROOT,
    encoding: 'utf8',
  },
);
if (built.status !== 0) {
  console.error(built.stderr);
  process.exit(1);
}
console.log(
  `fuzzing ${chosen.length} targets, ${LANES} at a time, ` +
    `${times === undefined ? `${secondsEach.toFixed(0)} s` : 'a fixed number of inputs'} each, ` +
    `seed ${seed}`,
);
const waiting = [...chosen];
const failed: string[] = [];
await Promise.all(
  Array.from({ length: LANES }, async () => {
    for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) {
      if (!(await fuzz(entry))) {
        failed.push(entry.name);
      }
    }
  }),
);
console.log(details.join('\n'));
if (values.keep) {
  for (const entry of chosen) {
    await keep(entry);
  }
}
if (values.fresh) {
  rmSync(work, { recursive: true, force: true });
}
process.exitCode = failed.length === 0 ? 0 : 1;
