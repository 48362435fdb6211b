// When a lost connection to a LiveKit server is tried again.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Reconnection } from '../../../src/front/rooms/reconnection.ts';

test('a server that sends us away again and again is tried about once a second', () => {
  const reconnection = new Reconnection();
  let nowMs = 0;
  let attempts = 0;
  for (; nowMs < 30_000; attempts++) {
    // It asks for an attempt at once, lets us in, and sends us away after 20 ms.
    nowMs += 20 + reconnection.nextDelayMs(nowMs, 0)!;
    reconnection.succeed(nowMs);
  }
  assert.ok(attempts > 25 && attempts < 50, `${attempts} attempts in half a minute`);
  nowMs += 6000;
  assert.equal(reconnection.nextDelayMs(nowMs, 0), 0, 'it has been steady for a while');
});

test('it is given up after a minute without a connection', () => {
  const reconnection = new Reconnection();
  let nowMs = 0;
  for (let delayMs; (delayMs = reconnection.nextDelayMs(nowMs)) !== undefined; nowMs += delayMs) {
    assert.ok(delayMs <= 1250 && nowMs < 63_000);
  }
  assert.ok(nowMs > 60_000);
});
