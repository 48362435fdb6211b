// Runs the stored inputs of the C++ fuzz targets once, under ASan and UBSan.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { beforeAll, test } from 'vitest';
import { CATALOGUE, corpusOf, inputsIn, regressionsOf, ROOT } from '../fuzz/catalogue.ts';

beforeAll(() => {
  const build = spawnSync(
    process.execPath,
    [path.join(ROOT, 'scripts/build-native.mjs'), '--fuzz'],
    {
      encoding: 'utf8',
    },
  );
  assert.equal(build.status, 0, build.stderr);
});

for (const { name } of CATALOGUE.filter(({ kind }) => kind === 'native')) {
  const folders = [corpusOf(name), regressionsOf(name)].filter(
    (folder) => inputsIn(folder).length > 0,
  );
  test(`native/fuzz/${name}_fuzz.cc`, () => {
    assert.ok(folders.length > 0, 'each target has stored inputs');
    const result = spawnSync(
      path.join(ROOT, 'native/build/fuzz', `${name}_fuzz`),
      ['-runs=0', ...folders],
      { encoding: 'utf8' },
    );
    assert.equal(result.status, 0, result.stderr.slice(-4000));
  });
}
