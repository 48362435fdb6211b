// The bench's figures, checked against cases whose answer is known: an instrument that lies is
// worse than none.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'vitest';
import { Course, plotsOf, spansOf } from '../../bench/course.ts';
import { draw, short, ticks } from '../../bench/report/plot.ts';
import {
  floorSlope,
  histogramQuantile,
  quantile,
  slope,
  tailQuantile,
} from '../../bench/report/stats.ts';
import { rampTo } from '../../bench/scenarios/capacity.ts';
import { SCENARIOS } from '../../bench/scenarios/index.ts';
import { Interval, Scrape } from '../../bench/server-view.ts';

test('quantiles, slopes and histograms', () => {
  assert.equal(quantile([4, 1, 3, 2], 0.5), 2.5);
  assert.ok(Number.isNaN(quantile([], 0.5)));
  assert.ok(
    Math.abs(
      slope([
        [0, 1],
        [1, 3],
        [2, 5],
      ]) - 2,
    ) < 1e-9,
  );
  assert.equal(
    histogramQuantile(
      [
        { le: 1, count: 0 },
        { le: 2, count: 10 },
        { le: Infinity, count: 10 },
      ],
      0.5,
    ),
    1.5,
  );
  assert.equal(
    histogramQuantile(
      [
        { le: 1, count: 5 },
        { le: Infinity, count: 10 },
      ],
      0.99,
    ),
    1,
  );
});

test('figures over time: in the order of time, a plot for each, servers in one', () => {
  const course = new Course();
  const nowMs = performance.now();
  course.add('server: memory', 10, 'MB', nowMs + 2000);
  course.add('server: memory', 9, 'MB', nowMs + 1000);
  course.add('server: memory', Number.NaN, 'MB', nowMs + 1500);
  course.add('server 2: memory', 7, 'MB', nowMs + 1000);
  course.add('server 2: memory', 8, 'MB', nowMs + 2000);
  course.add('set-up', 100, 'ms', nowMs + 3000);
  const found = course.end();
  assert.deepEqual(
    found.map(({ name, unit, points }) => [name, unit, points.map(([, value]) => value)]),
    [
      ['server: memory', 'MB', [9, 10]],
      ['server 2: memory', 'MB', [7, 8]],
      ['set-up', 'ms', [100]],
    ],
  );
  const [[firstSeconds], [secondSeconds]] = found[0]!.points as [
    [number, number],
    [number, number],
  ];
  assert.ok(Math.abs(secondSeconds - firstSeconds - 1) < 0.01 && firstSeconds >= 1);
  const [plot, ...others] = plotsOf(found);
  assert.equal(others.length, 0, 'one point is no line');
  assert.ok(plot?.kind === 'lines' && plot.lines.length === 2 && plot.y === 'MB', plot?.title);
  assert.deepEqual(spansOf([100, 120, 310], [1, 2, 3], 100), [
    { at: 100, values: [1, 2] },
    { at: 300, values: [3] },
  ]);
});

/**
 * Three quarters of an hour of resident memory in MB, every ten seconds: garbage that grows by 7 MB
 * until it is collected after some 7.5 minutes, and a leak.
 */
function sawtooth(leakMbPerHour: number, seed: number): [hours: number, mb: number][] {
  let state = seed;
  const random = (): number => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
  let garbage = 7 * random();
  let limit = 7;
  return Array.from({ length: 270 }, (_, index) => {
    garbage += 7 / 45;
    if (garbage >= limit) {
      [garbage, limit] = [0, 6 + 2 * random()];
    }
    return [index / 360, 250 + garbage + (leakMbPerHour * index) / 360 + (random() - 0.5) * 0.4];
  });
}

test('the floor of a sawtooth is flat when nothing leaks, and shows a leak of 3 MB an hour', () => {
  let fooled = 0;
  for (let seed = 1; seed <= 200; seed++) {
    const [flat, leaking] = [sawtooth(0, seed), sawtooth(3, seed)].map((points) =>
      floorSlope(points, 1 / 6),
    ) as [number, number];
    assert.ok(Math.abs(flat) < 1.2, `${flat} MB/h of a flat server, seed ${seed}`);
    assert.ok(leaking > 1.8 && leaking < 4.5, `${leaking} MB/h of a leak of 3, seed ${seed}`);
    if (Math.abs(slope(sawtooth(0, seed).slice(0, 78))) > 3) {
      fooled++;
    }
  }
  assert.ok(
    fooled > 0,
    'a regression over thirteen minutes of it, as once was drawn, would not have done as well',
  );
  assert.ok(
    Math.abs(
      floorSlope(
        [
          [0, 5],
          [1, 9],
          [2, 6],
          [3, 9],
          [4, 7],
          [5, 9],
        ],
        2,
      ) - 0.5,
    ) < 1e-9,
  );
  assert.ok(
    Number.isNaN(
      floorSlope(
        [
          [0, 5],
          [1, 9],
          [2, 6],
        ],
        2,
      ),
    ),
    'two windows are not enough',
  );
  assert.ok(Number.isNaN(floorSlope([], 1)));
});

