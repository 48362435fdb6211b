// Runs the C++ core's tests (native/test), and the stored inputs of its fuzz targets once, under
// AddressSanitizer and UndefinedBehaviorSanitizer.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { beforeAll, test } from 'vitest';
import { CATALOGUE, corpusOf, inputsIn, regressionsOf, ROOT } from '../fuzz/catalogue.ts';

const sources = readdirSync(path.join(ROOT, 'native/test'))
  .filter((name) => name.endsWith('_test.cc'))
  .sort();

/** Runs a program of the build. It fails when a sanitizer has something to report. */
function run(program: string, ...args: string[]): void {
  const env = {
    ...process.env,
    ASAN_OPTIONS: 'detect_stack_use_after_return=1:strict_string_checks=1',
    UBSAN_OPTIONS: 'print_stacktrace=1',
  };
  const file = path.join(ROOT, 'native/build/memory', program);
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', env });
  assert.equal(status, 0, `${stdout.slice(-4000)}\n${stderr.slice(-4000)}`);
}

beforeAll(() => {
  const build = spawnSync(
    process.execPath,
    [path.join(ROOT, 'scripts/build-native.mjs'), '--memory'],
    { encoding: 'utf8' },
  );
  assert.equal(build.status, 0, build.stderr);
});

for (const source of sources) {
  test(`native/test/${source}`, () => {
    run(path.basename(source, '.cc'));
  });
}

for (const { name } of CATALOGUE.filter(({ kind }) => kind === 'native')) {
  const folders = [corpusOf(name), regressionsOf(name)].filter(
    (folder) => inputsIn(folder).length > 0,
  );
  test(`stored inputs of native/fuzz/${name}_fuzz.cc`, () => {
    assert.ok(folders.length > 0, 'each target has stored inputs');
    run(`${name}_fuzz`, '-runs=0', ...folders);
  });
}
