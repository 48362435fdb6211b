// How soon the JavaScript client connects again.
import assert from 'node:assert/strict';
import { test, vi } from 'vitest';
import { Retry } from '../../clients/js/src/retry.ts';

test('a token that is free again after 4 to 6 s is tried within a second, a dead service seldom', () => {
  vi.useFakeTimers();
  try {
    const retry = new Retry(180_000);
    const triesMs: number[] = [];
    const startMs = performance.now();
    const again = (): void => {
      triesMs.push(performance.now() - startMs);
      retry.next(again);
    };
    retry.next(again);
    vi.advanceTimersByTime(300_000);
    assert.ok(triesMs[0]! <= 250);
    const pauses = triesMs
      .slice(1)
      .map((atMs, i) => ({ fromMs: triesMs[i]!, ms: atMs - triesMs[i]! }));
    assert.ok(pauses.every(({ fromMs, ms }) => ms <= (fromMs < 10_000 ? 1000 : 8000)));
    assert.ok(pauses.slice(-5).every(({ ms }) => ms >= 6400));
    assert.ok(triesMs.at(-1)! > 160_000 && triesMs.at(-1)! < 190_000);
    assert.ok(triesMs.length < 50);
  } finally {
    vi.useRealTimers();
  }
});
