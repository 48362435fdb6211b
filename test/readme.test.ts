// The README and the code say the same: npm scripts and links (settings are held in config.test.ts, endpoints in front/api/openapi.test.ts).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const readme = readFileSync(path.join(root, 'README.md'), 'utf8');

test('every npm script that the README names exists', () => {
  const scripts = Object.keys(
    (
      JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
        scripts: Record<string, string>;
      }
    ).scripts,
  );
  for (const [, name] of readme.matchAll(/npm run ([\w:]+)/g)) {
    assert.ok(scripts.includes(name!), `npm run ${name!}`);
  }
});

test('every file that the README links to exists', () => {
  for (const [, target] of readme.matchAll(/\]\((?!http)([^)#]+)\)/g)) {
    assert.ok(exists(path.join(root, target!)), target);
  }
});

function exists(file: string): boolean {
  try {
    readFileSync(file);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EISDIR';
  }
}
