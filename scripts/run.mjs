// `npm start`, `npm test` and every other npm script: does the set-up, then runs the task under Node 22.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { ROOT, SetupError, setUp } from './setup.mjs';

const NODE_FLAGS = ['--disable-warning=ExperimentalWarning'];

/** npm script → TypeScript entry point. What is not here is `test`, which is several commands. */
const ENTRY_POINTS = {
  start: 'src/main.ts',
  bench: 'bench/main.ts',
  fuzz: 'test/fuzz/main.ts',
  keys: 'scripts/keys.ts',
  'eval:speech': 'bench/eval-speech.ts',
  'faces:sheet': 'scripts/faces-sheet.ts',
  'faces:make': 'scripts/make-faces.ts',
  'logs:session': 'scripts/logs-session.ts',
  'dashboards:preview': 'grafana/preview.ts',
};

function testFiles(folder) {
  const found = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) found.push(...testFiles(file));
    else if (entry.name.endsWith('.test.ts')) found.push(file);
  }
  return found.sort((a, b) => a.localeCompare(b));
}

/**
 * Runs test files. What fails is run again, alone, up to twice: these tests measure time and play with sockets, and a shared machine stalls for a second now
 * and then. What fails each time has failed; what passes later is named, so that nobody overlooks a test that wavers.
 */
function runTests(node, env, files, concurrency) {
  const failures = path.join(ROOT, '.setup/failed-tests');
  const attempt = (some, width) => {
    const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout', `--test-reporter=${path.join(ROOT, 'scripts/failed-files.mjs')}`, `--test-reporter-destination=${failures}`];
    const { status } = spawnSync(node, [...NODE_FLAGS, '--test', ...reporters, `--test-concurrency=${width}`, '--test-timeout=240000', ...some], { cwd: ROOT, env, stdio: 'inherit' });
    if (status === 0) return [];
    const failed = readFileSync(failures, 'utf8').split('\n').filter(Boolean).map((file) => path.relative(ROOT, path.resolve(ROOT, file)));
    const known = some.filter((file) => failed.includes(file));
    return known.length > 0 ? known : some;
  };
  const wavering = attempt(files, concurrency);
  let failed = wavering;
  for (let again = 0; again < 2 && failed.length > 0; again++) {
    console.log(`[mouthpiece] once more: ${failed.join(' ')}`);
    failed = attempt(failed, 1);
  }
  if (wavering.length > 0 && failed.length === 0) console.log(`[mouthpiece] wavering, passed when run again: ${wavering.join(' ')}`);
  return failed.length === 0;
}

/** Static checks, a few minutes of fuzzing, then the unit tests, three files at a time on two cores, as many only wait, then scenarios one by one: those measure time and want the machine alone. */
function test(node, env, wanted) {
  const all = testFiles(path.join(ROOT, 'test')).map((file) => path.relative(ROOT, file)).filter((file) => wanted.length === 0 || wanted.some((word) => file.includes(word)));
  const isAlone = (file) => /^test\/(scenarios|bench)\//.test(file);
  const fuzzSeconds = process.env.FUZZ_SECONDS ?? '20';
  const check = (...args) => () => spawnSync(node, [...NODE_FLAGS, ...args], { cwd: ROOT, env, stdio: 'inherit' }).status === 0;
  const tests = (files, concurrency) => () => files.length === 0 || runTests(node, env, files, concurrency);
  const steps = [
    ...(wanted.length > 0 ? [] : [
      ['types', check('node_modules/typescript/bin/tsc', '-p', '.')],
      ['lint', check('node_modules/oxlint/bin/oxlint', '--type-aware', '--quiet')],
    ]),
    ...(wanted.length > 0 && !wanted.includes('fuzz') || fuzzSeconds === '0' ? [] : [
      ['fuzzing', check('test/fuzz/main.ts', '--each', fuzzSeconds, '--seed', '1', '--fresh')],
    ]),
    ['unit tests', tests(all.filter((file) => !isAlone(file)), Math.min(3, os.availableParallelism() + 1))],
    ['scenarios', tests(all.filter(isAlone), 1)],
  ];
  /** @type {string[]} */
  const failed = [];
  for (const [name, step] of /** @type {[string, () => boolean][]} */ (steps)) {
    const started = Date.now();
    const ok = step();
    console.log(`[mouthpiece] ${name}: ${ok ? 'ok' : 'FAILED'} in ${((Date.now() - started) / 1000).toFixed(1)} s`);
    if (!ok) failed.push(name);
  }
  if (failed.length > 0) console.error(`[mouthpiece] failed: ${failed.join(', ')}`);
  return failed.length === 0 ? 0 : 1;
}

/** Runs the task as a child that gets our signals: npm and the terminal both send them to us. */
function runChild(node, args, env) {
  const child = spawn(node, args, { cwd: ROOT, env, stdio: 'inherit' });
  // SIGHUP too: the server decides what it means, by whether it has a terminal.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (os.constants.signals[signal] ?? 0)));
}

const [task = 'start', ...args] = process.argv.slice(2);
try {
  const { node, env } = await setUp({ forTests: ['test', 'bench', 'fuzz'].includes(task), say: (line) => console.error(`[setup] ${line}`) });
  if (task === 'test') process.exit(test(node, env, args));
  else if (task === 'setup') process.exit(0);
  else if (ENTRY_POINTS[task]) runChild(node, [...NODE_FLAGS, path.join(ROOT, ENTRY_POINTS[task]), ...args], env);
  else throw new SetupError(`unknown task '${task}'; known: setup test ${Object.keys(ENTRY_POINTS).join(' ')}`);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`[setup] ${error.message}`);
  process.exit(1);
}
