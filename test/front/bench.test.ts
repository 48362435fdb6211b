// The bench of long histories runs small here, so that it cannot rot.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { measureHistory } from '../../bench/micro/history.ts';

test('a history of some thousand records is returned completely', async () => {
  const figures = await measureHistory(3000);
  assert.equal(figures.records, 3000);
  assert.ok(figures.wholeBytes > 3000 * 200, `${figures.wholeBytes} bytes`);
  assert.ok(figures.sliceMs > 0 && figures.othersP99Ms > 0);
});
