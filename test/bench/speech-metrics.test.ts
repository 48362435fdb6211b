// The figures of the speech evaluation mean what they say: closures found and missed, lag of either
// sign, motion.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  correlation,
  correlations,
  lagMs,
  motion,
  onsetLagMs,
  predictedClosures,
  scoreClosures,
  timeOf,
  type Track,
} from '../../bench/speech-metrics.ts';
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  type Articulator,
} from '../../src/media/articulation.ts';

const LOOKAHEAD_MS = 60;

/** A track of `values` in one channel; the reference is the same values `delay` frames earlier. */
function track(
  channel: Articulator,
  values: readonly number[],
  delay = 0,
  closures: [number, number][] = [],
): Track {
  const at = (k: number): number => values[k] ?? 0;
  const frame = (value: number): Float32Array => {
    const out = new Float32Array(ARTICULATION_SIZE);
    out[ARTICULATOR_INDEX[channel]] = value;
    return out;
  };
  return {
    predicted: values.map((_, k) => frame(at(k - delay))),
    reference: values.map((_, k) => [...frame(at(k))]),
    closures,
  };
}

const wave = Array.from(
  { length: 120 },
  (_, k) => 0.5 + 0.3 * Math.sin(k * 0.7) + 0.2 * Math.sin(k * 0.23),
);

test('correlation is 1 for a scaled copy, -1 for a mirrored one, 0 for a constant', () => {
  assert.ok(
    Math.abs(
      correlation(
        wave,
        wave.map((x) => 3 * x + 1),
      ) - 1,
    ) < 1e-9,
  );
  assert.ok(
    Math.abs(
      correlation(
        wave,
        wave.map((x) => -x),
      ) + 1,
    ) < 1e-9,
  );
  assert.equal(
    correlation(
      wave,
      wave.map(() => 1),
    ),
    0,
  );
  assert.ok(correlations([track('open', wave)])['open']! > 0.999);
});

test('a mouth that is two frames late, or one early, is measured as such', () => {
  assert.ok(Math.abs(lagMs([track('open', wave, 2)]) - 66.7) < 4);
  assert.ok(Math.abs(lagMs([track('open', wave, -1)]) + 33.3) < 4);
  assert.ok(Math.abs(lagMs([track('open', wave, 0)])) < 4);
  const onset = [0, 0, 0, 0, 0, 0.3, 0.6, 0.5, 0.2, 0, 0, 0];
  assert.equal(Math.round(onsetLagMs([track('open', onset, 2)])), 67);
});

test('a closure is the weighted middle of a run of pressed frames', () => {
  const values = [0, 0, 0.6, 1, 0.6, 0, 0.49, 0, 0.9, 0.9];
  const middles = predictedClosures(track('press', values), LOOKAHEAD_MS);
  assert.equal(middles.length, 2);
  assert.ok(Math.abs(middles[0]! - timeOf(3, LOOKAHEAD_MS)) < 1e-6);
  assert.ok(Math.abs(middles[1]! - (timeOf(8, LOOKAHEAD_MS) + timeOf(9, LOOKAHEAD_MS)) / 2) < 1e-6);
});

test('closures within 40 ms of their interval count, each once; others are misses or false finds', () => {
  const values = Array.from({ length: 40 }, (_, k) => (k === 10 || k === 20 || k === 30 ? 1 : 0));
  const at = (k: number): number => timeOf(k, LOOKAHEAD_MS);
  const hit = scoreClosures(
    [
      track('press', values, 0, [
        [at(10) - 0.02, at(10) + 0.02],
        [at(20) + 0.039, at(20) + 0.1],
        [at(30) - 0.2, at(30) - 0.045],
      ]),
    ],
    LOOKAHEAD_MS,
  );
  assert.deepEqual([hit.reference, hit.predicted], [3, 3]);
  assert.ok(Math.abs(hit.recall - 2 / 3) < 1e-9 && Math.abs(hit.precision - 2 / 3) < 1e-9);
  const twice = scoreClosures(
    [
      track('press', values, 0, [
        [at(10), at(10) + 0.02],
        [at(10) + 0.02, at(10) + 0.05],
      ]),
    ],
    LOOKAHEAD_MS,
  );
  assert.equal(twice.recall, 0.5);
});

test(
  'motion is the largest mouth channel and the share of frames that move; brow, nod and ' +
    'speech do not count',
  () => {
    assert.deepEqual(motion([track('jaw', [0, 0, 0.2, 0.04])]), {
      peak: Math.fround(0.2),
      moving: 0.25,
    });
    assert.deepEqual(motion([track('brow', [1, 1, 1, 1])]), { peak: 0, moving: 0 });
  },
);
