// The instrumentation changes nothing but the counters.
import assert from 'node:assert/strict';
import { stripTypeScriptTypes } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { instrument } from './engine/instrument.ts';
import { ROOT } from './catalogue.ts';

/** Evaluates `body` with counters. @returns what it returns, and which counters moved */
async function run(body: string): Promise<{ result: unknown; hit: number[] }> {
  const { code } = instrument(`export const f = ${body};`);
  let counters = new Uint8Array(0);
  Object.assign(globalThis, {
    __fuzzCounters: (count: number) => {
      counters = new Uint8Array(count);
      return counters;
    },
  });
  const { f } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
    f: (...args: unknown[]) => unknown;
  };
  const result = f();
  return {
    result,
    hit: [...counters.entries()].filter(([, hits]) => hits > 0).map(([index]) => index),
  };
}

test('each branch has a counter of its own', async () => {
  assert.deepEqual(await run('() => 1'), { result: 1, hit: [0] });
  assert.deepEqual(await run('() => { if (0) return 1; return 2; }'), { result: 2, hit: [0, 2] });
  assert.deepEqual(await run('() => { if (1) return 1; else if (2) return 2; }'), {
    result: 1,
    hit: [0, 1],
  });
  assert.deepEqual(await run('() => false ? 1 : 2'), { result: 2, hit: [0, 2] });
  assert.deepEqual(await run('() => null ?? (0 || 3)'), { result: 3, hit: [0, 1, 2] });
  assert.deepEqual(
    await run('() => { for (const x of [1]) if (x) continue; while (0); return 4; }'),
    {
      result: 4,
      hit: [0, 1, 2],
    },
  );
  assert.deepEqual(
    await run(
      '() => { switch (5) { case 1: return 1; case 5: { let y = 6; return y; } default: ' +
        'return 7; } }',
    ),
    { result: 6, hit: [0, 2] },
  );
  assert.deepEqual(await run('() => { try { throw 1; } catch { return 8; } }'), {
    result: 8,
    hit: [0, 1],
  });
  assert.deepEqual(await run('() => ({ a: [() => ({ b: 9 })] }).a[0]().b'), {
    result: 9,
    hit: [0, 1],
  });
  assert.deepEqual(await run('() => { do if (0) ; while (0); return 10; }'), {
    result: 10,
    hit: [0, 1, 3],
  });
});

test('strings and numbers become words', () => {
  const { words } = instrument(
    "import 'node:fs'; export const magic = 0x2112a442; export const word = 'OggS'; export " +
      'const small = 7;',
  );
  assert.deepEqual(words, ['\x21\x12\xa4\x42', '\x42\xa4\x12\x21', String(0x2112a442), 'OggS']);
});

test('every module of the server can be instrumented, and its lines stay where they are', () => {
  for (const name of readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) {
      continue;
    }
    const source = stripTypeScriptTypes(readFileSync(path.join(ROOT, 'src', name), 'utf8'));
    const { code } = instrument(source);
    assert.equal(code.split('\n').length, source.split('\n').length, name);
    assert.doesNotThrow(() => instrument(code), name); // what comes out is JavaScript
  }
});
