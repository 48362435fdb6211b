// An exception in a timer or a callback is reported, at most once a second per place, and ends
// neither the thread nor the timer.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { after, every, guarded, reportDefectsTo, soon } from '../../src/base/guard.ts';
import { sleep } from '../../src/base/time.ts';

test('a timer that throws continues; it is reported once a second, with the missed reports', async () => {
  const reports: { where: string; error: unknown; missed: number }[] = [];
  reportDefectsTo((where, error, missed) => {
    reports.push({ where, error, missed });
  });
  let beats = 0;
  const timer = every(20, 'a test interval', () => {
    beats++;
    throw new Error('EMFILE');
  });
  after(1, 'a test timeout', () => {
    throw new Error('late');
  });
  soon('a test immediate', () => Promise.reject(new Error('soon')));
  while (reports.filter(({ where }) => where === 'a test interval').length < 2) {
    await sleep(20);
  }
  clearInterval(timer);
  assert.ok(beats > 5, `${beats}`);
  const [first, second] = reports.filter(({ where }) => where === 'a test interval');
  assert.equal(first!.missed, 0);
  assert.equal(second!.missed, beats - 2);
  for (const where of ['a test timeout', 'a test immediate']) {
    assert.equal(reports.filter((report) => report.where === where).length, 1);
  }
});

test('a sink that throws has no effect, and a guarded callback gets its arguments', () => {
  reportDefectsTo(() => {
    throw new Error('the disk is full');
  });
  const seen: unknown[] = [];
  guarded('a test callback', (one: number, two: string) => {
    seen.push(one, two);
    throw new Error('wrong');
  })(1, 'b');
  assert.deepEqual(seen, [1, 'b']);
});
