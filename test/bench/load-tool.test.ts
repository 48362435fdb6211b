// The arithmetic of the load tool: when sessions arrive and speak, and that the reports of many
// machines make the report of the whole.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';
import {
  type ArrivalPlan,
  arrivalsOf,
  parseRange,
  utterancesOf,
} from '../../bench/load/arrivals.ts';
import { LoadRecord, course, mergeLoads, total } from '../../bench/load/load-data.ts';
import { loadOutcome } from '../../bench/load/load-report.ts';
import { toHtml } from '../../bench/report/html.ts';
import { Histogram } from '../../bench/report/histogram.ts';
import { mergeRuns } from '../../bench/report/merge.ts';
import { machine } from '../../bench/report/stats.ts';
import type { Run } from '../../bench/run.ts';
import { load, readTargets } from '../../bench/scenarios/load.ts';
import { holds } from '../../bench/scenario.ts';
import { Random } from '../../src/pipeline/render/motion/random.ts';

test('a histogram keeps values within 1/64, and those that never come above all', () => {
  const random = new Random(5);
  const values = Array.from({ length: 5000 }, () => 10 ** random.between(0, 5));
  const histogram = new Histogram();
  for (const value of values) {
    histogram.add(value);
  }
  values.sort((a, b) => a - b);
  for (const q of [0.01, 0.5, 0.9, 0.99, 0.999]) {
    const exact = values[Math.ceil(q * values.length) - 1]!;
    const told = histogram.quantile(q);
    assert.ok(told >= exact && told <= exact * (1 + 1 / 64) + 0.1, `${q}: ${told} for ${exact}`);
  }
  assert.equal(histogram.quantile(1), values.at(-1));
  for (let i = 0; i < 60; i++) {
    histogram.add(Number.POSITIVE_INFINITY);
  }
  assert.ok(histogram.quantile(0.98) < 1e5);
  assert.equal(histogram.quantile(0.99), Number.POSITIVE_INFINITY);
  assert.ok(Number.isNaN(new Histogram().quantile(0.5)));
});

const PLAN: ArrivalPlan = {
  rate: 5,
  arrival: 'poisson',
  seconds: 2000,
  stay: [10, 30],
  talkers: 25,
  weights: [3, 1],
  seed: 7,
};

test('arrivals are drawn beforehand: by their law, by weight, and the same again for a seed', () => {
  const arrivals = arrivalsOf(PLAN);
  assert.deepEqual(arrivalsOf(PLAN), arrivals);
  assert.notDeepEqual(arrivalsOf({ ...PLAN, seed: 8 }), arrivals);
  assert.ok(Math.abs(arrivals.length - 10_000) < 400, `${arrivals.length} arrivals`);
  const gaps = arrivals.slice(1).map(({ atSeconds }, at) => atSeconds - arrivals[at]!.atSeconds);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  // Of an exponential law: the spread is the mean, and 1/e of all are longer than it.
  const spread = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
  assert.ok(Math.abs(spread / mean - 1) < 0.05, `spread ${spread}, mean ${mean}`);
  const longer = gaps.filter((gap) => gap > mean).length / gaps.length;
  assert.ok(Math.abs(longer - 1 / Math.E) < 0.02, `${longer} longer than the mean`);
  const share = (of: (one: (typeof arrivals)[number]) => boolean): number =>
    arrivals.filter(of).length / arrivals.length;
  assert.ok(Math.abs(share(({ target }) => target === 0) - 0.75) < 0.02);
  assert.ok(Math.abs(share(({ talks }) => talks) - 0.25) < 0.02);
  assert.ok(arrivals.every(({ staySeconds }) => staySeconds >= 10 && staySeconds < 30));
  const fixed = arrivalsOf({ ...PLAN, arrival: 'fixed', rate: 4, seconds: 2 });
  assert.deepEqual(
    fixed.map(({ atSeconds }) => atSeconds),
    [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75],
  );
  const spoken = utterancesOf({ utterance: [1, 4], pause: [2, 5] }, 60, 3);
  assert.ok(spoken.length >= 6 && spoken.length <= 20, `${spoken.length} utterances`);
  for (const [at, { atSeconds, seconds }] of spoken.entries()) {
    assert.ok(seconds >= 1 && seconds < 4 && atSeconds + seconds + 2 <= 60);
    const before = spoken[at - 1];
    const pause = atSeconds - (before === undefined ? 0 : before.atSeconds + before.seconds);
    assert.ok(pause >= 2 && pause < 5, `a pause of ${pause} s`);
  }
  assert.deepEqual(
    [parseRange('stay', '3'), parseRange('stay', '1-4')],
    [
      [3, 3],
      [1, 4],
    ],
  );
  for (const wrong of ['4-1', 'some', '1-2-3', '-1']) {
    assert.throws(() => parseRange('stay', wrong), /--stay must be seconds such as 3 or 1-4/);
  }
});

