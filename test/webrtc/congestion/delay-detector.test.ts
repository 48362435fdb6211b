// A queue that overflows, told from random loss, jitter and long paths.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { DelayDetector } from '../../../src/webrtc/congestion/delay-detector.ts';

test('a queue that overflows is told from random loss, from jitter and from long paths', () => {
  const detector = new DelayDetector();
  const burst = (fromMs: number): void => {
    for (let n = 0; n < 6; n++) {
      detector.onFirstNack(fromMs + n * 20);
    }
  };
  detector.onRoundTrip(40, 0);
  burst(0);
  assert.equal(detector.isOverflowing(100), false, 'a burst of losses without a queue');
  detector.onRoundTrip(300, 1_000);
  assert.equal(detector.queuingDelayMs(1_000), 260);
  assert.equal(detector.isOverflowing(1_000), false, 'a queue without losses');
  for (let n = 0; n < 6; n++) {
    detector.onFirstNack(1_000 + n * 100);
  }
  assert.equal(detector.isOverflowing(1_500), false, 'losses far apart');
  burst(1_600);
  assert.equal(detector.isOverflowing(1_700), true);
  assert.equal(detector.isOverflowing(2_600), false, 'the burst is over');
  for (let atMs = 3_000; atMs < 60_000; atMs += 1_000) {
    detector.onRoundTrip(300, atMs);
  }
  assert.equal(detector.queuingDelayMs(59_000), 0, 'a longer route');
  assert.equal(detector.queuingDelayMs(62_000), 0, 'no recent report');
});
