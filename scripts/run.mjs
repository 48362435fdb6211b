// `npm start`, `npm test` and every other npm script: does the set-up, then runs the task under Node 22.
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { ROOT, SetupError, setUp } from './setup.mjs';

const NODE_FLAGS = ['--disable-warning=ExperimentalWarning'];

/** npm script → TypeScript entry point. What is not here is `test`, which is several commands. */
const ENTRY_POINTS = {
  start: 'src/main.ts',
  bench: 'bench/main.ts',
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

/** Static checks, then the unit tests, two files at a time, then scenarios one by one: those measure time and want the machine alone. */
function test(node, env, wanted) {
  const all = testFiles(path.join(ROOT, 'test')).map((file) => path.relative(ROOT, file)).filter((file) => wanted.length === 0 || wanted.some((word) => file.includes(word)));
  const isAlone = (file) => /^test\/(scenarios|bench)\//.test(file);
  const runner = (files, concurrency) => [...NODE_FLAGS, '--test', '--test-reporter=spec', `--test-concurrency=${concurrency}`, '--test-timeout=240000', ...files];
  const steps = [
    ['types', node, ['node_modules/typescript/bin/tsc', '-p', '.']],
    ['lint', node, ['node_modules/oxlint/bin/oxlint', '--type-aware', '--quiet']],
    ['unit tests', node, runner(all.filter((file) => !isAlone(file)), Math.min(2, os.availableParallelism()))],
    ['scenarios', node, runner(all.filter(isAlone), 1)],
  ].filter(([, , args]) => !args.includes('--test') || args.some((arg) => arg.endsWith('.test.ts')));
  const failed = [];
  for (const [name, command, args] of wanted.length === 0 ? steps : steps.slice(2)) {
    const started = Date.now();
    const result = spawnSync(command, args, { cwd: ROOT, env, stdio: 'inherit' });
    console.log(`[mouthpiece] ${name}: ${result.status === 0 ? 'ok' : 'FAILED'} in ${((Date.now() - started) / 1000).toFixed(1)} s`);
    if (result.status !== 0) failed.push(name);
  }
  if (failed.length > 0) console.error(`[mouthpiece] failed: ${failed.join(', ')}`);
  return failed.length === 0 ? 0 : 1;
}

/** Runs the task as a child that gets our signals: npm and the terminal both send them to us. */
function runChild(node, args, env) {
  const child = spawn(node, args, { cwd: ROOT, env, stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (os.constants.signals[signal] ?? 0)));
}

const [task = 'start', ...args] = process.argv.slice(2);
try {
  const { node, env } = await setUp({ forTests: task === 'test' || task === 'bench', say: (line) => console.error(`[setup] ${line}`) });
  if (task === 'test') process.exit(test(node, env, args));
  else if (task === 'setup') process.exit(0);
  else if (ENTRY_POINTS[task]) runChild(node, [...NODE_FLAGS, path.join(ROOT, ENTRY_POINTS[task]), ...args], env);
  else throw new SetupError(`unknown task '${task}'; known: setup test ${Object.keys(ENTRY_POINTS).join(' ')}`);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`[setup] ${error.message}`);
  process.exit(1);
}
