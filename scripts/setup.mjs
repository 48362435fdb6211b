// The complete set-up, from a fresh clone to a server that can start: Debian packages, Node 22, npm
// packages, the native addon, model files. Plain JavaScript without dependencies for any Node from
// 20, because it runs before anything is installed.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const STAMPS = path.join(ROOT, '.setup');

/**
 * Debian packages that the server needs: compilers, the codec libraries of the addon, Redis, and the
 * local voice and recogniser of conversations.
 */
const RUNTIME_PACKAGES = [
  'g++',
  'cmake',
  'ninja-build',
  'libvpx-dev',
  'libopenh264-dev',
  'libopus-dev',
  'libyuv-dev',
  'redis-server',
  'flite',
  'pocketsphinx',
  'pocketsphinx-en-us',
];

/**
 * Debian packages that only the tests need: a browser, speech synthesis, a reference decoder,
 * Prometheus, a balancer, and what the Python client stands on; for C++ the test framework, the
 * linter and libFuzzer.
 */
const TEST_PACKAGES = [
  'chromium',
  'ffmpeg',
  'espeak-ng',
  'sox',
  'prometheus',
  'haproxy',
  'fonts-dejavu-core',
  'python3-aiortc',
  'python3-websockets',
  'openssl',
  'doctest-dev',
  'clang-tidy',
  'clang',
  'libclang-rt-dev',
];

/**
 * Stamps make the second run fast: a step is skipped when the hash of its inputs equals its stamp.
 */
const stampOf = (name) => path.join(STAMPS, name);
const isCurrent = (name, hash) =>
  existsSync(stampOf(name)) && readFileSync(stampOf(name), 'utf8') === hash;
const setStamp = (name, hash) => {
  mkdirSync(STAMPS, { recursive: true });
  writeFileSync(stampOf(name), hash);
};
const hashOf = (...parts) => createHash('sha256').update(parts.join('\0')).digest('hex');

/** A failed step. Its message is one line that says what to do. */
export class SetupError extends Error {}

/** @returns how a command ended, and what it wrote */
async function resultOf(command, args, options) {
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const result = { status: null, stdout: '', stderr: '', error: undefined };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      result[name] += text;
    });
  }
  await new Promise((resolve) => {
    child.once('error', (error) => {
      result.error = error;
      resolve();
    });
    child.once('close', (status) => {
      result.status = status;
      resolve();
    });
  });
  return result;
}

/**
 * Runs a command.
 * @throws SetupError with its first line of error output; the full output is in
 * .setup/last-failure.log
 */
async function run(command, args, { label, ...options } = {}) {
  const result = await resultOf(command, args, options);
  if (result.status === 0) {
    return;
  }
  const logFile = path.join(STAMPS, 'last-failure.log');
  mkdirSync(STAMPS, { recursive: true });
  writeFileSync(
    logFile,
    `$ ${command} ${args.join(' ')}\n${result.stdout}\n${result.stderr}\n${result.error ?? ''}\n`,
  );
  const errors = (result.stderr || result.stdout || '')
    .split('\n')
    .map((line) => line.replace(/^npm error\s*/, '').trim())
    .filter(
      (line, index, lines) =>
        /error|fail|cannot|can only|unable|missing|^E:/i.test(line) &&
        line.split(' ').length > 4 &&
        !/complete log|npm warn/i.test(line) &&
        lines.indexOf(line) === index,
    );
  const why = result.error?.message ?? errors[0] ?? `exit code ${result.status}`;
  throw new SetupError(
    `${label ?? command} failed: ${why.trim()} (full output: ${path.relative(ROOT, logFile)})`,
  );
}

/**
 * @param {string} folder
 * @param {string} command that writes it
 * @throws SetupError when this process may not write it
 */
function requireWritable(folder, command) {
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    throw new SetupError(
      `User ${process.geteuid()} cannot write ${folder}. Run ${command} in ${ROOT} as a user who ` +
        `can: the folder belongs to user ${statSync(folder).uid}.`,
    );
  }
}

