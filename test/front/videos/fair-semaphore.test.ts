// Turns: as many at a time as may, each in its order, and none lost when one leaves.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { setImmediate as tick } from 'node:timers/promises';
import { FairSemaphore, type Lease } from '../../../src/front/videos/fair-semaphore.ts';

test('they go round in the order of asking', async () => {
  const turns = new FairSemaphore(1);
  const order: string[] = [];
  const work = async (name: string, pieces: number): Promise<void> => {
    const turn = turns.join();
    for (let k = 0; k < pieces; k++) {
      await turn.take();
      order.push(name);
      await tick();
      turn.pass();
    }
    turn.end();
  };
  await Promise.all([work('a', 4), work('b', 2), work('c', 1)]);
  assert.equal(order.join(''), 'abcabaa');
});

test('no more than may work at once; who ends, with its turn or in the queue, blocks nobody', async () => {
  const turns = new FairSemaphore(2);
  const has = new Set<Lease>();
  const [a, b, c, d] = [turns.join(), turns.join(), turns.join(), turns.join()];
  for (const turn of [a, b, c, d]) {
    void turn.take().then(() => has.add(turn));
  }
  await tick();
  assert.deepEqual([...has], [a, b]);
  c.end(); // while it waits
  a.end(); // while it works
  await tick();
  assert.deepEqual([...has], [a, b, d]);
  void a.take().then(() => assert.fail('it had ended'));
  b.pass();
  b.pass(); // twice is once
  const [e, f] = [turns.join(), turns.join()];
  for (const turn of [e, f]) {
    void turn.take().then(() => has.add(turn));
  }
  await tick();
  assert.deepEqual([...has], [a, b, d, e]);
  assert.ok(d.workedSeconds >= 0 && f.workedSeconds === 0);
});
