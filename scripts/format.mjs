// Formats all sources, each language with its own formatter. All are pinned in package-lock.json:
// oxfmt (TypeScript, JavaScript, JSON, YAML, CSS, HTML), clang-format (C++), Ruff (Python).
//   node scripts/format.mjs            formats the files in place
//   node scripts/format.mjs --check    lists unformatted files; exit code 1 when there are any
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';

const ROOT = path.resolve(import.meta.dirname, '..');
const [option, ...others] = process.argv.slice(2);
const isCheck = option === '--check';
if ((option !== undefined && !isCheck) || others.length > 0) {
  console.error(
    `Unknown argument '${isCheck ? others[0] : option}'.\n\nnpm run format [-- --check]`,
  );
  process.exit(2);
}
const require = createRequire(import.meta.url);

/** Options of Ruff. The rules are for what is shipped; files of training keep to fewer. */
const RUFF = {
  'line-length': 100,
  'indent-width': 4,
  'target-version': 'py310',
  format: { 'quote-style': 'single' },
  lint: { select: ['E4', 'E7', 'E9', 'F', 'I', 'UP', 'B', 'SIM', 'RET', 'ASYNC', 'C4', 'RUF'] },
};
const SHIPPED_PYTHON = /^(?:clients|examples)\//;

/** Files with one of these endings that git tracks, or would add. */
function sources(...endings) {
  const patterns = endings.map((ending) => `*.${ending}`);
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...patterns];
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean);
}

/** Runs a formatter. @returns whether it succeeded */
function run(label, command, args) {
  const { status } = spawnSync(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) {
    console.error(`${label}: some files are not formatted. Run: npm run format`);
  }
  return status === 0;
}

const oxfmt = () =>
  run('oxfmt', process.execPath, ['node_modules/oxfmt/bin/oxfmt', isCheck ? '--check' : '--write']);

function clangFormat() {
  const binary = require.resolve(`clang-format-node/bin/cfn-linux-${process.arch}/clang-format`);
  const mode = isCheck ? ['--dry-run', '--Werror'] : ['-i'];
  return run('clang-format', binary, [...mode, ...sources('cc', 'h')]);
}

/** Ruff runs as WebAssembly, so Python is not needed. It formats, and lints what is shipped. */
function ruff() {
  const { Workspace, PositionEncoding } = require('@astral-sh/ruff-wasm-nodejs');
  const workspace = new Workspace(RUFF, PositionEncoding.Utf16);
  const wrong = sources('py').filter((file) => {
    const text = readFileSync(path.join(ROOT, file), 'utf8');
    const formatted = workspace.format(text);
    if (formatted === text) {
      return false;
    }
    if (!isCheck) {
      writeFileSync(path.join(ROOT, file), formatted);
    }
    return isCheck;
  });
  for (const file of wrong) {
    console.error(`${file}: not formatted. Run: npm run format`);
  }
  const found = sources('py')
    .filter((file) => SHIPPED_PYTHON.test(file))
    .flatMap((file) =>
      workspace
        .check(readFileSync(path.join(ROOT, file), 'utf8'))
        .map(({ start_location: { row }, code, message }) => `${file}:${row} ${code} ${message}`),
    );
  for (const line of found) {
    console.error(line);
  }
  return wrong.length === 0 && found.length === 0;
}

// oxfmt changes its own output once more in a few files, so run it twice.
const results = [oxfmt(), isCheck || oxfmt(), clangFormat(), ruff()];
process.exit(results.every(Boolean) ? 0 : 1);
