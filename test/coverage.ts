// `npm run coverage`: runs the unit tests and scenarios, and prints the lines covered in each
// folder of src.
//
// Node itself counts (NODE_V8_COVERAGE), in every process and thread that the tests start: servers,
// media workers, job threads. Node runs TypeScript by overwriting types with spaces, so the offsets
// that V8 reports are those of the source files.
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'acorn';

const ROOT = path.resolve(import.meta.dirname, '..');
const OUT = path.join(ROOT, 'test/out/coverage');
const RAW = path.join(OUT, 'raw');

/** One script of a coverage file, as the inspector protocol has it (Profiler.ScriptCoverage). */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly { startOffset: number; endOffset: number; count: number }[];
  }[];
}

/** Offsets of a source file that are code, and those of them that ran in some process. */
interface SourceFile {
  readonly source: string;
  /** 1 where a character is code: neither a type, nor a comment, nor a bracket. */
  readonly isCode: Uint8Array;
  readonly ran: Uint8Array;
}

function readSource(file: string): SourceFile {
  const source = readFileSync(file, 'utf8');
  const code = stripTypeScriptTypes(source);
  const isCode = Uint8Array.from(code, (letter) => (/[\w'"`]/.test(letter) ? 1 : 0));
  parse(code, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    onComment: (_isBlock, _text, start, end) => isCode.fill(0, start, end),
  });
  return { source, isCode, ran: new Uint8Array(source.length) };
}

/** Marks what ran in one thread. An inner range overrules the outer one that it lies in. */
function addThread({ source, ran }: SourceFile, { functions }: ScriptCoverage): void {
  const here = new Uint8Array(source.length);
  const ranges = functions.flatMap((one) => one.ranges);
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of ranges) {
    here.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  }
  for (let at = 0; at < ran.length; at++) {
    ran[at]! |= here[at]!;
  }
}

/** Lines with code, and those of them in which some code ran. */
function linesOf({ source, isCode, ran }: SourceFile): { lines: number; covered: number } {
  let [lines, covered, start] = [0, 0, 0];
  for (const line of source.split('\n')) {
    let [hasCode, hasRun] = [false, false];
    for (let at = start; at < start + line.length; at++) {
      hasCode ||= isCode[at] === 1;
      hasRun ||= isCode[at] === 1 && ran[at] === 1;
    }
    lines += Number(hasCode);
    covered += Number(hasRun);
    start += line.length + 1;
  }
  return { lines, covered };
}

/** `src/front/http/x.ts` -> `front/http`; a file that lies in src itself -> `.` */
const folderOf = (file: string): string =>
  path
    .dirname(path.relative(path.join(ROOT, 'src'), file))
    .split('/')
    .slice(0, 2)
    .join('/');

function report(): void {
  const sources = new Map(
    globSync('src/**/*.ts', { cwd: ROOT }).map((file) => {
      const absolute = path.join(ROOT, file);
      return [absolute, readSource(absolute)];
    }),
  );
  let threads = 0;
  for (const name of readdirSync(RAW)) {
    const { result } = JSON.parse(readFileSync(path.join(RAW, name), 'utf8')) as {
      result: ScriptCoverage[];
    };
    threads++;
    for (const script of result) {
      if (script.url.startsWith('file://')) {
        // vitest adds a query to the test files that it imports.
        const source = sources.get(fileURLToPath(script.url).replace(/\?.*$/, ''));
        if (source !== undefined) {
          addThread(source, script);
        }
      }
    }
  }
  const folders = new Map<string, { lines: number; covered: number }>();
  const files: Record<string, string> = {};
  for (const [file, source] of [...sources].sort(([a], [b]) => a.localeCompare(b))) {
    const { lines, covered } = linesOf(source);
    files[path.relative(ROOT, file)] = `${covered}/${lines}`;
    for (const name of [folderOf(file), 'all']) {
      const sum = folders.get(name) ?? { lines: 0, covered: 0 };
      folders.set(name, { lines: sum.lines + lines, covered: sum.covered + covered });
    }
  }
  const rows = [...folders].map(([name, { lines, covered }]) => {
    const share = ((100 * covered) / Math.max(1, lines)).toFixed(1);
    return `| \`${name === 'all' ? 'src' : `src/${name}`}\` | ${lines} | ${share} % |`;
  });
  const table = ['| Folder | Lines of code | Covered |', '| --- | ---: | ---: |', ...rows.sort()];
  console.log(`\n${table.join('\n')}\n\n${threads} processes and threads`);
  writeFileSync(path.join(OUT, 'lines.json'), `${JSON.stringify(files, null, 1)}\n`);
}

rmSync(OUT, { recursive: true, force: true });
mkdirSync(RAW, { recursive: true });
const args = process.argv.slice(2);
const projects =
  args.length > 0
    ? args
    : ['unit', 'jobs', 'waiting', 'functional', 'scenarios', 'alone', 'deep'].flatMap((name) => [
        '--project',
        name,
      ]);
const { status } = spawnSync(
  process.execPath,
  [path.join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', ...projects],
  { cwd: ROOT, env: { ...process.env, NODE_V8_COVERAGE: RAW }, stdio: 'inherit' },
);
report();
rmSync(RAW, { recursive: true });
process.exitCode = status ?? 1;
