// Every regular expression of the program takes linear time: runs the rule of scripts/lint on all
// code and on samples.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

interface Finding {
  readonly message: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

/** `file:line: message` of each finding in files below these folders. */
function findings(...folders: readonly string[]): {
  readonly lines: string[];
  readonly files: number;
} {
  const config = path.join(root, 'scripts/lint/regexps.oxlintrc.json');
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      path.join(root, 'node_modules/oxlint/bin/oxlint'),
      '-c',
      config,
      '--disable-nested-config',
      '--format=json',
      ...folders,
    ],
    { cwd: root, encoding: 'utf8' },
  );
  assert.ok(stdout.startsWith('{'), `the linter did not run: ${stdout}${stderr}`);
  const { diagnostics, number_of_files } = JSON.parse(stdout) as {
    diagnostics: Finding[];
    number_of_files: number;
  };
  return {
    lines: diagnostics.map(
      ({ message, filename, labels }) => `${filename}:${labels[0]?.span.line}: ${message}`,
    ),
    files: number_of_files,
  };
}

test('every regular expression of the program takes linear time', () => {
  const { lines, files } = findings('src', 'scripts', 'bench', 'grafana');
  assert.deepEqual(lines, []);
  assert.ok(files > 200, `only ${files} files were looked at`);
});

test('the rule finds slow expressions anywhere, and expressions that it cannot analyse', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-lint-'));
  const slow = [
    String.raw`export const a = /^[\w+/\-\s]*={0,2}\s*$/;`,
    String.raw`export const b = 'x'.replace(/\s+$/, '');`,
    String.raw`export const c = z.string().regex(/^(a+)+$/);`,
    String.raw`export const d = new RegExp('(x*)*y');`,
    String.raw`export const e = RegExp('^' + process.argv[2]);`,
    String.raw`export const f: RegExp = /a.*b.*c/u;`,
  ];
  const fast = [
    String.raw`export const g = /^\d{1,5}(\/\d+)?$/;`,
    String.raw`export const h = 'x'.split(/\s+/);`,
    String.raw`export const i = /[^\w+/\s-]/;`,
    String.raw`export const j = /(?<!\/)\/+$/;`,
    String.raw`export const k = new RegExp('^a+$', 'u');`,
  ];
  try {
    writeFileSync(path.join(folder, 'slow.ts'), `import { z } from 'zod';\n${slow.join('\n')}\n`);
    writeFileSync(path.join(folder, 'fast.ts'), `${fast.join('\n')}\n`);
    const { lines } = findings(folder);
    const places = lines
      .map((line) => /(\w+\.ts:\d+):/.exec(line)?.[1] ?? line)
      .toSorted((a, b) => a.localeCompare(b));
    assert.deepEqual(
      places,
      slow.map((_text, index) => `slow.ts:${index + 2}`),
      lines.join('\n'),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
