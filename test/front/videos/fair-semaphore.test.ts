// The fair semaphore: no more permits at a time than allowed, granted in order, none lost when one
// is closed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { setImmediate as tick } from 'node:timers/promises';
import { FairSemaphore, type Permit } from '../../../src/front/videos/fair-semaphore.ts';

test('permits are granted in the order of asking', async () => {
  const semaphore = new FairSemaphore(1);
  const order: string[] = [];
  const work = async (name: string, pieces: number): Promise<void> => {
    const permit = semaphore.join();
    for (let k = 0; k < pieces; k++) {
      await permit.acquire();
      order.push(name);
      await tick();
      permit.release();
    }
    permit.close();
  };
  await Promise.all([work('a', 4), work('b', 2), work('c', 1)]);
  assert.equal(order.join(''), 'abcabaa');
});

test('the number of permits is bounded; a closed permit, held or queued, blocks no other', async () => {
  const semaphore = new FairSemaphore(2);
  const held = new Set<Permit>();
  const [a, b, c, d] = [semaphore.join(), semaphore.join(), semaphore.join(), semaphore.join()];
  for (const permit of [a, b, c, d]) {
    void permit.acquire().then(() => held.add(permit));
  }
  await tick();
  assert.deepEqual([...held], [a, b]);
  c.close(); // while it waits
  a.close(); // while it is held
  await tick();
  assert.deepEqual([...held], [a, b, d]);
  void a.acquire().then(() => assert.fail('it was closed'));
  b.release();
  b.release(); // does nothing
  const [e, f] = [semaphore.join(), semaphore.join()];
  for (const permit of [e, f]) {
    void permit.acquire().then(() => held.add(permit));
  }
  await tick();
  assert.deepEqual([...held], [a, b, d, e]);
  assert.ok(d.workedSeconds >= 0 && f.workedSeconds === 0);
});
