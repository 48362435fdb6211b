// A queue that overflows, told from random loss, jitter and long paths.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { DelayDetector } from '../../../src/webrtc/congestion/delay-detector.ts';

test('a queue that overflows is told from random loss, from jitter and from long paths', () => {
  const detector = new DelayDetector();
  const burst = (fromMs: number): void => {
    for (let n = 0; n < 6; n++) {
      detector.onFirstNack(60, fromMs + n * 20);
    }
  };
  detector.onRoundTrip(40, 0);
  burst(0);
  assert.equal(detector.isOverflowing(100), false, 'a burst of losses without a queue');
  detector.onRoundTrip(300, 1_000);
  assert.equal(detector.queuingDelayMs(1_000), 260);
  assert.equal(detector.isOverflowing(1_000), false, 'a queue without losses');
  for (let n = 0; n < 6; n++) {
    detector.onFirstNack(60, 1_000 + n * 200);
  }
  assert.equal(detector.isOverflowing(2_000), false, 'losses far apart');
  burst(2_100);
  assert.equal(detector.isOverflowing(2_200), true);
  assert.equal(detector.isOverflowing(2_900), false, 'the burst is over');
  for (let atMs = 3_000; atMs < 60_000; atMs += 1_000) {
    detector.onRoundTrip(300, atMs);
  }
  assert.equal(detector.queuingDelayMs(59_000), 0, 'a longer route');
  assert.equal(detector.queuingDelayMs(63_000), 0, 'no recent report');
});

test('late NACKs show a queue while no round-trip time is measured', () => {
  const detector = new DelayDetector();
  detector.onRoundTrip(20, 0);
  const nacks = (delays: readonly number[], fromMs: number): number => {
    for (const [n, delayMs] of delays.entries()) {
      detector.onFirstNack(delayMs, fromMs + n * 100);
    }
    return fromMs + delays.length * 100;
  };
  assert.equal(
    detector.isOverflowing(nacks([110, 130, 120, 115, 120], 4_000)),
    false,
    'in batches',
  );
  assert.equal(
    detector.isOverflowing(nacks([330, 60, 350, 340, 70], 5_000)),
    false,
    'repeated ones',
  );
  const nowMs = nacks([330, 340, 320, 330, 350], 6_000);
  assert.equal(detector.queuingDelayMs(nowMs), 320 - 20 - 100);
  assert.equal(detector.isOverflowing(nowMs), true);
  assert.equal(detector.queuingDelayMs(nowMs + 1_000), 0, 'over');
});
