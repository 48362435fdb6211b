// Without a free file descriptor, the vitals are still sampled, and a scrape has all that can be
// read.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'vitest';
import { Metrics } from '../../src/metrics/metrics.ts';

/**
 * Takes all descriptors, waits until the vitals are sampled and summarized (1 s), scrapes, and
 * prints the result.
 */
const PROGRAM = `
  import { openSync } from 'node:fs';
  import { reportDefectsTo } from './src/base/guard.ts';
  import { Metrics } from './src/metrics/metrics.ts';
  import { watchMainThread } from './src/metrics/threads.ts';
  const defects = [];
  reportDefectsTo((where, error) => { defects.push(where + ': ' + error.code); });
  const metrics = new Metrics();
  watchMainThread(metrics, () => performance.now(), { version: '1', commit: 'a' });
  await metrics.render();
  let left = 0;
  try { for (;;) { openSync('/dev/null'); left++; } }
  catch (error) { if (error.code !== 'EMFILE') throw error; }
  setTimeout(async () => {
    const { body } = await metrics.render();
    // More than a pipe holds: the rest is written later.
    process.stdout.write(JSON.stringify({ left, defects, body }), () => process.exit(0));
  }, 1500);
`;

test('a process without a free descriptor runs, samples and answers a scrape', () => {
  const child = spawnSync(
    'prlimit',
    [
      '--nofile=128:128',
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      '--input-type=module',
      '-e',
      PROGRAM,
    ],
    { encoding: 'utf8', timeout: 60_000 },
  );
  assert.equal(child.status, 0, child.stderr);
  const { left, body } = JSON.parse(child.stdout) as { left: number; body: string };
  assert.ok(left > 20, `${left}`);
  const value = (name: string): number =>
    Number(new RegExp(`^${name} (.+)$`, 'm').exec(body)?.[1] ?? Number.NaN);
  assert.equal(value('process_max_fds'), 128);
  assert.ok(
    value('process_open_fds') >= 127,
    body.split('\n').find((line) => line.startsWith('process_open_fds ')),
  );
  assert.ok(value('mouthpiece_front_heap_used_bytes') > 1e6);
  assert.ok(value('mouthpiece_front_event_loop_delay_seconds_count') >= 10);
});

test('a collector that throws affects only its own metrics', async () => {
  const metrics = new Metrics();
  metrics.onScrape(() => {
    throw new Error('no descriptor');
  });
  const ready = metrics.gauge('mouthpiece_ready');
  metrics.onScrape(() => {
    ready.set(1);
  });
  const { body } = await metrics.render();
  assert.match(body, /^mouthpiece_ready 1$/m);
});
