// The frame clock on made-up ticks and times.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { FRAME_MS } from '../../src/media/timeline.ts';
import { FrameClock, SLOTS_PER_FRAME, TICK_MS } from '../../src/worker/frame-clock.ts';

const ORIGIN_MS = 1000;

/**
 * A clock that runs since tick 0. `at` decides at a tick that is served `lateMs` after its time.
 */
function runningClock(): { clock: FrameClock; at: (tick: number, lateMs?: number) => string } {
  const clock = new FrameClock();
  clock.start(0, ORIGIN_MS);
  return {
    clock,
    at: (tick, lateMs = 0) => clock.advance(tick, ORIGIN_MS + tick * TICK_MS + lateMs),
  };
}

test('frame 0 is on the tick of its slot that is now or was last', () => {
  for (const [slot, tick, first] of [
    [0, 8, 8],
    [1, 8, 5],
    [3, 8, 7],
    [2, 1, -2],
  ] as const) {
    const clock = new FrameClock();
    clock.slot = slot;
    assert.equal(clock.isRunning, false);
    clock.start(tick, ORIGIN_MS);
    assert.equal(clock.epochMs, ORIGIN_MS + first * TICK_MS, `slot ${slot}, tick ${tick}`);
    assert.equal(clock.advance(tick, ORIGIN_MS + tick * TICK_MS), 'show');
    assert.equal(clock.frame, 0);
  }
});

test('a frame is due once, every fourth tick', () => {
  const { clock, at } = runningClock();
  const shown: number[] = [];
  for (let tick = 0; tick < 40; tick++) {
    if (at(tick) === 'show') {
      shown.push(clock.frame);
      assert.equal(tick, clock.frame * SLOTS_PER_FRAME);
      assert.equal(clock.pictureMediaMs, clock.frame * FRAME_MS);
      assert.equal(clock.frameMs, ORIGIN_MS + clock.frame * FRAME_MS);
      assert.equal(clock.skipped, 0);
    }
  }
  assert.deepEqual(shown, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('a frame more than half a frame late is dropped once, and the next one is shown', () => {
  const { clock, at } = runningClock();
  assert.equal(at(0), 'show');
  assert.equal(at(4, FRAME_MS / 2 - 1), 'show', 'not late enough');
  const lateMs = FRAME_MS / 2 + 1;
  assert.equal(at(8, lateMs), 'drop');
  assert.ok(Math.abs(clock.droppedLateMs(ORIGIN_MS + 8 * TICK_MS + lateMs) - lateMs) < 1e-9);
  assert.equal(clock.frame, 1, 'the clock stays at the frame that was shown');
  assert.equal(at(9, lateMs), 'wait', 'the same frame is not dropped twice');
  assert.equal(at(12), 'show');
  assert.equal(clock.frame, 3);
  assert.equal(clock.skipped, 1);
});

test('a session that is always late is shown every other frame', () => {
  const { clock, at } = runningClock();
  const decisions = Array.from({ length: 7 }, (_, frame) =>
    at(frame * SLOTS_PER_FRAME, FRAME_MS * 0.9),
  );
  assert.deepEqual(decisions, ['show', 'drop', 'show', 'drop', 'show', 'drop', 'show']);
  assert.equal(clock.frame, 6);
});

test('frames missed in a stall are counted as skipped, not made up for', () => {
  const { clock, at } = runningClock();
  assert.equal(at(0), 'show');
  assert.equal(at(24), 'show');
  assert.deepEqual([clock.frame, clock.skipped], [6, 5]);
  assert.ok(Math.abs(clock.lateMs(ORIGIN_MS + 24 * TICK_MS + 3) - 3) < 1e-9);
});

test('a first frame is shown however late, and frames before it are not skipped ones', () => {
  const { clock, at } = runningClock();
  assert.equal(at(43), 'show');
  assert.deepEqual([clock.frame, clock.skipped], [10, 0]);
});

test('a picture is inserted at a tick between two frames, once, and moves no frame', () => {
  const { clock, at } = runningClock();
  assert.equal(clock.insert(0), false, 'none before the first frame');
  assert.equal(at(0), 'show');
  assert.equal(clock.insert(0), false, 'this tick has a picture');
  assert.equal(clock.insert(1), true);
  assert.deepEqual([clock.frame, clock.picturePosition], [0, 0.25]);
  assert.ok(Math.abs(clock.pictureMediaMs - TICK_MS) < 1e-9);
  assert.equal(clock.frameMs, ORIGIN_MS);
  assert.ok(Math.abs(clock.lateMs(ORIGIN_MS + TICK_MS + 2) - 2) < 1e-9);
  assert.equal(clock.insert(1), false, 'a timer that fires early serves a tick twice');
  assert.equal(clock.insert(3), true);
  assert.equal(at(4), 'show');
  assert.deepEqual([clock.frame, clock.picturePosition, clock.skipped], [1, 1, 0]);
});

test('a picture inserted after a frame that was dropped has the time of its tick', () => {
  const { clock, at } = runningClock();
  at(0);
  assert.equal(at(4, FRAME_MS / 2 + 1), 'drop');
  assert.equal(at(7), 'wait');
  assert.equal(clock.insert(7), true);
  assert.equal(clock.picturePosition, 1.75);
  assert.equal(at(8), 'show');
  assert.deepEqual([clock.frame, clock.pictureMediaMs, clock.skipped], [2, 2 * FRAME_MS, 1]);
});
