// The queue of samples against a plain array.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { SampleQueue } from '../../src/media/sample-queue.ts';

test('samples come out as they went in, whatever the block sizes', () => {
  const queue = new SampleQueue();
  const model: number[] = [];
  let [seed, next] = [1, 0];
  const upTo = (limit: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % limit;
  };
  for (let round = 0; round < 2000; round++) {
    const block = Int16Array.from({ length: upTo(3000) }, () => next++ & 0x7fff);
    const used = upTo(block.length + 1);
    queue.push(block, used);
    model.push(...block.subarray(0, used));
    const [out, offset] = [new Int16Array(upTo(3000) + 10), upTo(10)];
    const count = queue.take(out, out.length - offset, offset);
    const expected = model.splice(0, out.length - offset);
    assert.deepEqual([...out.subarray(offset, offset + count)], expected);
    const dropped = Math.min(upTo(200), model.length);
    queue.drop(dropped);
    model.splice(0, dropped);
    assert.equal(queue.length, model.length);
  }
});

test('drop takes what there is, and nothing for a count below 0', () => {
  const queue = new SampleQueue();
  queue.push(Int16Array.of(1, 2, 3));
  queue.drop(-5);
  assert.equal(queue.length, 3);
  queue.drop(10);
  assert.equal(queue.length, 0);
});
