// The share of packets lost, over enough packets to be meaningful.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { LossWindow } from '../../../src/webrtc/congestion/loss-window.ts';

test('loss is measured over about 40 packets, not over the two of one report', () => {
  const window = new LossWindow();
  assert.equal(window.add(0, 1_000, 0), undefined);
  assert.equal(window.add(1, 1_002, 300), undefined, 'one of two packets is not 50 %');
  assert.equal(window.add(2, 1_039, 1_200), undefined);
  assert.equal(window.add(4, 1_080, 1_300), 0.05);
  assert.equal(window.add(3, 1_160, 2_300), 0, 'a late packet');
  assert.equal(window.add(4, 1_170, 3_500), undefined);
  assert.equal(window.add(4, 1_170, 5_400), 0.1, 'after three seconds fewer packets are enough');
  assert.equal(window.add(0, 7, 9_000), undefined, 'the sequence numbers started over');
  assert.equal(window.add(900, 100, 11_000), 1);
  assert.equal(window.add(900, 100, 15_000), undefined, 'nothing was sent');
});
