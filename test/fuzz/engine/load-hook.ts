// Instruments the project's modules as they are loaded. To be imported before any of them.
import { createRequire, registerHooks, stripTypeScriptTypes } from 'node:module';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { instrument } from './instrument.ts';

const ROOT = path.join(import.meta.dirname, '../../..');
const SOURCES = path.join(ROOT, 'src') + path.sep;

export interface Engine {
  /** Takes libFuzzer's command line: `args[0]` starts this process again. */
  start(args: readonly string[]): void;
  /** @returns libFuzzer's next input; ends the process after the last one */
  next(): Buffer;
  counters(count: number): Uint8Array;
}

export const engine = createRequire(import.meta.url)(
  path.join(ROOT, 'native/build/memory/fuzz_engine.node'),
) as Engine;

/** Words of all instrumented modules, for libFuzzer's dictionary. */
export const words = new Set<string>();

Object.assign(globalThis, { __fuzzCounters: (count: number) => engine.counters(count) });

registerHooks({
  load(url, context, next) {
    const file = url.startsWith('file:') ? fileURLToPath(url) : '';
    if (!file.startsWith(SOURCES) || !file.endsWith('.ts')) {
      return next(url, context);
    }
    const instrumented = instrument(stripTypeScriptTypes(readFileSync(file, 'utf8')));
    for (const word of instrumented.words) {
      words.add(word);
    }
    return { format: 'module', source: instrumented.code, shortCircuit: true };
  },
});
