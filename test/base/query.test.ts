// The query of a URL: what URLSearchParams makes of it, in a short time for any text.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseQuery, queryOf } from '../../src/base/query.ts';
import { native } from '../../src/native/addon.ts';
import { isWithin } from '../harness/machine.ts';

/** As long as the head of a request may be. */
const LONGEST = 16_384;

test('a query is parsed as URLSearchParams does', () => {
  const pieces = ['a', '=', '&', '+', '%', '%4', '%41', '%c3%a9', '%ff', '%e2%82', '%zz', '%00'];
  let seed = 1;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  for (let round = 0; round < 5000; round++) {
    const text = Array.from({ length: next(12) }, () => pieces[next(pieces.length)]!).join('');
    // A leading question mark is not part of the query here.
    assert.deepEqual(parseQuery(text), [...new URLSearchParams(text)], text);
  }
  assert.deepEqual(parseQuery('ü=😀%ff'), [['ü', '😀\ufffd']]);
  assert.equal(queryOf('a=1&a=2').get('a'), '1');
  assert.equal(queryOf('a=1').get('b') ?? undefined, undefined);
});

test('no query takes more than a few milliseconds', () => {
  for (const piece of ['%ff&', '%ff=%ff&', 'a&', '%', '%41', '%c3', '+', '=', '&']) {
    const text = piece.repeat(LONGEST / piece.length);
    let tookMs = Infinity;
    for (let run = 0; run < 10; run++) {
      const startMs = native.threadCpuMs();
      parseQuery(text);
      tookMs = Math.min(tookMs, native.threadCpuMs() - startMs);
    }
    assert.ok(isWithin(tookMs, 5), `${piece}: ${tookMs.toFixed(1)} ms`);
  }
});
