// Every scenario of the bench runs small: it finishes, its figures are of a sane size, and its report can be written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHtml } from '../../bench/report/html.ts';
import { type Run, runScenario } from '../../bench/run.ts';
import { baseline } from '../../bench/scenarios/baseline.ts';
import { findPython } from '../../bench/baseline/server.ts';
import { capacity } from '../../bench/scenarios/capacity.ts';
import { churn } from '../../bench/scenarios/churn.ts';
import { latency } from '../../bench/scenarios/latency.ts';
import { network } from '../../bench/scenarios/network.ts';
import { rest } from '../../bench/scenarios/rest.ts';
import { soak } from '../../bench/scenarios/soak.ts';
import { staticVideo } from '../../bench/scenarios/static.ts';
import { type Scenario, holds } from '../../bench/scenario.ts';

type Range = readonly [low: number, high: number];

/** @param ranges figures that must be there and lie within, on any machine that is not broken */
function small(scenario: Scenario, ranges: Readonly<Record<string, Range>>, check: (run: Run) => void = () => {}): void {
  test(`bench ${scenario.name}`, { timeout: 120_000 }, async () => {
    const run = await runScenario(scenario, { options: scenario.small });
    const { figures } = run.outcome;
    for (const [name, [low, high]] of Object.entries(ranges)) assert.ok(figures[name]! >= low && figures[name]! <= high, `${name} is ${figures[name]}, expected ${low} to ${high}; all: ${JSON.stringify(figures)}`);
    const html = toHtml(run);
    assert.match(html, /<h1>/);
    assert.doesNotMatch(html, /undefined|\[object/);
    for (const plot of run.outcome.plots) assert.ok(html.includes(plot.title.slice(0, 12)));
    check(run);
  });
}

const broken = ({ outcome }: Run, name: RegExp): string[] => outcome.bounds.filter((bound) => name.test(bound.name) && !holds(bound)).map((bound) => `${bound.name}: ${bound.value}`);

small(latency, { burstLipsSeen: [1, 1], burstLipsP50Ms: [1, 600], burstSoundP50Ms: [1, 600], burstLedgerP50Ms: [1, 600], realtimeLipsP50Ms: [10, 900], interruptP99Ms: [0, 500], setUpP50Ms: [20, 5000] });
small(capacity, { coresPerSession: [0.005, 0.5], bareEncodeMsPerFrame: [0.1, 20], ratioToBareEncode: [0.5, 20], emptyMb: [50, 1000] });
small(churn, { connects: [12, 12] }, (run) => { assert.deepEqual(broken(run, /failed|left|never ended|slot is free/), []); });
small(soak, { peersAlive: [2, 2], gapsOver300: [0, 20] });
small(network, { 'perfect: longest gap ms': [30, 2000], 'loss 5 %, jitter 50 ms: longest gap ms': [50, 3000] });
small(staticVideo, { realtimeFactor: [0.2, 500], mp4Bytes: [20_000, 10_000_000] });
small(rest, { 'POST /compose/token per second': [10, 1e6] }, (run) => { assert.deepEqual(broken(run, /wrong answers/), []); });
small(baseline, findPython() === null ? {} : { oursFps: [20, 35], aiortcFps: [15, 35], ratio: [0.05, 20] }, (run) => { if (findPython() === null) assert.match(run.outcome.notes[0]!, /^Skipped/); });
