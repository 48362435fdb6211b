// Runs the C++ core's tests (native/test) under AddressSanitizer and UndefinedBehaviorSanitizer.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { beforeAll, test } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
const sources = readdirSync(path.join(ROOT, 'native/test'))
  .filter((name) => name.endsWith('_test.cc'))
  .sort();

beforeAll(() => {
  const build = spawnSync(
    process.execPath,
    [path.join(ROOT, 'scripts/build-native.mjs'), '--sanitize'],
    { encoding: 'utf8' },
  );
  assert.equal(build.status, 0, build.stderr);
});

for (const source of sources) {
  test(`native/test/${source}`, () => {
    const env = {
      ...process.env,
      ASAN_OPTIONS: 'detect_stack_use_after_return=1:strict_string_checks=1',
      UBSAN_OPTIONS: 'print_stacktrace=1',
    };
    const result = spawnSync(
      path.join(ROOT, 'native/build/sanitize', path.basename(source, '.cc')),
      { encoding: 'utf8', env },
    );
    assert.equal(result.status, 0, `${result.stdout}\n${result.stderr}`);
  });
}
