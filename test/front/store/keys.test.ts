// The table of Redis keys is the truth: every key that is built is in it, every one in it is built, and nobody builds keys elsewhere.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { keys } from '../../../src/front/store/keys.ts';

const SOURCE = path.resolve(import.meta.dirname, '../../../src');
const file = path.join(SOURCE, 'front/store/keys.ts');

test('the table and the functions name the same keys', () => {
  const listed = [...readFileSync(file, 'utf8').matchAll(/^\/\/ \| (mp:\S+)/gm)].map(
    ([, key = '']) => key.replace(/\{[A-Z]+\}/, '{*}'),
  );
  const built = Object.values(keys).map((make) => (make as (part?: string) => string)('*'));
  assert.deepEqual(built.sort(), listed.sort());
});

test('keys are built in that file alone', () => {
  for (const entry of readdirSync(SOURCE, { recursive: true, withFileTypes: true })) {
    const name = path.join(entry.parentPath, entry.name);
    if (!entry.isFile() || !name.endsWith('.ts') || name === file) {
      continue;
    }
    assert.ok(!/['"`]mp:/.test(readFileSync(name, 'utf8')), name);
  }
});
