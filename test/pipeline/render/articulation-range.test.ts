// How far a face moves for what the speech model gives.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ARTICULATION_SIZE, ARTICULATOR_INDEX } from '../../../src/media/articulation.ts';
import { stretchRange } from '../../../src/pipeline/render/articulation-range.ts';

const shown = (channel: number, value: number): number => {
  const articulation = new Float32Array(ARTICULATION_SIZE);
  articulation[channel] = value;
  stretchRange(articulation);
  return articulation[channel] ?? Number.NaN;
};
const { jaw, open, round, wide, tuck, press } = ARTICULATOR_INDEX;

test.each([jaw, open, round, wide, tuck])(
  'channel %i: rest stays rest, and more is never less',
  (channel) => {
    assert.equal(shown(channel, 0), 0);
    let before = 0;
    for (let value = 0.01; value <= 1.001; value += 0.01) {
      const now = shown(channel, value);
      assert.ok(now > before && now <= 1, `${now} after ${before} at ${value}`);
      before = now;
    }
    assert.ok(shown(channel, 1.2) === shown(channel, 1));
  },
);

test('the middle of what is given is told apart more than its extremes', () => {
  // The median, the ninth decile and the largest values of speech (700 recordings).
  for (const [channel, median, high, most] of [
    [open, 0.3, 0.47, 0.7],
    [jaw, 0.22, 0.42, 0.65],
    [round, 0.35, 0.5, 0.8],
  ] as const) {
    const [a, b, c] = [median, high, most].map((value) => shown(channel, value)) as [
      number,
      number,
      number,
    ];
    const middle = (b - a) / (high - median);
    const end = (c - b) / (most - high);
    assert.ok(middle > 1.25 * end, `channel ${channel}: ${middle} and ${end}`);
  }
});

test('lips that press do so in full', () => {
  assert.equal(shown(press, 1), 1);
});
