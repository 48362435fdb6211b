// Builds the native addon with CMake and Ninja:
//   node scripts/build-native.mjs [--memory | --threads]
// Plain JavaScript, because the set-up runs it before TypeScript can run.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { SetupError } from './setup.mjs';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const SOURCE = path.join(ROOT, 'native');
const BUILD = path.join(SOURCE, 'build');
const HEADERS = path.join(ROOT, 'node_modules/node-api-headers/include');

/**
 * @returns a hash of the sources and this script. System libraries are not included: `loadError`
 * detects that one is missing.
 */
function hashOfInputs() {
  const hash = createHash('sha256')
    .update(process.arch)
    .update(readFileSync(fileURLToPath(import.meta.url)));
  const add = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )) {
      const file = path.join(folder, entry.name);
      if (entry.isDirectory()) {
        if (file !== BUILD) {
          add(file);
        }
      } else {
        hash.update(path.relative(ROOT, file)).update('\0').update(readFileSync(file));
      }
    }
  };
  add(SOURCE);
  return hash.digest('hex');
}

function run(command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20 });
  if (result.error) {
    throw new SetupError(
      `The native build needs ${command}: ${result.error.message}. ` +
        'On Debian: apt-get install cmake ninja-build g++',
    );
  }
  if (result.status === 0) {
    return;
  }
  const output = `${result.stdout}\n${result.stderr}`;
  const logFile = path.join(BUILD, 'failure.log');
  writeFileSync(logFile, `$ ${command} ${args.join(' ')}\n${output}`);
  const why =
    output.split('\n').find((line) => /\berror\b/i.test(line)) ??
    `${command} exited with ${result.status ?? result.signal}`;
  throw new SetupError(
    `The native build failed: ${why.trim()} (the whole output: ${path.relative(ROOT, logFile)})`,
  );
}

/** @returns why the addon cannot be loaded (a missing library, a truncated file), or null */
function loadError(addon) {
  try {
    createRequire(import.meta.url)(addon);
    return null;
  } catch (error) {
    return error;
  }
}

/**
 * Configures and compiles. Removes an earlier build first if `fromScratch`, and when its cache is
 * of another folder or another CMake.
 */
function compile(folder, options, fromScratch) {
  const locked = (...command) => run('flock', [`${folder}.lock`, ...command]);
  const configure = () =>
    locked(
      'cmake',
      '-G',
      'Ninja',
      '-S',
      SOURCE,
      '-B',
      folder,
      `-DNODE_API_INCLUDE=${HEADERS}`,
      ...options,
    );
  if (fromScratch) {
    locked('rm', '-rf', folder);
  }
  try {
    configure();
  } catch {
    locked('rm', '-rf', folder);
    configure();
  }
  locked('cmake', '--build', folder, '--parallel', String(os.availableParallelism()));
}

const TEST_OPTIONS = ['-DCMAKE_BUILD_TYPE=Debug', '-DMOUTHPIECE_WERROR=ON'];

/** What can be built: its folder under `native/build`, its name in the log, and CMake's options. */
const KINDS = {
  release: { name: 'native addon', options: [] },
  memory: {
    name: 'native tests and fuzzers',
    options: ['-DSANITIZE=memory', '-DCMAKE_CXX_COMPILER=clang++', ...TEST_OPTIONS],
  },
  threads: {
    name: 'native tests of concurrent use',
    options: ['-DSANITIZE=thread', ...TEST_OPTIONS],
  },
};

/**
 * Brings `native/build/mouthpiece.node` (or the programs in `native/build/KIND`) up to date.
 * Two builds at once wait for each other; a process that has the old addon loaded keeps it.
 * @param {{ log?: (line: string) => void, kind?: keyof typeof KINDS }} options
 * @returns {Promise<string>} the path of what was built
 * @throws SetupError with one line that says what is wrong
 */
export async function buildNative({ log = () => {}, kind = 'release' } = {}) {
  const folder = path.join(BUILD, kind);
  const addon = path.join(BUILD, 'mouthpiece.node');
  const isAddon = kind === 'release';
  const product = isAddon ? addon : folder;
  const stamp = path.join(BUILD, `${path.basename(folder)}.stamp`);
  const hash = hashOfInputs();
  const isCurrent =
    existsSync(product) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hash;
  if (isCurrent && (!isAddon || loadError(addon) === null)) {
    return product;
  }
  if (!existsSync(HEADERS)) {
    throw new SetupError('The native build needs the npm packages: run npm ci first.');
  }
  mkdirSync(BUILD, { recursive: true });
  log(`building the ${KINDS[kind].name}`);
  const started = Date.now();
  rmSync(stamp, { force: true });
  // An addon of the same sources that does not load: configure again, to find the libraries.
  compile(folder, KINDS[kind].options, isCurrent);
  if (isAddon) {
    const fresh = `${addon}.${process.pid}`;
    copyFileSync(path.join(folder, 'mouthpiece.node'), fresh);
    renameSync(fresh, addon);
    const error = loadError(addon);
    if (error) {
      throw new SetupError(`The native addon was built but does not load: ${error.message}`);
    }
  }
  writeFileSync(stamp, hash);
  log(`native build done in ${((Date.now() - started) / 1000).toFixed(1)} s`);
  return product;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const kind =
      ['memory', 'threads'].find((name) => process.argv.includes(`--${name}`)) ?? 'release';
    await buildNative({ log: console.log, kind });
  } catch (error) {
    if (!(error instanceof SetupError)) {
      throw error;
    }
    console.error(error.message);
    process.exit(1);
  }
}
