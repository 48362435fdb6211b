// The target bitrate: growth and cuts by loss, the receiver's estimate as bound, and duplication.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { BitrateController } from '../../../src/webrtc/congestion/bitrate-controller.ts';

test('the bitrate grows without loss, stays with some, and falls with much', () => {
  const controller = new BitrateController(150, 1500, 600);
  let nowMs = 0;
  const after = (seconds: number, loss: number): number => {
    for (let report = 0; report < seconds; report++) {
      controller.onLoss(loss, (nowMs += 1000));
    }
    return controller.targetKbps;
  };
  assert.equal(after(5, 0.05), 600);
  const grown = after(10, 0);
  assert.ok(grown > 1_000 && grown <= 1_500, `${grown}`);
  assert.ok(Math.abs(after(1, 0.5) - grown * 0.75) < 2);
  assert.equal(after(60, 1), 150);
  assert.equal(after(120, 0), 1_500);
  // Several reports within 250 ms must not cut the bitrate several times.
  controller.onLoss(1, nowMs++);
  assert.equal(controller.targetKbps, 1_500);
});

test('an estimate is a bound when it falls or stays below the sent bitrate, not in silence', () => {
  const controller = new BitrateController(150, 600, 600);
  let nowMs = 0;
  const after = (kbps: number, sentKbps: number, isQueued = false): number => {
    controller.onRemb(kbps * 1000, sentKbps, isQueued, (nowMs += 250));
    return controller.targetKbps;
  };
  assert.equal(after(125, 0), 600, 'the first estimate');
  for (let kbps = 130; kbps < 250; kbps *= 1.02) {
    assert.equal(after(kbps, 150), 600, 'it follows the received bitrate');
  }
  assert.equal(after(127, 150), 600, 'jitter in silence: 0.85 of the received bitrate');
  for (let kbps = 128; kbps < 300; kbps *= 1.02) {
    assert.equal(after(kbps, 580), 600, 'a sentence: it rises, so the path has room');
  }
  assert.equal(after(240, 590), 240, 'a fall');
  assert.equal(after(246, 250), 246, 'a rise moves the bound');
  assert.equal(after(244, 250), 246, 'jitter of the estimate');
  for (let second = 0; second < 24; second++) {
    after(246 + second, 250);
  }
  assert.equal(after(270, 250), Math.round(270 * 1.25), 'after 4 s without a queue, try more');
  for (let n = 0; n < 6; n++) {
    after(270, 330, true);
  }
  assert.equal(after(270, 330, true), 270, 'held below the sent bitrate, with a queue');
  assert.equal(after(70, 150), 150, 'below the least bitrate');
});

test('a queue bounds speech that is far below the target, and not silence', () => {
  let nowMs = 0;
  /** REMB four times a second; the estimate rises by a hundredth per second. */
  const afterTwoSeconds = (sentKbps: number, kbps: number, hasQueue: boolean): number => {
    const controller = new BitrateController(100, 600, 600);
    for (let n = 0; n < 8; n++) {
      controller.onRemb(kbps * (1 + n / 400) * 1000, sentKbps, hasQueue, (nowMs += 250));
    }
    return controller.targetKbps;
  };
  assert.equal(afterTwoSeconds(250, 130, false), 600, 'no queue: it only has not caught up');
  assert.ok(afterTwoSeconds(250, 130, true) < 140, 'a queue: the path carries no more');
  assert.equal(afterTwoSeconds(90, 75, true), 600, 'silence');
  const controller = new BitrateController(100, 600, 600);
  controller.onRemb(240_000, 300, true, nowMs);
  controller.onOverflow(nowMs);
  assert.equal(controller.targetKbps, 240, 'an overflow: at once');
});

test('duplicated packets are sent at half the bitrate, and only if the path has room for them', () => {
  const controller = new BitrateController(150, 600, 600);
  let nowMs = 0;
  controller.isDuplicating = true;
  assert.equal(controller.targetKbps, 300);
  controller.onRemb(1_200_000, 600, false, (nowMs += 1_000));
  controller.onRemb(1_000_000, 600, false, (nowMs += 1_000));
  assert.equal(controller.targetKbps, 500);
  controller.onRemb(220_000, 600, false, (nowMs += 1_000));
  assert.deepEqual(
    [controller.isDuplicating, controller.targetKbps],
    [true, 150],
    'an estimate may be a third too low',
  );
  controller.onRemb(190_000, 600, false, (nowMs += 1_000));
  assert.deepEqual([controller.isDuplicating, controller.targetKbps], [false, 190]);
  controller.onRemb(1_000_000, 600, false, (nowMs += 1_000));
  controller.isDuplicating = false;
  assert.equal(controller.targetKbps, 600);
});
