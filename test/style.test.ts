// What the formatter and the linter cannot hold: line lengths, private members, increments, file names,
// docstrings.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '..');
const MAX_COLUMNS = 110;
/** The aim is 400. */
const MAX_LINES = 440;

/** Files whose long lines are data. */
const DATA_FILES = [
  /^native\/third_party\//, // other projects' sources
  /^test\/.*offers\.ts$/, // SDP as browsers send it
  /^test\/fuzz\/corpus\//,
  /^test\/jobs\/face\/portraits\.ts/, // SVG paths
  /^test\/webrtc\/ice\/stun\.test\.ts/, // the messages of RFC 5769 in hexadecimal
  /^models\/training\/card\.py/, // a Markdown template: its lines are those of MODEL_CARD.md
];
/** A line that cannot be broken: an address, a regular expression, a hash, or a literal without a space. */
const UNBREAKABLE = [
  /^\s*\/\^.*\/[a-z]*[,;]?$/,
  /https?:\/\/\S{40,}/,
  /\/\S{60,}\/[a-z]*/,
  /\S{90,}/,
];

const TRACKED = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '');

interface Line {
  readonly at: string;
  readonly text: string;
}

const linesOf = (file: string): Line[] =>
  readFileSync(path.join(ROOT, file), 'utf8')
    .split('\n')
    .map((text, index) => ({ at: `${file}:${index + 1}`, text }));

/** Every line of the tracked files that match. */
const linesIn = (files: RegExp): Line[] =>
  TRACKED.filter((file) => files.test(file)).flatMap((file) => linesOf(file));

const OURS = /^(?:src|bench|test)\/.*\.(?:ts|js|mjs)$/;

test('members are #private', () => {
  const found = linesIn(OURS).filter(({ text }) => /^\s+private (?!constructor\b)/.test(text));
  assert.deepEqual(
    found.map(({ at }) => at),
    [],
  );
});

test('counters use ++ and --', () => {
  const found = linesIn(OURS).filter(({ text }) => /^\s*[\w.#[\]!]+ [+-]= 1;/.test(text));
  assert.deepEqual(
    found.map(({ at }) => at),
    [],
  );
});

test('no file is named common', () => {
  assert.deepEqual(
    TRACKED.filter((file) => /(?:^|\/)common\.\w+$/.test(file)),
    [],
  );
});

test('lines have at most 110 columns', () => {
  const long = linesIn(/\.(?:ts|mjs|js|cc|h|py|css)$/).filter(
    ({ at, text }) =>
      text.length > MAX_COLUMNS &&
      !DATA_FILES.some((file) => file.test(at)) &&
      !UNBREAKABLE.some((pattern) => pattern.test(text)),
  );
  assert.deepEqual(
    long.map(({ at, text }) => `${at} (${text.length})`),
    [],
  );
});

test('files have about 400 lines at most', () => {
  const long = TRACKED.filter(
    (file) =>
      /^(?:src|bench|test)\/.*\.ts$/.test(file) &&
      !DATA_FILES.some((data) => data.test(file)) &&
      linesOf(file).length > MAX_LINES,
  );
  assert.deepEqual(long, []);
});

test('what src exports has a docstring', () => {
  const missing = TRACKED.filter((file) => /^src\/.*\.ts$/.test(file)).flatMap((file) => {
    const lines = linesOf(file);
    return lines.filter(
      ({ text }, index) =>
        /^export (?:default )?(?:async )?(?:function\*?|(?:abstract )?class|interface) /.test(
          text,
        ) && !/\*\/\s*$/.test(lines[index - 1]?.text ?? ''),
    );
  });
  assert.deepEqual(
    missing.map(({ at, text }) => `${at} ${text}`),
    [],
  );
});
