// The vitals of threads and the process, and the meters of peers and jobs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'vitest';
import { Worker } from 'node:worker_threads';
import { Metrics } from '../../src/metrics/metrics.ts';
import { JobMeter } from '../../src/metrics/job-meter.ts';
import { PeerMeter, newPeerReading } from '../../src/metrics/peer-meter.ts';
import { SharedMetrics, createSharedMetrics } from '../../src/metrics/shared-metrics.ts';
import { watchMainThread } from '../../src/metrics/threads.ts';

const valueOf = (body: string, series: string): number =>
  Number(
    body
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? Number.NaN,
  );

/**
 * Writes metrics, blocks its event loop for 300 ms, waits for a sample, reports that, and waits
 * until it is ended.
 */
const WORKER = `
  const { parentPort, workerData } = await import('node:worker_threads');
  const { SharedMetrics } = await import(workerData.root + 'src/metrics/shared-metrics.ts');
  const { watchWorkerThread } = await import(workerData.root + 'src/metrics/threads.ts');
  const shared = new SharedMetrics(workerData.memory);
  const started = performance.now();
  watchWorkerThread(shared, () => performance.now() - started);
  shared.counter('mouthpiece_worker_ticks_total').add(42);
  globalThis.gc?.();
  setTimeout(() => { const until = performance.now() + 300; while (performance.now() < until); }, 50);
  setTimeout(() => parentPort.postMessage('measured'), 1500);
`;

test('a worker thread writes while the main thread reads, without messages between them', async (t) => {
  const metrics = new Metrics();
  const memory = createSharedMetrics();
  metrics.attachWorker(3, memory);
  const source = `data:text/javascript,${encodeURIComponent(WORKER)}`;
  const worker = new Worker(new URL(source), {
    workerData: { memory, root: new URL('../../', import.meta.url).href },
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  t.onTestFinished(async () => {
    await worker.terminate();
  });
  await once(worker, 'message');
  const { body } = await metrics.render();
  assert.equal(valueOf(body, 'mouthpiece_worker_ticks_total{worker="3"}'), 42);
  const quick = valueOf(
    body,
    'mouthpiece_worker_event_loop_delay_seconds_bucket{worker="3",le="0.1"}',
  );
  const all = valueOf(
    body,
    'mouthpiece_worker_event_loop_delay_seconds_bucket{worker="3",le="+Inf"}',
  );
  assert.ok(
    all >= 5 && quick < all,
    `the 300 ms block is missing: ${quick} of ${all} samples within 100 ms`,
  );
  assert.ok(valueOf(body, 'mouthpiece_worker_load_ratio{worker="3"}') > 0.5);
  assert.ok(valueOf(body, 'mouthpiece_worker_heap_used_bytes{worker="3"}') > 1e6);
});

test('process metrics have plausible values, and CPU time never decreases', async (t) => {
  const metrics = new Metrics();
  t.onTestFinished(
    watchMainThread(metrics, () => process.cpuUsage().user / 1000, {
      version: '0.1.0',
      commit: 'abc',
    }),
  );
  const first = (await metrics.render()).body;
  const second = (await metrics.render()).body;
  assert.ok(
    valueOf(second, 'process_cpu_seconds_total') >= valueOf(first, 'process_cpu_seconds_total'),
  );
  const rss = valueOf(first, 'process_resident_memory_bytes');
  assert.ok(rss > 20e6 && rss < 4e9, `${rss}`);
  const descriptors = valueOf(first, 'process_open_fds');
  assert.ok(descriptors > 2 && descriptors < valueOf(first, 'process_max_fds'), `${descriptors}`);
  assert.ok(Math.abs(Date.now() / 1000 - valueOf(first, 'process_start_time_seconds')) < 300);
});

test('totals of a peer become increases; reported loss that decreases is not counted twice', async () => {
  const metrics = new Metrics();
  const memory = createSharedMetrics();
  metrics.attachWorker(0, memory);
  const meter = new PeerMeter(new SharedMetrics(memory));
  const totals = {
    packetsRetransmitted: 0,
    nacksReceived: 0,
    plisReceived: 0,
    firsReceived: 0,
    packetsLost: 0,
    packetsReceived: 0,
    bytesSent: 0,
    fractionLost: 0,
    jitterMs: 2,
    roundTripMs: 0,
    targetBitrateKbps: 600,
  };
  const reading = newPeerReading(0);
  for (const [second, lost] of [5, 3, 5, 9].entries()) {
    meter.read(
      {
        ...totals,
        packetsLost: lost,
        plisReceived: 1,
        bytesSent: 75_000 * (second + 1),
        roundTripMs: second * 10,
      },
      reading,
      (second + 1) * 1000,
    );
  }
  const { body } = await metrics.render();
  assert.equal(valueOf(body, 'mouthpiece_rtp_packets_lost_total'), 9);
  assert.equal(valueOf(body, 'mouthpiece_rtp_key_frame_requests_total{kind="pli"}'), 1);
  assert.equal(valueOf(body, 'mouthpiece_rtp_round_trip_seconds_count'), 3);
  assert.equal(valueOf(body, 'mouthpiece_send_rate_actual_bytes_per_second_sum'), 4 * 75_000);
  assert.equal(valueOf(body, 'mouthpiece_send_rate_target_bytes_per_second_bucket{le="75000"}'), 4);
});

test('jobs are measured from acceptance to end', async () => {
  const metrics = new Metrics();
  let nowMs = 0;
  const meter = new JobMeter(metrics, 'static', () => nowMs);
  meter.accepted('a', 0);
  meter.accepted('b', 1000);
  meter.refused();
  nowMs = 4000;
  meter.started('a', 2000);
  const during = (await metrics.render()).body;
  assert.equal(valueOf(during, 'mouthpiece_jobs{kind="static",state="queued"}'), 1);
  assert.equal(valueOf(during, 'mouthpiece_jobs{kind="static",state="running"}'), 1);
  assert.equal(valueOf(during, 'mouthpiece_job_oldest_queued_seconds{kind="static"}'), 3);
  meter.finished('a', 'completed', 4000, 20);
  meter.finished('b', 'cancelled', 4000);
  meter.finished('never seen', 'failed', 4000);
  const { body } = await metrics.render();
  assert.equal(valueOf(body, 'mouthpiece_job_wait_seconds_sum{kind="static"}'), 2);
  assert.equal(valueOf(body, 'mouthpiece_job_duration_seconds_sum{kind="static"}'), 2);
  assert.equal(valueOf(body, 'mouthpiece_job_realtime_factor_sum'), 10);
  assert.equal(
    valueOf(body, 'mouthpiece_jobs_finished_total{kind="static",result="cancelled"}'),
    1,
  );
  assert.equal(valueOf(body, 'mouthpiece_jobs_refused_total{kind="static"}'), 1);
  assert.equal(valueOf(body, 'mouthpiece_jobs{kind="static",state="queued"}'), 0);
  assert.equal(valueOf(body, 'mouthpiece_job_oldest_queued_seconds{kind="static"}'), 0);
});
