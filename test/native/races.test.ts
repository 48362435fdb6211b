// Concurrent use of the C++ core under ThreadSanitizer.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { beforeAll, test } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');

beforeAll(() => {
  const build = spawnSync(
    process.execPath,
    [path.join(ROOT, 'scripts/build-native.mjs'), '--threads'],
    {
      encoding: 'utf8',
    },
  );
  assert.equal(build.status, 0, build.stderr);
});

// Never repeated: a race need not happen each time.
test('native/test/threads_test.cc has no data race', { retry: 0 }, () => {
  const program = path.join(ROOT, 'native/build/threads/threads_test');
  // GCC 12's ThreadSanitizer does not start with high-entropy address space randomisation. Some
  // containers forbid setarch to turn it off.
  const isAllowed = spawnSync('setarch', ['-R', 'true']).status === 0;
  const result = spawnSync(isAllowed ? 'setarch' : program, isAllowed ? ['-R', program] : [], {
    encoding: 'utf8',
    env: { ...process.env, TSAN_OPTIONS: 'halt_on_error=1' },
  });
  assert.equal(result.status, 0, `${result.stdout}\n${result.stderr}`);
});
