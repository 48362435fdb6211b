// What other work takes from the core of a worker, beside a process that really takes it.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'vitest';
import { Metrics } from '../../src/metrics/metrics.ts';
import { observeCores } from '../../src/front/core-figures.ts';
import { native } from '../../src/native/addon.ts';

const ROOT = new URL('../../', import.meta.url).href;

/** Is busy for 1.5 s on its core, and prints what was counted meanwhile. */
const program = (cpu: number): string => `
  const { Metrics } = await import('${ROOT}src/metrics/metrics.ts');
  const { observeCores } = await import('${ROOT}src/front/core-figures.ts');
  const metrics = new Metrics();
  observeCores(metrics, () => [{ index: 0, threadId: process.pid, cpu: ${cpu} }]);
  await metrics.render();
  const until = performance.now() + 1500;
  while (performance.now() < until);
  process.stdout.write((await metrics.render()).body);
`;

const valueOf = (body: string, series: string): number =>
  Number(body.split(`\n${series} `)[1]?.split('\n')[0] ?? Number.NaN);

test.skipIf(!existsSync('/proc/self/schedstat'))(
  'a neighbour on the core is seen as waiting and as other work',
  (t) => {
    const cpu = native.allowedCpus().at(-1)!;
    const rival = spawn('taskset', ['-c', String(cpu), process.execPath, '-e', 'for (;;);']);
    t.onTestFinished(() => {
      rival.kill('SIGKILL');
    });
    const { stdout, stderr } = spawnSync(
      'taskset',
      ['-c', String(cpu), process.execPath, '--input-type=module', '-e', program(cpu)],
      { encoding: 'utf8' },
    );
    const waited = valueOf(stdout, 'mouthpiece_worker_run_queue_seconds_total{worker="0"}');
    const other = valueOf(stdout, 'mouthpiece_worker_core_other_seconds_total{worker="0"}');
    // Half of the core each, or less where others run there, too.
    assert.ok(waited > 0.3 && waited < 60, `waited for ${waited} s; ${stderr}`);
    assert.ok(other > 0.3 && other < 60, `others used ${other} s; ${stderr}`);
    assert.ok(valueOf(stdout, 'mouthpiece_worker_core_steal_seconds_total{worker="0"}') >= 0);
  },
);

test('a worker that is replaced, or not there yet, makes no total decrease', async () => {
  const metrics = new Metrics();
  let threadId: number | undefined = undefined;
  observeCores(metrics, () => [{ index: 0, threadId, cpu: undefined }]);
  const series = 'mouthpiece_worker_run_queue_seconds_total{worker="0"}';
  assert.ok(!(await metrics.render()).body.includes(series));
  const values: number[] = [];
  for (threadId of [process.pid, native.threadId(), 0x7fff_ffff, process.pid]) {
    values.push(valueOf((await metrics.render()).body, series));
  }
  assert.deepEqual(
    values,
    values.toSorted((a, b) => a - b),
  );
  assert.equal(values[0], 0);
});
