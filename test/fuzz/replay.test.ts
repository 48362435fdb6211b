// Every kept input of every fuzz target runs once, and whatever once broke something stays mended.
// No coverage, no mutation: `npm run fuzz` does that.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { CATALOGUE, corpusOf, inputsIn, regressionsOf, ROOT } from './catalogue.ts';
import { check, type FuzzTarget } from './engine/target.ts';

/** All kept inputs together: they are in everybody's checkout. */
const MAX_KEPT_BYTES = 2 * 1024 * 1024;

for (const { name, kind } of CATALOGUE) {
  const inputs = [...inputsIn(corpusOf(name)), ...inputsIn(regressionsOf(name))];
  test(`${name}: ${inputs.length} kept inputs`, { skip: kind === 'native' }, async () => {
    assert.ok(inputs.length > 0, 'a target begins with inputs that reach its inside');
    const { target } = (await import(`./targets/${name}.ts`)) as { target: FuzzTarget };
    await target.run(Buffer.alloc(0));
    for (const input of inputs) {
      await check(target, input.bytes).catch((error: unknown) => {
        throw new Error(`input ${input.name}`, { cause: error });
      });
    }
  });
}

test('the kept inputs are small, and belong to targets', () => {
  const names = new Set(CATALOGUE.map(({ name }) => name));
  let bytes = 0;
  for (const folder of ['corpus', 'regressions']) {
    for (const entry of readdirSync(path.join(import.meta.dirname, folder), {
      withFileTypes: true,
    })) {
      assert.ok(names.has(entry.name), `test/fuzz/${folder}/${entry.name} is of no target`);
      for (const input of inputsIn(path.join(import.meta.dirname, folder, entry.name))) {
        bytes += input.bytes.length;
      }
    }
  }
  assert.ok(bytes <= MAX_KEPT_BYTES, `${bytes} bytes of kept inputs`);
});

test('every target is in the catalogue', () => {
  const here = readdirSync(path.join(import.meta.dirname, 'targets'))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `js ${path.basename(file, '.ts')}`);
  const native = readdirSync(path.join(ROOT, 'native/fuzz'))
    .filter((file) => file.endsWith('_fuzz.cc'))
    .map((file) => `native ${path.basename(file, '_fuzz.cc')}`);
  assert.deepEqual(
    [...here, ...native].sort(),
    CATALOGUE.map(({ kind, name }) => `${kind} ${name}`).sort(),
  );
});
