// The viseme of an articulation: what each sound of the renderer's sheet is taken for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { VISEMES, visemeOf } from '../../src/media/visemes.ts';
import { articulationOf, VISEMES as SHAPES } from '../../src/pipeline/render/visemes.ts';

test('mouth shapes are taken for the visemes of their sounds, most also when they are weak', () => {
  const expected = {
    rest: 'sil',
    aa: 'aa',
    ee: 'I',
    eh: 'E',
    oo: 'U',
    oh: 'O',
    m: 'PP',
    f: 'FF',
    th: 'TH',
    l: 'nn',
    s: 'SS',
    sh: 'CH',
    k: 'kk',
  } as const;
  const named = (amount: number) =>
    Object.fromEntries(
      Object.entries(SHAPES).map(([name, shape]) => [
        name,
        visemeOf(articulationOf(shape, amount)),
      ]),
    );
  assert.deepEqual(named(1), expected);
  assert.equal(VISEMES.length, 15);
  const weak = named(0.6);
  for (const name of ['m', 'f', 's'] as const) {
    assert.equal(weak[name], expected[name], name);
  }
});
