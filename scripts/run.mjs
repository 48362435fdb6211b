// Runs every npm script (`npm start`, `npm test`, …): completes the set-up, then runs the task
// under Node 22.
import { spawn, spawnSync } from 'node:child_process';
import os from 'node:os';
import process from 'node:process';
import { ROOT, SetupError, setUp } from './setup.mjs';

const NODE_FLAGS = ['--disable-warning=ExperimentalWarning'];
const VITEST = 'node_modules/vitest/vitest.mjs';

/** By npm script: the program, and the arguments that come before those of the user. */
const PROGRAMS = {
  start: ['src/main.ts'],
  dev: ['--watch', '--watch-preserve-output', 'src/main.ts'],
  bench: ['bench/main.ts'],
  fuzz: ['test/fuzz/main.ts'],
  keys: ['scripts/keys.ts'],
  format: ['scripts/format.mjs'],
  'test:watch': [VITEST, 'watch', '--project', 'unit'],
  coverage: ['test/coverage.ts'],
  'eval:speech': ['bench/eval-speech.ts'],
  'faces:sheet': ['scripts/faces-sheet.ts'],
  'faces:make': ['scripts/make-faces.ts'],
  'logs:session': ['scripts/logs-session.ts'],
  'dashboards:preview': ['grafana/preview.ts'],
};

/** The static checks of each npm script: name, program and arguments. */
const CHECKS = {
  typecheck: [['types', 'node_modules/typescript/bin/tsc', '-p', '.']],
  lint: [
    ['lint', 'node_modules/oxlint/bin/oxlint', '--type-aware', '--quiet'],
    ['format', 'scripts/format.mjs', '--check'],
    ['dead code', 'node_modules/knip/bin/knip.js', '--no-progress'],
    ['native lint', 'scripts/lint-native.mjs'],
  ],
};

/** Tasks that need the Debian packages of the tests. */
const NEEDS_TEST_PACKAGES = ['test', 'test:watch', 'coverage', 'bench', 'fuzz', 'lint'];

/**
 * Runs all steps, also after a failed one.
 * @returns the exit code
 */
function runSteps(node, env, steps) {
  const failed = [];
  for (const [name, ...args] of steps) {
    const startMs = Date.now();
    const { status } = spawnSync(node, [...NODE_FLAGS, ...args], {
      cwd: ROOT,
      env,
      stdio: 'inherit',
    });
    const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
    console.log(`[mouthpiece] ${name}: ${status === 0 ? 'ok' : 'FAILED'} in ${seconds} s`);
    if (status !== 0) {
      failed.push(name);
    }
  }
  if (failed.length > 0) {
    console.error(`[mouthpiece] failed: ${failed.join(', ')}`);
  }
  return failed.length === 0 ? 0 : 1;
}

/**
 * The steps of `npm test`: static checks, fuzzing, then all tests. With arguments: only the test
 * files whose path contains one of them.
 */
function testSteps(filters) {
  const tests = ['tests', VITEST, 'run', ...filters];
  if (filters.length > 0) {
    return [tests];
  }
  const { FUZZ_SECONDS: seconds } = process.env;
  const extent = seconds === undefined ? ['--fixed'] : ['--each', seconds];
  const fuzzing = ['fuzzing', 'test/fuzz/main.ts', ...extent, '--seed', '1', '--fresh'];
  return [...CHECKS.typecheck, ...CHECKS.lint, ...(seconds === '0' ? [] : [fuzzing]), tests];
}

/**
 * Runs the task as a child process and forwards signals to it: npm and the terminal send them to
 * this process.
 */
function runChild(node, args, env) {
  const child = spawn(node, args, { cwd: ROOT, env, stdio: 'inherit' });
  // Forward SIGHUP too. Its meaning depends on whether the server has a terminal.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('exit', (code, signal) =>
    process.exit(code ?? 128 + (os.constants.signals[signal] ?? 0)),
  );
}

const [task = 'start', ...args] = process.argv.slice(2);
try {
  const { node, env } = await setUp({
    forTests: NEEDS_TEST_PACKAGES.includes(task),
    log: (line) => console.error(`[setup] ${line}`),
  });
  if (task === 'setup') {
    process.exit(0);
  } else if (task === 'test') {
    process.exit(runSteps(node, env, testSteps(args)));
  } else if (CHECKS[task]) {
    process.exit(runSteps(node, env, CHECKS[task]));
  } else if (PROGRAMS[task]) {
    runChild(node, [...NODE_FLAGS, ...PROGRAMS[task], ...args], env);
  } else {
    const known = ['setup', 'test', ...Object.keys(CHECKS), ...Object.keys(PROGRAMS)];
    throw new SetupError(`Unknown task '${task}'. Choose from: ${known.join(' ')}`);
  }
} catch (error) {
  if (!(error instanceof SetupError)) {
    throw error;
  }
  console.error(`[setup] ${error.message}`);
  process.exit(1);
}
