// All the set-up there is, from a fresh clone to a server that can start: Debian packages, Node 22, npm packages, the native
// build, model files. Plain JavaScript without dependencies, since it runs before anything is installed, on any Node from 20.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const STAMPS = path.join(ROOT, '.setup');

/** Debian packages that the server itself needs: compilers and codec libraries for the addon, the database. */
const RUNTIME_PACKAGES = [
  'g++',
  'cmake',
  'ninja-build',
  'libvpx-dev',
  'libopenh264-dev',
  'libopus-dev',
  'libyuv-dev',
  'redis-server',
];

/**
 * Debian packages that only the tests use: a browser, voices, a decoder to check against, the
 * monitoring system that reads the metrics; for C++ the test framework, the linter and libFuzzer.
 */
const TEST_PACKAGES = [
  'chromium',
  'ffmpeg',
  'flite',
  'espeak-ng',
  'sox',
  'prometheus',
  'fonts-dejavu-core',
  'python3-aiortc',
  'doctest-dev',
  'clang-tidy',
  'clang',
  'libclang-rt-dev',
];

/** Makes the second run quiet and quick: a step whose inputs hash to what its stamp holds has nothing to do. */
const stampOf = (name) => path.join(STAMPS, name);
const isCurrent = (name, hash) =>
  existsSync(stampOf(name)) && readFileSync(stampOf(name), 'utf8') === hash;
const setStamp = (name, hash) => {
  mkdirSync(STAMPS, { recursive: true });
  writeFileSync(stampOf(name), hash);
};
const hashOf = (...parts) => createHash('sha256').update(parts.join('\0')).digest('hex');

export class SetupError extends Error {}

function run(command, args, options = {}) {
  const { label, ...rest } = options;
  const result = spawnSync(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    ...rest,
  });
  if (result.status === 0) {
    return result.stdout;
  }
  const logFile = path.join(STAMPS, 'last-failure.log');
  mkdirSync(STAMPS, { recursive: true });
  writeFileSync(
    logFile,
    `$ ${command} ${args.join(' ')}\n${result.stdout ?? ''}\n${result.stderr ?? ''}\n${result.error ?? ''}\n`,
  );
  const complaints = (result.stderr || result.stdout || '')
    .split('\n')
    .map((line) => line.replace(/^npm error\s*/, '').trim())
    .filter(
      (line, index, lines) =>
        /error|fail|cannot|can only|unable|missing|^E:/i.test(line) &&
        line.split(' ').length > 4 &&
        !/complete log|npm warn/i.test(line) &&
        lines.indexOf(line) === index,
    );
  const why = result.error?.message ?? complaints[0] ?? `exit code ${result.status}`;
  throw new SetupError(
    `${label ?? command} failed: ${why.trim()} (the whole output: ${path.relative(ROOT, logFile)})`,
  );
}

function missingPackages(names) {
  const result = spawnSync(
    'dpkg-query',
    ['-W', '-f', '${Package} ${db:Status-Status}\n', ...names],
    { encoding: 'utf8' },
  );
  if (result.error) {
    throw new SetupError(
      `This set-up knows Debian and Ubuntu; here there is no dpkg. Install the equivalents of: ${names.join(' ')}, then set MOUTHPIECE_SKIP_APT=1.`,
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

function installDebianPackages(names, say) {
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
      `Debian packages are missing and neither root nor password-less sudo is at hand. Run: sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing.join(' ')}`,
    );
  }
  say(`installing ${missing.length} Debian packages: ${missing.join(' ')}`);
  const apt = (...args) =>
    run(viaSudo ? 'sudo' : 'apt-get', [...(viaSudo ? ['-n', 'apt-get'] : []), ...args], {
      label: 'apt-get',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  apt('update', '-q');
  apt('install', '-y', '-q', '--no-install-recommends', ...missing);
}

/** @returns the path of npm's own script, so that it can be run by whichever Node we choose. */
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
    throw new SetupError('npm was not found. Install it beside Node, then try again.');
  }
}

const isWantedNode = (version) => {
  const [major, minor] = version.split('.').map(Number);
  return major === 22 && minor >= 18;
};

/** Node 22 runs the TypeScript sources as they are (type stripping, from 22.18) and is what the binary packages are built for. */
function findNode(npm, say) {
  if (isWantedNode(process.versions.node)) {
    return process.execPath;
  }
  const folder = path.join(ROOT, 'scripts/toolchain');
  const node = path.join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin/node');
  const hash = hashOf(readFileSync(path.join(folder, 'package-lock.json')));
  if (existsSync(node) && isCurrent('node', hash)) {
    return node;
  }
  say(`fetching Node 22 (this machine has ${process.versions.node})`);
  run(process.execPath, [npm, 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: folder,
    label: 'npm ci (Node 22)',
  });
  if (!existsSync(node)) {
    throw new SetupError(
      `There is no Node 22 package for linux-${process.arch}. Install Node 22.18 or newer yourself.`,
    );
  }
  setStamp('node', hash);
  return node;
}

function installNpmPackages(npm, node, say) {
  const hash = hashOf(readFileSync(path.join(ROOT, 'package-lock.json')), process.arch);
  if (existsSync(path.join(ROOT, 'node_modules/.package-lock.json')) && isCurrent('npm', hash)) {
    return;
  }
  say('installing npm packages');
  rmSync(stampOf('npm'), { force: true });
  run(node, [npm, 'ci', '--no-audit', '--no-fund'], {
    label: 'npm ci',
    // onnxruntime-node's install script would fetch CUDA libraries; the CPU library is inside the package.
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
 * Brings the checkout to where `src/main.ts` can run, from any state of the directory.
 * @param {{ forTests?: boolean, say?: (line: string) => void }} options
 * @returns {Promise<{ node: string, env: NodeJS.ProcessEnv }>} the Node to run under and the environment for it
 * @throws SetupError with one line that says what to do
 */
export async function setUp({ forTests = false, say = () => {} } = {}) {
  if (process.platform !== 'linux') {
    throw new SetupError(
      `Mouthpiece runs on Linux; this is ${process.platform}. Use the Dockerfile.`,
    );
  }
  installDebianPackages(forTests ? [...RUNTIME_PACKAGES, ...TEST_PACKAGES] : RUNTIME_PACKAGES, say);
  const npm = npmScript();
  const node = findNode(npm, say);
  installNpmPackages(npm, node, say);
  const env = {
    ...process.env,
    PATH: `${path.dirname(node)}:${process.env.PATH}`,
    NODE_OPTIONS: process.env.NODE_OPTIONS ?? '',
  };
  const { buildNative } = await import('./build-native.mjs');
  await buildNative({ log: say });
  const built = spawnSync(
    node,
    ['--disable-warning=ExperimentalWarning', path.join(ROOT, 'scripts/build-models.ts')],
    { cwd: ROOT, env, encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'] },
  );
  if (built.status !== 0) {
    throw new SetupError(
      `Model files could not be made: ${(built.stderr ?? '').trim().split('\n').pop()}`,
    );
  }
  return { node, env };
}