function missingPackages(names) {
  const result = spawnSync(
    'dpkg-query',
    ['-W', '-f', '${Package} ${db:Status-Status}\n', ...names],
    { encoding: 'utf8' },
  );
  if (result.error) {
    throw new SetupError(
      'The set-up supports Debian and Ubuntu only (dpkg was not found). Install the ' +
        `equivalents of: ${names.join(' ')}, then set MOUTHPIECE_SKIP_APT=1.`,
    );
  }
  const installed = new Set(
    result.stdout
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  );
  return names.filter((name) => !installed.has(name));
}

async function installDebianPackages(names, log) {
  if (process.env.MOUTHPIECE_SKIP_APT === '1') {
    return;
  }
  const missing = missingPackages(names);
  if (missing.length === 0) {
    return;
  }
  const isRoot = process.getuid?.() === 0;
  const viaSudo = !isRoot && spawnSync('sudo', ['-n', 'true']).status === 0;
  if (!isRoot && !viaSudo) {
    throw new SetupError(
      'Debian packages are missing, and installing them needs root or sudo without a ' +
        'password. Run: sudo apt-get update && sudo apt-get install -y --no-install-recommends ' +
        `${missing.join(' ')}`,
    );
  }
  log(`installing ${missing.length} Debian packages: ${missing.join(' ')}`);
  const apt = (...args) =>
    run(viaSudo ? 'sudo' : 'apt-get', [...(viaSudo ? ['-n', 'apt-get'] : []), ...args], {
      label: 'apt-get',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  await apt('update', '-q');
  await apt('install', '-y', '-q', '--no-install-recommends', ...missing);
}

/**
 * The path of npm's own script, to run it under any Node.
 * @throws SetupError when npm is not installed
 */
function npmScript() {
  const candidates = [
    process.env.npm_execpath,
    path.join(path.dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js'),
    '/usr/lib/node_modules/npm/bin/npm-cli.js',
    '/usr/share/nodejs/npm/bin/npm-cli.js',
  ];
  const found = candidates.find((file) => file?.endsWith('npm-cli.js') && existsSync(file));
  if (found) {
    return found;
  }
  try {
    return path.join(
      execFileSync('npm', ['root', '-g'], { encoding: 'utf8' }).trim(),
      'npm/bin/npm-cli.js',
    );
  } catch {
    throw new SetupError('npm was not found. Install npm, then try again.');
  }
}

const isWantedNode = (version) => {
  const [major, minor] = version.split('.').map(Number);
  return major === 22 && minor >= 18;
};

/** Where the set-up installs Node 22, and the hash of what it installs. */
function toolchain() {
  const folder = path.join(ROOT, 'scripts/toolchain');
  return {
    folder,
    node: path.join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin/node'),
    hash: hashOf(readFileSync(path.join(folder, 'package-lock.json'))),
  };
}

/** @returns a Node 22 that is here already; undefined: there is none */
function installedNode() {
  if (isWantedNode(process.versions.node)) {
    return process.execPath;
  }
  const { node, hash } = toolchain();
  return existsSync(node) && isCurrent('node', hash) ? node : undefined;
}

/**
 * Returns a Node 22, which it installs with npm when this process runs under another version. Node
 * runs the TypeScript sources directly (type stripping, from 22.18), and the binary packages are
 * built for Node 22.
 */
async function findNode(npm, log) {
  const found = installedNode();
  if (found !== undefined) {
    return found;
  }
  const { folder, node, hash } = toolchain();
  log(`installing Node 22 (this machine has ${process.versions.node})`);
  await run(process.execPath, [npm, 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: folder,
    label: 'npm ci (Node 22)',
  });
  if (!existsSync(node)) {
    throw new SetupError(
      `There is no Node 22 package for linux-${process.arch}. Install Node 22.18 or a later 22.x.`,
    );
  }
  setStamp('node', hash);
  return node;
}

const hashOfPackages = () =>
  hashOf(readFileSync(path.join(ROOT, 'package-lock.json')), process.arch);
const hasPackages = () => existsSync(path.join(ROOT, 'node_modules/.package-lock.json'));

async function installNpmPackages(npm, node, log) {
  const hash = hashOfPackages();
  if (hasPackages() && isCurrent('npm', hash)) {
    return;
  }
  log('installing npm packages');
  rmSync(stampOf('npm'), { force: true });
  await run(node, [npm, 'ci', '--no-audit', '--no-fund'], {
    label: 'npm ci',
    // Skip the install script of onnxruntime-node: it downloads CUDA libraries, and the package
    // already contains the CPU library.
    env: {
      ...process.env,
      PATH: `${path.dirname(node)}:${process.env.PATH}`,
      ONNXRUNTIME_NODE_INSTALL: 'skip',
      NODE_OPTIONS: '',
    },
  });
  setStamp('npm', hash);
}

/**
 * Installs the libraries of conversations (scripts/talk), 290 MB that few servers need: on first use,
 * and for the tests.
 * @param node the Node 22 to run npm with
 * @throws SetupError when they cannot be installed
 */
export async function installTalk(
  log = () => {},
  node = process.execPath,
  { forTests = false } = {},
) {
  const folder = path.join(ROOT, 'scripts/talk');
  const lock = readFileSync(path.join(folder, 'package-lock.json'));
  const hash = hashOf(lock, process.arch, forTests ? 'tests' : 'server');
  if (existsSync(path.join(folder, 'node_modules/.package-lock.json')) && isCurrent('talk', hash)) {
    return;
  }
  for (const written of [folder, existsSync(STAMPS) ? STAMPS : ROOT]) {
    requireWritable(written, 'node scripts/install-talk.mjs');
  }
  log('installing the libraries of conversations');
  rmSync(stampOf('talk'), { force: true });
  // The plug-ins among the development packages judge the protocols in the tests.
  const omitted = forTests ? [] : ['--omit=dev'];
  await run(node, [npmScript(), 'ci', '--no-audit', '--no-fund', '--ignore-scripts', ...omitted], {
    cwd: folder,
    label: 'npm ci (conversations)',
    env: {
      ...process.env,
      PATH: `${path.dirname(node)}:${process.env.PATH}`,
      NODE_OPTIONS: '',
    },
  });
  setStamp('talk', hash);
}

/** Of the Node that tasks run under. */
const environmentOf = (node) => ({
  ...process.env,
  PATH: `${path.dirname(node)}:${process.env.PATH}`,
  NODE_OPTIONS: process.env.NODE_OPTIONS ?? '',
});

/**
 * What programs that need the npm packages alone run under. A folder without stamps is a container
 * image: its packages were installed when it was built.
 * @returns {{ node: string, env: NodeJS.ProcessEnv } | undefined} undefined: the set-up has to run
 */
export function preparedNode() {
  const node = installedNode();
  const isReady = hasPackages() && (!existsSync(STAMPS) || isCurrent('npm', hashOfPackages()));
  return node !== undefined && isReady ? { node, env: environmentOf(node) } : undefined;
}

/**
 * Completes the set-up from any state of the checkout.
 * @param {{ forTests?: boolean, log?: (line: string) => void }} options
 * @returns {Promise<{ node: string, env: NodeJS.ProcessEnv }>} the Node to run under, and its
 * environment
 * @throws SetupError with one line that says what to do
 */
export async function setUp({ forTests = false, log = () => {} } = {}) {
  if (process.platform !== 'linux') {
    throw new SetupError(
      `Mouthpiece runs on Linux, not on ${process.platform}. Use the Dockerfile.`,
    );
  }
  await installDebianPackages(
    forTests ? [...RUNTIME_PACKAGES, ...TEST_PACKAGES] : RUNTIME_PACKAGES,
    log,
  );
  const npm = npmScript();
  const node = await findNode(npm, log);
  // Side by side: each keeps one core busy with unpacking.
  const installed = await Promise.allSettled([
    installNpmPackages(npm, node, log),
    forTests ? installTalk(log, node, { forTests }) : undefined,
  ]);
  for (const { status, reason } of installed) {
    if (status === 'rejected') {
      throw reason;
    }
  }
  const env = environmentOf(node);
  const { buildNative } = await import('./build-native.mjs');
  await buildNative({ log });
  const built = spawnSync(
    node,
    ['--disable-warning=ExperimentalWarning', path.join(ROOT, 'scripts/build-models.ts')],
    { cwd: ROOT, env, encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'] },
  );
  if (built.status !== 0) {
    throw new SetupError(
      `The model files could not be made: ${(built.stderr ?? '').trim().split('\n').pop()}`,
    );
  }
  return { node, env };
}
