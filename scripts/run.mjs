// Runs every npm script (`npm start`, `npm test`, …): completes the set-up, then runs the task
// under Node 22.
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { buildGoProgram } from './go-program.mjs';
import { preparedNode, ROOT, SetupError, setUp } from './setup.mjs';
import { runSteps } from './steps.mjs';

const NODE_FLAGS = ['--disable-warning=ExperimentalWarning'];
const VITEST = 'node_modules/vitest/vitest.mjs';

/** By npm script: the program, and the arguments that come before those of the user. */
const PROGRAMS = {
  start: ['src/main.ts'],
  dev: ['--watch', '--watch-preserve-output', 'src/main.ts'],
  bench: ['bench/main.ts'],
  fuzz: ['test/fuzz/main.ts'],
  keys: ['scripts/keys.ts'],
  data: ['scripts/data.ts'],
  format: ['scripts/format.mjs'],
  'test:watch': [VITEST, 'watch', '--project', 'unit', '--project', 'jobs'],
  coverage: ['test/coverage.ts'],
  'eval:speech': ['bench/eval-speech.ts'],
  'faces:sheet': ['scripts/faces-sheet.ts'],
  'faces:judge': ['scripts/faces-judge.ts'],
  'faces:make': ['scripts/make-faces.ts'],
  'logs:session': ['scripts/logs-session.ts'],
  'dashboards:preview': ['grafana/preview.ts'],
  /** Any program of the repository, under Node 22: `npm run node -- bench/micro/speech.ts`. */
  node: [],
};

/**
 * Tasks that use the npm packages alone: these run at once where the packages are installed, also
 * where nothing can be installed or built (the container image, another user's checkout).
 */
const NEEDS_PACKAGES_ALONE = ['keys', 'data', 'logs:session'];

/** What Node compiled: hundreds of test processes import the same files. */
const COMPILE_CACHE = path.join(ROOT, 'node_modules/.cache/compile');

const step = (name, ...args) => ({ name, args: [...NODE_FLAGS, ...args] });

/** The static checks of each npm script, in lanes (steps.mjs). */
const NATIVE_LINT = step('native lint', 'scripts/lint-native.mjs');
const LINT = [
  step('lint', 'node_modules/oxlint/bin/oxlint', '--type-aware', '--quiet'),
  step('dead code', 'node_modules/knip/bin/knip.js', '--no-progress'),
  step('format', 'scripts/format.mjs', '--check'),
];
const CHECKS = {
  typecheck: [[step('types', 'node_modules/typescript/bin/tsc', '-p', '.')]],
  lint: [[NATIVE_LINT], LINT],
};

/**
 * The steps of `npm run test:deep`, one after the other: most of them need the machine. clang-tidy
 * takes two minutes of a core in a fresh clone: beside the tests it would take them from jobs of
 * the lowest priority, which tests wait for.
 */
const DEEP_STEPS = [
  [
    NATIVE_LINT,
    step('deep tests', VITEST, 'run', '--project', 'deep'),
    step('deep fuzzing', 'test/fuzz/main.ts', '--fixed', '4', '--seed', '2', '--fresh'),
  ],
];

/** Tasks that need the Debian packages of the tests. */
const NEEDS_TEST_PACKAGES = [
  'test',
  'test:deep',
  'test:watch',
  'coverage',
  'bench',
  'fuzz',
  'lint',
];

/**
 * Static checks have a third of the share of tests, so that they are over before those that measure
 * time. Tests that only compute take what nobody else wants.
 */
const [LOW, LOWEST] = [5, 19];

/** Test projects that `npm test` runs beside the others. */
const BESIDE = ['waiting', 'jobs'];

/**
 * The steps of `npm test`: all tests, and static checks in the time that the tests leave.
 * With arguments: only the test files whose path contains one of them.
 */
