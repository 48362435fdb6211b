// `npm run keys`: a new key works at once, and a revoked one no longer works; beside a running
// server and without one.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { startTestFront, type TestFront } from '../front/harness.ts';

let server: TestFront;
beforeAll(async () => {
  server = await startTestFront();
});
afterAll(() => server.close());

interface Outcome {
  code: number;
  out: string;
  err: string;
}

const keys = (...args: string[]): Promise<Outcome> =>
  keysWith({ DATA_DIR: server.dataDir }, ...args);

function keysWith(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        path.resolve(import.meta.dirname, '../../scripts/keys.ts'),
        ...args,
      ],
      { env: { ...process.env, REDIS_URL: '', ...env } },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
      },
    );
  });
}

test('create, use, list, revoke', async () => {
  const { out, err, code } = await keys('create', '--name', 'laptop', '--owner', 'alice');
  assert.equal(code, 0, err);
  const key = out.trim();
  const audited = JSON.parse(/^\{.*"audit".*$/m.exec(err)![0]) as Record<string, unknown>;
  assert.equal(audited.audit, 'key.create');
  assert.equal(audited.owner, 'alice');
  assert.ok(audited.user);
  assert.ok(!err.includes(key), 'the key is on stdout alone');
  assert.equal((await server.call('/faces', { key })).status, 200);
  const listed = await keys('list');
  assert.match(listed.out, /alice\s+laptop/);
  assert.ok(!listed.out.includes(key));
  const id = /^(\w{16})\s+alice/m.exec(listed.out)?.[1] ?? '';
  const revoked = await keys('revoke', id);
  assert.equal(revoked.code, 0);
  assert.match(revoked.err, new RegExp(`"audit":"key.revoke","id":"${id}"`));
  assert.equal((await server.call('/faces', { key })).status, 401);
  const all = JSON.parse((await keys('list', '--json')).out) as {
    id: string;
    revokedAtMs?: number;
  }[];
  assert.ok(all.find((entry) => entry.id === id)?.revokedAtMs);
});

test('invalid commands are reported', async () => {
  assert.equal((await keys('revoke', 'nothing')).code, 1);
  for (const args of [[], ['create'], ['destroy']]) {
    const { code, err } = await keys(...args);
    assert.equal(code, 2);
    assert.match(err, /^npm run keys -- create/);
  }
});

test('the store is named, and so is one that was not there before', async () => {
  const known = await keys('list');
  assert.ok(known.err.includes(`Store: ${path.join(server.dataDir, 'redis')} (DATA_DIR)`));
  assert.doesNotMatch(known.err, /NEW/);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-keys-'));
  try {
    const settings = path.join(folder, 'settings');
    writeFileSync(settings, `DATA_DIR=${path.join(folder, 'data')}\n`);
    const env = { DATA_DIR: '', SETTINGS_FILE: settings };
    const first = await keysWith(env, 'create', '--name', 'one');
    assert.equal(first.code, 0, first.err);
    assert.ok(first.err.includes(`NEW and empty: there was none in ${path.join(folder, 'data')}.`));
    const again = await keysWith(env, 'list');
    assert.match(again.out, /bootstrap\s+one/);
    assert.doesNotMatch(again.err, /NEW/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