test('two scrapes make an interval', () => {
  const scrape = (frames: number, fast: number): Scrape =>
    new Scrape(
      [
        '# HELP x y',
        `mouthpiece_frames_sent_total{codec="vp8",activity="idle"} ${frames}`,
        `mouthpiece_frames_sent_total{codec="h264",activity="idle"} 1`,
        `mouthpiece_frame_lateness_seconds_bucket{worker="0",le="0.01"} ${fast}`,
        `mouthpiece_frame_lateness_seconds_bucket{worker="0",le="+Inf"} ${fast * 2}`,
        'mouthpiece_build_info{version="a\\"b,c",commit="x"} 1',
        '',
      ].join('\n'),
    );
  const interval = new Interval(scrape(10, 4), scrape(70, 8));
  assert.equal(interval.increase('mouthpiece_frames_sent_total'), 60);
  assert.equal(interval.increase('mouthpiece_frames_sent_total', { codec: 'vp8' }), 60);
  assert.deepEqual(
    interval.buckets('mouthpiece_frame_lateness_seconds').map(({ count }) => count),
    [4, 8],
  );
  assert.equal(interval.after.sum('mouthpiece_build_info', { commit: 'x' }), 1);
});

test('plots are well-formed and numbers are short', () => {
  assert.deepEqual([0, 1234, 12_345, 0.05, 0.00123, 2.5e6].map(short), [
    '0',
    '1230',
    '12.3k',
    '0.05',
    '1.23m',
    '2.5M',
  ]);
  assert.deepEqual(ticks(0, 10), [0, 2, 4, 6, 8, 10]);
  for (const svg of [
    draw({
      kind: 'lines',
      title: 't',
      x: 'x',
      y: 'y',
      lines: [
        {
          name: 'a<b',
          points: [
            [0, 1],
            [1, Number.NaN],
            [2, 3],
          ],
        },
      ],
      limits: [{ name: 'l', y: 2 }],
    }),
    draw({ kind: 'distribution', title: 't', x: 'x', samples: [{ name: 'a', values: [3, 1, 2] }] }),
    draw({ kind: 'stack', title: 't', y: 'y', bars: [{ name: '1', parts: { a: 1, b: 2 } }] }),
    draw({
      kind: 'heat',
      title: 't',
      y: 'y',
      times: [0, 1],
      rows: [{ name: '1', values: [0, 5] }],
    }),
    draw({ kind: 'lines', title: 't', x: 'x', y: 'y', lines: [] }),
  ]) {
    assert.match(svg, /^<svg [\s\S]*<\/svg>$/);
    assert.doesNotMatch(svg, /NaN|undefined|a<b/);
  }
});

test('the command line says what it knows, and refuses what it does not', () => {
  const bench = (...args: string[]): ReturnType<typeof spawnSync> =>
    spawnSync(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        path.resolve(import.meta.dirname, '../../bench/main.ts'),
        ...args,
      ],
      { encoding: 'utf8' },
    );
  const help = bench('--help');
  assert.equal(help.status, 2);
  for (const { name } of SCENARIOS) {
    assert.ok(String(help.stderr).includes(`  ${name} `), name);
  }
  for (const [args, words] of [
    [['nonsense'], /there is no scenario 'nonsense'/],
    [['churn', '--utterances', '3'], /--utterances is not an option of churn/],
    [['churn', '--connects', 'many'], /must be a number/],
    [['churn', '--target', 'wss://x'], /--target needs --key/],
  ] as const) {
    const result = bench(...args);
    assert.equal(result.status, 2);
    assert.match(String(result.stderr), words);
  }
});

test('a quantile is told only of enough samples', () => {
  assert.ok(Number.isNaN(tailQuantile([7], 0.99)) && Number.isNaN(tailQuantile([7], 0.9)));
  assert.equal(tailQuantile([7], 0.5), 7);
  assert.ok(
    Number.isNaN(
      tailQuantile(
        Array.from({ length: 19 }, () => 1),
        0.99,
      ),
    ),
  );
  assert.equal(
    tailQuantile(
      Array.from({ length: 20 }, () => 1),
      0.99,
    ),
    1,
  );
  assert.ok(Number.isNaN(tailQuantile([], 0.5)));
});

test('the ramp of sessions ends at --max, neither beyond nor before', () => {
  const ramp = (from: number, step: number, max: number): number[] => {
    const found: number[] = [];
    for (
      let next = rampTo({ from, step, max }, 0, true);
      next !== undefined;
      next = rampTo({ from, step, max }, next, false)
    ) {
      found.push(next);
    }
    return found;
  };
  assert.deepEqual(ramp(4, 4, 10), [4, 8, 10]);
  assert.deepEqual(ramp(4, 4, 8), [4, 8]);
  assert.deepEqual(ramp(4, 4, 3), [3]);
});

test('a target that is dead, and a key that is wrong, are told in one line', async (t) => {
  const bench = (...args: string[]) =>
    spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', 'bench/main.ts', 'rest', '--small', ...args],
      { cwd: path.resolve(import.meta.dirname, '../..'), encoding: 'utf8', timeout: 60_000 },
    );
  const dead = bench('--target', 'http://127.0.0.1:49151', '--key', 'k');
  assert.match(
    dead.stderr,
    /^bench: http:\/\/127\.0\.0\.1:49151 does not answer \(ECONNREFUSED\)\. .*--target\.\n$/,
  );
  assert.equal(dead.status, 2);
  assert.match(bench('--target', 'nonsense', '--key', 'k').stderr, /^--target must be a URL/);
  const program =
    `require('node:http').createServer((_, res) => { res.writeHead(401).end(); }).listen(0, ` +
    `'127.0.0.1', function () { console.log(this.address().port); });`;
  const server = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.onTestFinished(() => {
    server.kill();
  });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  const wrong = bench('--target', `http://127.0.0.1:${port.toString().trim()}`, '--key', 'k');
  assert.match(wrong.stderr, /^bench: .* does not take this key\. .*--key.*\n$/);
  assert.equal(wrong.status, 2);
});
