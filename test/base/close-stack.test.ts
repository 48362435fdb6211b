// Closing in reverse order, whatever fails on the way.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { CloseStack } from '../../src/base/close-stack.ts';

test('close functions run in reverse order, one after another, once', async () => {
  const closed: string[] = [];
  const stack = new CloseStack();
  stack.add(() => closed.push('store'));
  stack.add(async () => {
    await Promise.resolve();
    closed.push('listener');
  });
  await stack.close();
  await stack.close();
  assert.deepEqual(closed, ['listener', 'store']);
});

test('a close function that fails does not keep the others from running', async () => {
  const closed: string[] = [];
  const stack = new CloseStack();
  stack.add(() => closed.push('store'));
  stack.add(() => Promise.reject(new Error('pool')));
  stack.add(() => {
    throw new Error('listener');
  });
  await assert.rejects(stack.close(), /listener/);
  assert.deepEqual(closed, ['store']);
});