function testSteps(filters) {
  if (filters.length > 0) {
    return [[step('tests', VITEST, 'run', ...filters)]];
  }
  const others = ['deep', ...BESIDE].flatMap((name) => ['--project', `!${name}`]);
  const [waiting, jobs] = BESIDE.map((name) => ({
    ...step(`${name} tests`, VITEST, 'run', '--project', name),
    isBackground: true,
  }));
  const checks = [...CHECKS.typecheck.flat(), ...LINT];
  return [
    [step('tests', VITEST, 'run', ...others)],
    [waiting],
    [
      ...checks.map((one) => ({ ...one, isBackground: true, niceness: LOW })),
      { ...jobs, niceness: LOWEST },
    ],
  ];
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

/** By option of the set-up: what some tests use where it is at hand, and what makes it. */
const OPTIONAL = {
  '--livekit': [['livekit-server', buildGoProgram]],
  '--s3': [['versitygw', buildGoProgram]],
  '--kubernetes': [
    ['helm', buildGoProgram],
    ['kubeconform', buildGoProgram],
    ['kubernetes-schemas', writeSchemas],
  ],
};

/** It parses YAML with a package of npm, which only the set-up installs. */
async function writeSchemas(_name, log) {
  const { writeKubernetesSchemas } = await import('./kubernetes-schemas.mjs');
  return writeKubernetesSchemas(log);
}

/** @throws SetupError */
async function makeOptional(options) {
  const log = (line) => console.error(`[setup] ${line}`);
  for (const [name, make] of options.flatMap((option) => OPTIONAL[option] ?? [])) {
    try {
      log(`${name} is ${await make(name, log)}`);
    } catch (error) {
      throw new SetupError(error.message);
    }
  }
}

const USAGE_OF_SETUP = `npm run setup [-- OPTION...]

Installs and builds what the server needs; the other tasks do so themselves. The options also build
with Go what some tests use:
  --livekit      a LiveKit server
  --s3           the S3 server versitygw
  --kubernetes   Helm, kubeconform and the schemas of Kubernetes`;

/** Ends the process when a task without a program of its own gets an argument that it does not know. */
function checkArguments(task, args) {
  const isSetup = task === 'setup';
  if (!isSetup && task !== 'test:deep' && !CHECKS[task]) {
    return; // programs read their own
  }
  const usage = isSetup ? USAGE_OF_SETUP : `npm run ${task} takes no arguments.`;
  if (args.some((arg) => arg === '--help' || arg === '-h')) {
    console.log(usage);
    process.exit(0);
  }
  const unknown = args.find((arg) => !isSetup || !Object.hasOwn(OPTIONAL, arg));
  if (unknown !== undefined) {
    console.error(`Unknown argument '${unknown}'.\n\n${usage}`);
    process.exit(2);
  }
}

const [task = 'start', ...args] = process.argv.slice(2);
checkArguments(task, args);
try {
  const prepared = NEEDS_PACKAGES_ALONE.includes(task) ? preparedNode() : undefined;
  const { node, env } =
    prepared ??
    (await setUp({
      forTests: NEEDS_TEST_PACKAGES.includes(task),
      log: (line) => console.error(`[setup] ${line}`),
    }));
  if (task === 'setup') {
    await makeOptional(args);
    process.exit(0);
  } else if (task === 'test') {
    const cached = { ...env, NODE_COMPILE_CACHE: COMPILE_CACHE };
    process.exitCode = await runSteps(testSteps(args), { cwd: ROOT, env: cached, node });
  } else if (task === 'test:deep') {
    process.exitCode = await runSteps(DEEP_STEPS, { cwd: ROOT, env, node });
  } else if (CHECKS[task]) {
    process.exitCode = await runSteps(CHECKS[task], { cwd: ROOT, env, node });
  } else if (PROGRAMS[task]) {
    runChild(node, [...NODE_FLAGS, ...PROGRAMS[task], ...args], env);
  } else {
    const known = ['setup', 'test', 'test:deep', ...Object.keys(CHECKS), ...Object.keys(PROGRAMS)];
    throw new SetupError(`Unknown task '${task}'. Choose from: ${known.join(' ')}`);
  }
} catch (error) {
  if (!(error instanceof SetupError)) {
    throw error;
  }
  console.error(`[setup] ${error.message}`);
  process.exit(1);
}
