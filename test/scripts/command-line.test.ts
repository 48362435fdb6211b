// Every tool prints its usage on --help, and names an argument that it does not know.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const run = (file: string, ...args: string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', file, ...args], {
    cwd: root,
    encoding: 'utf8',
    timeout: 60_000,
  });

for (const [script, file] of [
  ['bench', 'bench/main.ts'],
  ['eval:speech', 'bench/eval-speech.ts'],
  ['faces:sheet', 'scripts/faces-sheet.ts'],
  ['keys', 'scripts/keys.ts'],
  ['data', 'scripts/data.ts'],
  ['faces:make', 'scripts/make-faces.ts'],
  ['dashboards:preview', 'grafana/preview.ts'],
] as const) {
  test(`${script} prints its usage, and names an option that it does not know`, () => {
    const wrong = run(file, '--nonsense');
    assert.match(
      wrong.stderr,
      new RegExp(`^Unknown option '--nonsense'.*\\n\\nnpm run ${script} -- `),
    );
    assert.doesNotMatch(wrong.stderr, /\n +at /);
    assert.equal(wrong.status, 2);
    const asked = run(file, '--help');
    assert.match(asked.stdout + asked.stderr, new RegExp(`^npm run ${script} -- `));
  });
}

test('tasks without a program of their own refuse what they do not know, before they do anything', () => {
  for (const [task, said] of [
    ['setup', /^Unknown argument '--nonsense'\.\n\nnpm run setup \[-- /],
    ['lint', /^Unknown argument '--nonsense'\.\n\nnpm run lint takes no arguments\./],
    ['test:deep', /^Unknown argument '--nonsense'\.\n\nnpm run test:deep takes no arguments\./],
  ] as const) {
    const { status, stderr } = run('scripts/run.mjs', task, '--nonsense');
    assert.match(stderr, said);
    assert.equal(status, 2);
  }
  const { status, stdout, stderr } = run('scripts/run.mjs', 'setup', '--help');
  assert.match(stdout, /^npm run setup \[-- .*--kubernetes/s);
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(run('scripts/format.mjs', '--chek').stderr, /^Unknown argument '--chek'\./);
});

test('faces:sheet names the file that it cannot read', () => {
  const { status, stderr } = run('scripts/faces-sheet.ts', 'nobody.jpg');
  assert.match(stderr, /^Cannot read nobody\.jpg: ENOENT/);
  assert.equal(status, 2);
});
