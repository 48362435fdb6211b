// Redis keys: each one is documented, and only src/front/store/keys.ts builds keys.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { keys } from '../../../src/front/store/keys.ts';

const SOURCE = path.resolve(import.meta.dirname, '../../../src');
const file = path.join(SOURCE, 'front/store/keys.ts');

test('each key is documented: its Redis type first', () => {
  const documented = [
    ...readFileSync(file, 'utf8').matchAll(
      /\/\*\* (?:String|Hash|Set|Sorted set)\b[^*]*\*\/\n  (\w+): \(/g,
    ),
  ].map(([, name]) => name);
  assert.deepEqual(documented, Object.keys(keys));
});

test('each key has the prefix of the project and is built by one function', () => {
  const built = Object.values(keys).map((make) => (make as (part?: string) => string)('*'));
  assert.equal(new Set(built).size, built.length);
  for (const key of built) {
    assert.match(key, /^mp:/);
  }
});

test('no other file builds keys', () => {
  for (const entry of readdirSync(SOURCE, { recursive: true, withFileTypes: true })) {
    const name = path.join(entry.parentPath, entry.name);
    if (!entry.isFile() || !name.endsWith('.ts') || name === file) {
      continue;
    }
    assert.ok(!/['"`]mp:/.test(readFileSync(name, 'utf8')), name);
  }
});
