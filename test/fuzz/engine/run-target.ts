// One fuzz target in a process of its own: node run-target.ts TARGET [libFuzzer's options and
// folders]. Started by test/fuzz/main.ts.
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setImmediate } from 'node:timers/promises';
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

/**
 * How long synchronous inputs may follow each other without a turn of the event loop. Node frees
 * what native objects own, once they are collected, in such a turn only.
 */
const MAX_LOOP_MS = 20;

// libFuzzer starts this process again for merging: the command line stands in place of the
// program's name.
const command = [process.execPath, ...process.execArgv, import.meta.filename, name].join(' ');
const dictionary = writeDictionary();
engine.start([
  command,
  `-dict=${dictionary}`,
  `-max_len=${target.maxBytes ?? DEFAULT_MAX_BYTES}`,
  ...options,
]);
// Keeps the process while a target waits. libFuzzer ends it.
setInterval(() => {}, 60_000);
let turnedMs = performance.now();
let data = engine.next();
// libFuzzer reads its dictionary before the first input.
rmSync(dictionary, { force: true });
try {
  for (;;) {
    if (isAsync) {
      await check(target, data);
    } else {
      checkNow(target, data);
    }
    const nowMs = performance.now();
    if (nowMs - turnedMs >= MAX_LOOP_MS) {
      await setImmediate();
      turnedMs = performance.now();
    }
    data = engine.next();
  }
} catch (error) {
  console.error(error);
  process.abort(); // libFuzzer stores the input when it gets SIGABRT
}
