// Documents and code say the same: links, headings, npm scripts and files that any Markdown file
// names exist. (Settings are compared in config.test.ts, endpoints in front/api/openapi.test.ts,
// bounds in ops/limits.test.ts.)
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { ERRORS } from '../src/base/errors.ts';
import { CATALOGUE } from '../src/metrics/catalogue.ts';

const ROOT = path.resolve(import.meta.dirname, '..');

/** Folders that are not ours, or made by a run. */
const SKIPPED = new Set(['node_modules', '.git', '.setup', 'data', 'build', 'out', 'work']);

/** Files and folders of the repository, as documents name them. */
const NAMED_PATH =
  /^(?:src|test|bench|scripts|native|grafana|models|docs|deploy|\.github)\/[\w./-]+$/;

/** The map names sources from where it lies. */
const SOURCE = /^[\w-]+\/[\w./-]+\.ts$/;

/** Made by the set-up or by a run, so not there in a fresh checkout; or the pattern of a name. */
const NOT_A_FILE =
  /^(?:models|native)\/build\/|^(?:bench|test)\/out\/|^scripts\/toolchain\/node_modules\/|NAME|TARGET/;

function markdownFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      return SKIPPED.has(entry.name) ? [] : markdownFiles(file);
    }
    return entry.name.endsWith('.md') ? [file] : [];
  });
}

interface Document {
  readonly name: string;
  readonly folder: string;
  readonly text: string;
  /** Without what stands in fences and in inline code, where no link is one. */
  readonly prose: string;
}

const documents: readonly Document[] = markdownFiles(ROOT).map((file) => {
  const text = readFileSync(file, 'utf8');
  const withoutFences = text.replaceAll(/^\s*```[\s\S]*?^\s*```/gm, '');
  return {
    name: path.relative(ROOT, file),
    folder: path.dirname(file),
    text,
    prose: withoutFences.replaceAll(/`[^`\n]*`/g, 'code'),
  };
});

/** How GitHub turns a heading into the id that links name. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');

const headingsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) =>
    slugOf(heading!),
  );

test('the documents that people look for are there', () => {
  const names = documents.map(({ name }) => name);
  for (const name of ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']) {
    assert.ok(names.includes(name), name);
  }
  assert.ok(documents.length > 40, `only ${documents.length} documents were read`);
});

test('every relative link leads to a file, and to a heading in it', () => {
  const broken: string[] = [];
  for (const { name, folder, prose } of documents) {
    for (const [, target] of prose.matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)) {
      const [file, heading] = target!.split('#') as [string, string?];
      const resolved = file === '' ? path.join(ROOT, name) : path.join(folder, file);
      const isThere =
        existsSync(resolved) &&
        (heading === undefined || headingsOf(resolved).includes(heading.toLowerCase()));
      if (!isThere) {
        broken.push(`${name}: ${target}`);
      }
    }
  }
  assert.deepEqual(broken, []);
});

test('every decision is in the index, and has the parts that the index promises', () => {
  const records = documents.filter(({ name }) => /^docs\/decisions\/\d{4}-/.test(name));
  const index = documents.find(({ name }) => name === 'docs/decisions/README.md')!;
  for (const { name, text } of records) {
    assert.ok(index.text.includes(`(${path.basename(name)})`), `${name} is not in the index`);
    const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(
      headings,
      ['Context', 'Decision', 'Consequences', 'How to measure again'],
      `${name}: headings`,
    );
  }
});

test('every npm script that a document names exists', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const unknown = documents.flatMap(({ name, text }) =>
    [...text.matchAll(/npm run (?:-\w+ |--\w+ )*([\w:]+)/g)]
      .filter(([, script]) => !Object.hasOwn(scripts, script!))
      .map(([, script]) => `${name}: npm run ${script}`),
  );
  assert.deepEqual(unknown, []);
});

test('every file and folder that a document names in code style exists', () => {
  const missing = documents.flatMap(({ name, folder, text }) =>
    [...text.matchAll(/`([^`\n]+)`/g)]
      .map(([, code]) => code!)
      .filter((code) => NAMED_PATH.test(code) || (name === 'src/README.md' && SOURCE.test(code)))
      .filter((code) => !NOT_A_FILE.test(code))
      // native/README.md and others name files from where they lie
      .filter((code) => !existsSync(path.join(ROOT, code)) && !existsSync(path.join(folder, code)))
      .map((code) => `${name}: ${code}`),
  );
  assert.deepEqual(missing, []);
});

test('every bench scenario that a document names exists', () => {
  const scenarios = readdirSync(path.join(ROOT, 'bench/scenarios')).map((file) =>
    file.slice(0, -3),
  );
  const unknown = documents.flatMap(({ name, text }) =>
    [...text.matchAll(/npm run bench -- ([a-z]\w*)/g)]
      .filter(([, scenario]) => scenario !== 'merge' && !scenarios.includes(scenario!))
      .map(([, scenario]) => `${name}: npm run bench -- ${scenario}`),
  );
  assert.deepEqual(unknown, []);
});

test('every metric that a document names exists', () => {
  const unknown = documents.flatMap(({ name, text }) =>
    [...text.matchAll(/\bmouthpiece_\w+/g)]
      .map(([metric]) => metric)
      .filter((metric) => !(metric in CATALOGUE))
      .filter((metric) => !(metric.replace(/_(?:bucket|sum|count)$/, '') in CATALOGUE))
      .map((metric) => `${name}: ${metric}`),
  );
  assert.deepEqual(unknown, []);
});
test('every error code that a document names exists', () => {
  const unknown = documents.flatMap(({ name, text }) =>
    [...text.matchAll(/\bERROR ([A-Z][A-Z_]+)/g)]
      .filter(([, code]) => !Object.hasOwn(ERRORS, code!))
      .map(([, code]) => `${name}: ${code}`),
  );
  assert.deepEqual(unknown, []);
});

test('lines of prose have at most 100 columns', () => {
  const long = documents.flatMap(({ name, text }) =>
    text
      .replaceAll(/^\s*```[\s\S]*?^\s*```/gm, (fence) => '\n'.repeat(fence.split('\n').length - 1))
      .split('\n')
      // A row of a table may be longer, and so may a link or a command that cannot be broken.
      .flatMap((line, index) =>
        line.length > 100 && !/^\s*(?:\||<!--|!?\[|\S+$|`[^`]+`\S?$)/.test(line)
          ? [`${name}:${index + 1} has ${line.length}`]
          : [],
      ),
  );
  assert.deepEqual(long, []);
});
