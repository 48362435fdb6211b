// One fuzz target in a process of its own: node run-target.ts TARGET [libFuzzer's options and
// folders]. Started by test/fuzz/main.ts.
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { engine, words } from './load-hook.ts';
import { check, checkNow, DEFAULT_MAX_BYTES, type FuzzTarget } from './target.ts';

const [name = '', ...options] = process.argv.slice(2);
const { target } = (await import(`../targets/${name}.ts`)) as { target: FuzzTarget };

/** libFuzzer's dictionary: one quoted word a line, bytes outside of plain ASCII as \xHH. */
function writeDictionary(): string {
  const escape = (word: string): string =>
    [...Buffer.from(word, 'latin1')]
      .map((byte) =>
        byte < 32 || byte > 126 || byte === 34 || byte === 92
          ? `\\x${byte.toString(16).padStart(2, '0')}`
          : String.fromCharCode(byte),
      )
      .join('');
  const file = path.join(os.tmpdir(), `fuzz-${name}-${process.pid}.dict`);
  writeFileSync(
    file,
    [...new Set([...words, ...(target.words ?? [])])].map((word) => `"${escape(word)}"\n`).join(''),
  );
  return file;
}

// What a target waits for (decoders that compile themselves, lazy imports) is loaded here, outside
// of what is timed. Also tells which kind it is.
const first = target.run(Buffer.alloc(0));
const isAsync = first instanceof Promise;
await first;

const fail = (error: unknown): void => {
  console.error(error);
};
const dictionary = writeDictionary();
let isDictionaryRead = false;
/** libFuzzer has read its dictionary before it runs the first input. */
const removeDictionary = (): void => {
  if (!isDictionaryRead) {
    rmSync(dictionary, { force: true });
  }
  isDictionaryRead = true;
};
const runNow = (data: Buffer): void => {
  removeDictionary();
  try {
    checkNow(target, data);
  } catch (error) {
    fail(error);
    throw error;
  }
};
const runLater = (data: Buffer): void => {
  removeDictionary();
  check(target, data).then(
    () => {
      engine.done(true);
    },
    (error: unknown) => {
      fail(error);
      engine.done(false);
    },
  );
};

// libFuzzer starts this process again for merging: the command line stands in place of the
// program's name.
const command = [process.execPath, ...process.execArgv, import.meta.filename, name].join(' ');
engine.start(
  isAsync ? runLater : runNow,
  [command, `-dict=${dictionary}`, `-max_len=${target.maxBytes ?? DEFAULT_MAX_BYTES}`, ...options],
  isAsync,
);
if (isAsync) {
  setInterval(() => {
    /* libFuzzer's thread ends the process */
  }, 60_000);
}
