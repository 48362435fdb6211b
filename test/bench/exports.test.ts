// Runs of the bench for other tools: a baseline as a gate, CSV, JUnit.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';
import { boundsAgainst, readBaseline } from '../../bench/report/baseline.ts';
import { toCsv, toJunit } from '../../bench/report/exports.ts';
import { machine } from '../../bench/report/stats.ts';
import type { Run } from '../../bench/run.ts';
import { type Bound, atLeast, atMost, holds } from '../../bench/scenario.ts';

const RUN: Run = {
  scenario: 'capacity',
  about: 'a run',
  startedAt: '2026-01-02T03:04:05.678Z',
  durationSeconds: 12.3456,
  commit: 'abc',
  target: 'server at http://a, "the second"',
  machine: machine(),
  options: {},
  outcome: {
    figures: { sessions: 16, 'late p99 ms': 9.5, unknown: NaN },
    bounds: [atLeast('sessions <on a core>', 16, 12), atMost('late & later', 20, 15, 'ms')],
    tables: [],
    plots: [],
    notes: [],
  },
  course: [
    {
      name: 'late p99',
      unit: 'ms',
      points: [
        [0.5, 9],
        [1.5, 10],
      ],
    },
  ],
};

test('a figure that is worse than the baseline by more than the tolerance breaks its bound', () => {
  const baseline = (bounds: Bound[]) => ({ scenario: 'capacity', outcome: { bounds } });
  const before = baseline([atMost('late', 10, 99, 'ms'), atLeast('sessions', 20, 1)]);
  const judge = (late: number, sessions: number) =>
    boundsAgainst(
      before,
      [atMost('late', late, 99, 'ms'), atLeast('sessions', sessions, 1), atMost('new', 5, 9)],
      0.1,
    ).map(holds);
  assert.deepEqual(judge(10, 20), [true, true], 'what is new has no baseline');
  assert.deepEqual(judge(10.9, 18.1), [true, true]);
  assert.deepEqual(judge(11.1, 20), [false, true]);
  assert.deepEqual(judge(5, 17.9), [true, false]);
  assert.deepEqual(judge(NaN, 20), [false, true], 'what cannot be measured is no success');
  const unmeasured = JSON.parse(
    JSON.stringify(baseline([atMost('late', NaN, 9)])),
  ) as typeof before;
  assert.deepEqual(boundsAgainst(unmeasured, [atMost('late', 1, 9)], 0.1), []);
});

test('CSV has a line for each figure, JUnit a failure for each broken bound', () => {
  assert.deepEqual(toCsv([RUN]).split('\r\n'), [
    'scenario,startedAt,commit,target,figure,value,seconds',
    ...[
      ['sessions', '16', ''],
      ['late p99 ms', '9.5', ''],
      ['unknown', '', ''],
      ['late p99 ms', '9', '0.5'],
      ['late p99 ms', '10', '1.5'],
    ].map(
      (cells) =>
        `capacity,2026-01-02T03:04:05.678Z,abc,"server at http://a, ""the second""",${cells.join(',')}`,
    ),
    '',
  ]);
  const xml = toJunit([RUN]);
  assert.match(
    xml,
    /<testsuite name="capacity" tests="2" failures="1" time="12\.346" timestamp="2026-01-02T03:04:05">/,
  );
  assert.match(xml, /name="sessions &lt;on a core&gt;"><\/testcase>/);
  assert.match(xml, /name="late &amp; later"><failure message="20 ms \(&lt;= 15\)"\/>/);
  // Debian has a parser where it has Python, and the tests have Python.
  const parsed = spawnSync(
    'python3',
    ['-c', 'import sys,xml.dom.minidom as m;m.parse(sys.stdin)'],
    {
      input: xml,
      encoding: 'utf8',
    },
  );
  assert.equal(parsed.status, 0, parsed.stderr);
});

test('a baseline that is none is refused before anything runs', () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-baseline-'));
  try {
    const file = path.join(directory, 'run.json');
    assert.throws(() => readBaseline(file), /cannot be read: ENOENT/);
    writeFileSync(file, '{"scenario": 1}');
    assert.throws(() => readBaseline(file), /take a \.json file of bench\/out/);
    writeFileSync(file, JSON.stringify(RUN));
    assert.equal(readBaseline(file).scenario, 'capacity');
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
    const other = bench('rest', '--small', '--baseline', file);
    assert.equal(other.status, 2);
    assert.match(other.stderr, /^bench: --baseline is a run of capacity, not of rest/);
    assert.match(bench('rest', '--tolerance', 'some').stderr, /^--tolerance must be a percentage/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
