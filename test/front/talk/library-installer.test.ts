// The installation of the conversation library: by the real installer, where no registry answers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { TalkLibraryInstaller } from '../../../src/front/talk/library-installer.ts';

const SCRIPTS = path.resolve(import.meta.dirname, '../../../scripts');
let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-install-'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

test('where the library cannot be installed, each conversation is refused in words', async () => {
  cpSync(SCRIPTS, path.join(root, 'scripts'), {
    recursive: true,
    filter: (source) => !source.includes('node_modules'),
  });
  vi.stubEnv('npm_config_registry', 'http://127.0.0.1:1/');
  vi.stubEnv('npm_config_cache', path.join(root, 'cache'));
  vi.stubEnv('npm_config_fetch_retries', '0');
  const log = createLogger('silent');
  const told = vi.spyOn(log, 'error');
  const installer = new TalkLibraryInstaller(root, log);
  await expect(installer.install()).rejects.toMatchObject({ code: 'CONVERSATIONS_UNAVAILABLE' });
  const [detail, message] = told.mock.calls[0] as unknown as [{ errors: string }, string];
  assert.match(message, /could not be installed/);
  assert.match(detail.errors, /ECONNREFUSED/, 'the log tells why');
  // The next one does not wait for another attempt.
  await expect(installer.install()).rejects.toMatchObject({ code: 'CONVERSATIONS_UNAVAILABLE' });
  assert.equal(told.mock.calls.length, 1);
});

test('a user who may not write the folder is told who may, in one line', () => {
  cpSync(SCRIPTS, path.join(root, 'scripts'), {
    recursive: true,
    filter: (source) => !source.includes('node_modules'),
  });
  mkdirSync(path.join(root, '.setup'));
  const isRoot = process.getuid!() === 0;
  for (const [folder, mode] of [
    ['', 0o755],
    ['scripts/talk', 0o755],
    ['.setup', 0o555],
  ] as const) {
    chmodSync(path.join(root, folder), mode);
  }
  const { status, stderr } = spawnSync(
    process.execPath,
    [path.join(root, 'scripts/install-talk.mjs')],
    // Root may write everywhere.
    { cwd: root, encoding: 'utf8', ...(isRoot ? { uid: 65_534, gid: 65_534 } : {}) },
  );
  assert.equal(status, 1);
  const denied = path.join(root, isRoot ? 'scripts/talk' : '.setup');
  const user = isRoot ? 65_534 : process.getuid!();
  assert.equal(
    stderr,
    `User ${user} cannot write ${denied}. Run node scripts/install-talk.mjs in ${root} as a user ` +
      `who can: the folder belongs to user ${process.getuid!()}.\n`,
  );
});

test('conversations that come at once wait for one installation', async () => {
  mkdirSync(path.join(root, 'scripts'));
  writeFileSync(
    path.join(root, 'scripts/install-talk.mjs'),
    `import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
     appendFileSync('runs', 'x');
     mkdirSync('scripts/talk/node_modules', { recursive: true });
     writeFileSync('scripts/talk/node_modules/.package-lock.json', '{}');`,
  );
  const installer = new TalkLibraryInstaller(root, createLogger('silent'));
  await Promise.all([installer.install(), installer.install()]);
  await installer.install();
  assert.equal(readFileSync(path.join(root, 'runs'), 'utf8'), 'x');
});
