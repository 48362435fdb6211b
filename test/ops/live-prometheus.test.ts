// A real Prometheus scrapes a server in use; every query of every panel and rule is run, and each
// returns data of a sane size.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { exerciseServer } from '../../bench/exercise.ts';
import { CATALOGUE } from '../../src/metrics/catalogue.ts';
import { sleep } from '../../src/base/time.ts';
import { DASHBOARDS } from '../../grafana/dashboards.ts';
import { SCRAPE_SECONDS, type Prometheus, resolved, startPrometheus } from '../../grafana/live.ts';
import { type TestServer, startServer } from '../harness/server.ts';

/** More lines than this on one panel and nobody can read it, or a label is out of bounds. */
const MAX_SERIES = 120;

/** Rules whose operands need hours of data, or a server that died. */
const NEEDS_MORE = new Set(['MouthpieceMemoryGrows', 'MouthpieceServerLost']);

const cleanUps: (() => Promise<unknown> | void)[] = [];
let server: TestServer;
let prometheus: Prometheus;

beforeAll(async () => {
  server = await startServer({ env: { MAX_WORKER_LOAD: '1' } });
  prometheus = await startPrometheus(`127.0.0.1:${server.port}`);
  await exerciseServer(server, 15, (cleanUp) => {
    cleanUps.push(cleanUp);
  });
}, 150_000);

afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) {
    await cleanUp();
  }
  await prometheus?.stop();
  await server?.stop();
});

test('Prometheus takes the exposition', async () => {
  assert.ok(await prometheus.isUp());
  assert.ok((await prometheus.query('count({__name__=~"mouthpiece_.*"})'))[0]!.values[0]![1] > 500);
});

for (const { uid, rows } of DASHBOARDS) {
  test(`every query of ${uid} returns data`, async () => {
    const problems: string[] = [];
    for (const { title, queries } of rows.flatMap(({ panels }) => panels)) {
      for (const { expr } of queries) {
        try {
          const series = await prometheus.query(resolved(expr));
          if (series.length === 0 || series.length > MAX_SERIES) {
            problems.push(`${title}: ${series.length} series: ${expr}`);
          } else if (
            series.some(({ values }) => Math.abs(values[0]![1]) === Number.POSITIVE_INFINITY)
          ) {
            problems.push(`${title}: infinite: ${expr}`);
          }
        } catch (error) {
          problems.push(`${title}: ${String(error)}: ${expr}`);
        }
      }
    }
    assert.deepEqual(problems, []);
  });
}

test('alerts link to runbooks that Prometheus serves', async () => {
  const response = await fetch(`${prometheus.url}/user/runbooks/MouthpieceDown.md`);
  assert.equal(response.status, 200);
  assert.match(await response.text(), /^# MouthpieceDown/);
});

test('every rule is healthy, recorded ones have data, and what alerts compare has data', async () => {
  const problems: string[] = [];
  for (const { name, health, lastError, query, type } of await prometheus.rules()) {
    if (health !== 'ok') {
      problems.push(`${name}: ${health} ${lastError ?? ''}`);
    }
    if (NEEDS_MORE.has(name)) {
      continue;
    }
    // Whatever is compared with a number is kept, the comparison taken away.
    const compared =
      type === 'alerting'
        ? query.replaceAll(/\s(?:>=|<=|==|>|<)\s-?[\d.]+(?![\d.]*\s*[*/+])/g, '')
        : query;
    const series = await prometheus.query(compared);
    if (series.length === 0 || series.length > MAX_SERIES) {
      problems.push(`${name}: ${series.length} series: ${compared}`);
    }
  }
  assert.deepEqual(problems, []);
});

test('figures that every server in use must show are there and of a sane size', async () => {
  const expected: readonly [expr: string, low: number, high: number][] = [
    ['mouthpiece_ready', 1, 1],
    ['sum(mouthpiece_sessions)', 2, 10],
    ['sum(mouthpiece_sessions{kind="livekit"})', 1, 1],
    ['sum(mouthpiece_livekit_joins_total{result="joined"})', 1, 10],
    ['sum(mouthpiece_livekit_room_errors_total{reason="join_failed"})', 1, 10],
    ['sum(mouthpiece_workers{state="ready"})', 1, 1],
    ['sum(rate(mouthpiece_frames_sent_total[8s]))', 30, 300],
    ['sum(increase(mouthpiece_utterances_total[1m]))', 3, 200],
    [
      'histogram_quantile(0.5, sum by (le) (rate(mouthpiece_audio_to_lips_seconds_bucket[1m])))',
      0.001,
      1,
    ],
    [
      'histogram_quantile(0.5, sum by (le) ' +
        '(rate(mouthpiece_session_setup_seconds_bucket{step="total"}[1m])))',
      0.01,
      5,
    ],
    ['max(mouthpiece_worker_load_ratio)', 0.01, 1],
    ['sum(rate(mouthpiece_worker_cpu_seconds_total[8s]))', 0.01, 1.2],
    ['sum(mouthpiece_room_sessions)', 1, 2000],
    ['sum(increase(mouthpiece_rtp_packets_sent_total{media="audio"}[1m]))', 500, 100_000],
    ['sum(increase(mouthpiece_rtp_nacks_received_total[1m]))', 1, 10_000],
    ['sum(mouthpiece_http_requests_total{status="404"})', 1, 1000],
    ['sum(mouthpiece_tokens_refused_total)', 1, 1000],
    ['sum(mouthpiece_redis_command_duration_seconds_count)', 10, 1e6],
    ['mouthpiece_redis_connected', 1, 1],
    ['sum(mouthpiece_jobs_finished_total) + sum(mouthpiece_jobs)', 1, 1000],
    ['sum(mouthpiece_websocket_bytes_total{direction="in"})', 10_000, 1e9],
    ['sum(mouthpiece_audio_received_seconds_total)', 5, 1000],
    [
      'histogram_quantile(0.99, sum by (le) (mouthpiece_scrape_duration_seconds_bucket))',
      0.0001,
      0.2,
    ],
  ];
  const meanOf = (
    name: string,
    label: string,
    values: readonly string[],
    most: number,
  ): typeof expected =>
    values.map((value) => [
      `sum(${name}_sum{${label}="${value}"}) / sum(${name}_count{${label}="${value}"})`,
      0,
      most,
    ]);
  const steps = meanOf(
    'mouthpiece_session_setup_seconds',
    'step',
    CATALOGUE.mouthpiece_session_setup_seconds.labels.step,
    5,
  );
  const stages = meanOf(
    'mouthpiece_stage_duration_seconds',
    'stage',
    CATALOGUE.mouthpiece_stage_duration_seconds.labels.stage,
    0.05,
  );
  const findProblems = async (): Promise<string[]> => {
    const problems: string[] = [];
    for (const [expr, low, high] of [...expected, ...steps, ...stages]) {
      const value = (await prometheus.query(expr))[0]?.values[0]?.[1] ?? Number.NaN;
      if (!(value >= low && value <= high)) {
        problems.push(`${expr} is ${value}, expected ${low} to ${high}`);
      }
    }
    return problems;
  };
  let problems = await findProblems();
  // On a busy machine a scrape may fail, and until the next one there is no data.
  for (let again = 0; problems.length > 0 && again < 5; again++) {
    await sleep(2000 * SCRAPE_SECONDS);
    problems = await findProblems();
  }
  assert.deepEqual(problems, []);
});
