// What placement is told, with the times as arguments.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { LoadReporter } from '../../src/worker/load-reporter.ts';

const MEASURED = 0.05;

test('load is the share of the core since the last report', () => {
  const reporter = new LoadReporter(MEASURED, 1000, 200);
  assert.equal(reporter.report(2000, 700, 3).load, 0.5);
  const second = reporter.report(4000, 900, 2);
  assert.deepEqual([second.load, second.sessions], [0.1, 2]);
});

test('lateness is that of one second', () => {
  const reporter = new LoadReporter(MEASURED, 0, 0);
  reporter.recordLateness(40);
  assert.equal(reporter.report(1000, 0, 1).latenessP99Ms, 40);
  assert.equal(reporter.report(2000, 0, 1).latenessP99Ms, 0);
});

test('the cost is learnt from calm seconds with enough sessions, within bounds', () => {
  const reporter = new LoadReporter(MEASURED, 0, 0);
  let nowMs = 0;
  let cpuMs = 0;
  const second = (load: number): number => {
    nowMs += 1000;
    cpuMs += load * 1000;
    return reporter.report(nowMs, cpuMs, 4).costPerSession;
  };
  reporter.setSessions(0, 2);
  assert.equal(second(0.4), MEASURED, 'two sessions say too little');
  reporter.setSessions(0, 4);
  reporter.sessionJoined();
  assert.equal(second(0.4), MEASURED, 'a second in which somebody joined');
  const learnt = second(0.28);
  assert.ok(Math.abs(learnt - (MEASURED + 0.2 * (0.07 - MEASURED))) < 1e-9, `${learnt}`);
  for (let i = 0; i < 100; i++) {
    second(3);
  }
  assert.ok(Math.abs(second(3) - 2 * MEASURED) < 1e-6, 'twice the measured cost at most');
  for (let i = 0; i < 100; i++) {
    second(0);
  }
  assert.ok(Math.abs(second(0) - 0.8 * MEASURED) < 1e-6, '0.8 of it at least');
});

test('an idle session counts 0.35 of a speaking one', () => {
  const reporter = new LoadReporter(MEASURED, 0, 0);
  reporter.setSessions(8, 0);
  assert.equal(reporter.report(1000, 900, 8).costPerSession, MEASURED, '2.8 are below 3');
  reporter.setSessions(10, 0);
  const cost = reporter.report(2000, 900 + 245, 10).costPerSession;
  assert.ok(Math.abs(cost - (MEASURED + 0.2 * (0.07 - MEASURED))) < 1e-9, `${cost}`);
});