/** What generators see of the same load: each a part, and one all of it. */
function seen(parts: number): { readonly whole: Run; readonly parts: Run[] } {
  const random = new Random(1);
  const records = Array.from({ length: parts + 1 }, () => new LoadRecord(1));
  for (let at = 0; at < 3000; at++) {
    const target = `http://${random.next() < 0.7 ? 'a' : 'b'}`;
    const second = 1_700_000_000 + 30 * random.next();
    // One generator sees a server that is ten times slower: an average of its p99 would hide it.
    const own = at % parts;
    const setUp = 100 * random.logNormal(0.5) * (own === 0 ? 10 : 1);
    const hasFailed = random.next() < 0.004;
    for (const record of [records[own]!, records[parts]!]) {
      const span = record.at(target, second);
      span.count('due');
      span.count(hasFailed ? 'failed' : 'started');
      span.time('setUp', hasFailed ? Number.POSITIVE_INFINITY : setUp);
      span.count('frames', 300);
      span.count('liveSeconds', 10);
      if (hasFailed) {
        record.reason('did not start: SERVER_OVERLOADED');
      }
    }
  }
  const run = (record: LoadRecord, name: string): Run => ({
    scenario: 'load',
    about: 'a load',
    startedAt: '2026-01-02T03:04:05.678Z',
    durationSeconds: 30,
    commit: 'abc',
    target: 'servers',
    machine: machine(),
    options: load.options,
    course: [],
    outcome: loadOutcome(
      record.toData([{ id: name, name, from: 1_700_000_000, to: 1_700_000_030 }]),
      load.options,
    ),
  });
  const runs = records.map((record, at) => run(record, `machine ${at}`));
  return { whole: runs.at(-1)!, parts: runs.slice(0, -1) };
}

test('merged reports are the report of the whole, and no mean of percentiles', () => {
  const { whole, parts } = seen(3);
  // As they come from other machines.
  const files = parts.map(({ outcome }) => JSON.parse(JSON.stringify(outcome.load)) as never);
  const merged = mergeLoads(files);
  const [together, expected] = [loadOutcome(merged, load.options), whole.outcome];
  assert.deepEqual(together.figures, expected.figures);
  assert.deepEqual(together.bounds, expected.bounds);
  assert.deepEqual(together.plots, expected.plots);
  assert.deepEqual(merged.reasons, whole.outcome.load!.reasons);
  assert.deepEqual(
    Object.keys(merged.targets).map((name) => total(merged, [name]).quantile('setUp', 0.9)),
    Object.keys(merged.targets).map((name) =>
      total(whole.outcome.load!, [name]).quantile('setUp', 0.9),
    ),
  );
  assert.equal(course(merged).length, 30);
  const p99 = parts.map(({ outcome }) => outcome.figures['setUpP99Ms']!);
  const mean = p99.reduce((sum, value) => sum + value, 0) / 3;
  assert.ok(expected.figures['setUpP99Ms']! > mean * 1.5, `${expected.figures['setUpP99Ms']}`);
  assert.throws(() => mergeLoads([files[0]!, files[0]!]), /machine 0 is there twice/);
  assert.throws(
    () => mergeLoads([files[0]!, Object.assign(files[1]!, { spanSeconds: 5 })]),
    /same --span/,
  );
});

test('sessions that never start break the bound of the set-up, however quick the others are', () => {
  const record = new LoadRecord(1);
  for (let at = 0; at < 100; at++) {
    record.at('http://a', 1).time('setUp', at < 2 ? Number.POSITIVE_INFINITY : 5);
    record.at('http://a', 1).count('due');
  }
  const { bounds, tables } = loadOutcome(record.toData([]), load.options);
  assert.equal(holds(bounds.find(({ name }) => name.includes('first picture'))!), false);
  assert.ok(tables[0]!.rows[0]!.includes('never'));
});

test('bench merge writes one report with a gate, for people and for tools', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-load-'));
  const file = (name: string): string => path.join(folder, name);
  const bench = (...args: string[]) =>
    spawnSync(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        path.resolve(import.meta.dirname, '../../bench/main.ts'),
        ...args,
      ],
      { encoding: 'utf8' },
    );
  try {
    const { whole, parts } = seen(2);
    for (const [at, part] of parts.entries()) {
      writeFileSync(file(`${at}.json`), JSON.stringify(part));
    }
    const better = whole.outcome.bounds.map((bound) => ({ ...bound, value: bound.value / 2 }));
    writeFileSync(
      file('base.json'),
      JSON.stringify({ scenario: 'load', outcome: { bounds: better } }),
    );
    const outputs = ['--junit', file('junit.xml'), '--csv', file('load.csv'), '--out', file('out')];
    const gate = ['--baseline', file('base.json')];
    const merged = bench('merge', file('0.json'), file('1.json'), ...outputs, ...gate);
    assert.equal(merged.status, 1, merged.stderr);
    assert.match(merged.stdout, /BROKEN {2}arrival to first picture, p99, against the baseline/);
    assert.match(readFileSync(file('junit.xml'), 'utf8'), /<testsuite name="load" tests="[5-9]"/);
    assert.match(readFileSync(file('load.csv'), 'utf8'), /,setUpP99Ms,\d/);
    const html = readdirSync(file('out')).find((name) => name.endsWith('.html'))!;
    const report = readFileSync(path.join(file('out'), html), 'utf8');
    assert.match(report, /Merged from 2 reports/);
    assert.doesNotMatch(report, /undefined|NaN/);
    // Time is the axis of every figure.
    const axes = report.match(/text-anchor="middle">s<\/text>/g)?.length;
    assert.equal(axes, report.match(/<figure>/g)?.length);
    const twice = [file('0.json'), file('0.json')];
    assert.throws(() => mergeRuns(twice), /the run of machine 0 is there twice/);
    assert.throws(() => mergeRuns([file('base.json')]), /is no report of load/);
    assert.match(bench('merge').stderr, /^merge needs the \.json reports/);
    assert.ok(toHtml(whole).includes('From arrival to the first picture'));
    writeFileSync(file('targets.json'), '[{"url": "ftp://a", "apiKey": "k"}]');
    assert.throws(() => readTargets(file('targets.json')), /must hold \[\{"url"/);
    writeFileSync(file('targets.json'), '[{"url": "http://a/", "apiKey": "k", "weight": 2}]');
    const target = { url: 'http://a', apiKey: 'k', weight: 2 };
    assert.deepEqual(readTargets(file('targets.json')), [target]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
