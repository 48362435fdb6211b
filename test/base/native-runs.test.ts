import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { test } from 'vitest';

test('threads that run a network are terminated, and the process goes on', async () => {
  const file = path.join(import.meta.dirname, 'terminated-thread.ts');
  const { stderr } = await promisify(execFile)(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    file,
  ]);
  assert.equal(stderr, '');
});
