// Placement: which worker takes a session, and when none does.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  type WorkerView,
  chooseWorker,
  roomOn,
} from '../../../src/front/placement/choose-worker.ts';

const limits = { maxSessionsPerWorker: 10, maxLoad: 0.85 };
const worker = (index: number, changes: Partial<WorkerView> = {}): WorkerView => ({
  index,
  isReady: true,
  sessions: 0,
  weight: changes.sessions ?? 0,
  load: 0,
  costPerSession: 0.05,
  latenessP99Ms: 2,
  extraCost: new Map([['rig', 0]]),
  extraPromised: 0,
  ...changes,
});

test('the worker with the least promised load takes the session', () => {
  assert.equal(
    chooseWorker(
      [worker(0, { sessions: 3 }), worker(1, { sessions: 1 }), worker(2, { sessions: 2 })],
      limits,
    )!.index,
    1,
  );
});

test('a session with a large picture needs the room of several', () => {
  const busy = worker(0, { sessions: 10, costPerSession: 0.06 });
  const many = { maxSessionsPerWorker: 50, maxLoad: 0.85 };
  assert.notEqual(chooseWorker([busy], many, 'rig', 4), undefined);
  assert.equal(chooseWorker([busy], many, 'rig', 4.5), undefined);
  const large = worker(0, { sessions: 4, weight: 14, costPerSession: 0.06 });
  assert.equal(chooseWorker([large], many), undefined);
  assert.equal(roomOn(large, many), 0);
  assert.equal(roomOn(worker(0, { sessions: 2, weight: 7, costPerSession: 0.06 }), many), 7);
});

test('idle sessions count as if they spoke: sessions are refused before quality suffers', () => {
  assert.equal(
    chooseWorker([worker(0, { sessions: 5, load: 0.02, costPerSession: 0.15 })], limits),
    undefined,
  );
  assert.notEqual(
    chooseWorker([worker(0, { sessions: 4, load: 0.02, costPerSession: 0.15 })], limits),
    undefined,
  );
});

test('a late, full, or unready worker takes nothing; the first session always fits', () => {
  assert.equal(
    chooseWorker(
      [
        worker(0, { sessions: 2, latenessP99Ms: 20, load: 0.5 }),
        worker(1, { sessions: 10, costPerSession: 0.001 }),
        worker(2, { isReady: false }),
      ],
      limits,
    ),
    undefined,
  );
  assert.notEqual(chooseWorker([worker(0, { costPerSession: 2 })], limits), undefined);
});

test('of a burst as many sessions are taken as could all speak, before the worker reports their load', () => {
  for (const [costPerSession, fit] of [
    [0.052, 16],
    [0.104, 8],
  ] as const) {
    let sessions = 0;
    while (
      sessions < 50 &&
      chooseWorker([worker(0, { sessions, costPerSession, load: 0.01 })], {
        ...limits,
        maxSessionsPerWorker: 50,
      }) !== undefined
    ) {
      sessions++;
    }
    assert.equal(sessions, fit);
  }
});

test('the reported room is what placement then admits', () => {
  const views: Partial<WorkerView>[] = [
    {},
    { costPerSession: 2 },
    { sessions: 3, load: 0.4 },
    { sessions: 4, costPerSession: 0.15 },
    { sessions: 5, costPerSession: 0.15 },
    { sessions: 2, extraPromised: 0.5 },
    { isReady: false },
    { sessions: 2, latenessP99Ms: 20, load: 0.5 },
    { sessions: 10 },
    { costPerSession: 0.052 },
  ];
  for (const view of views) {
    let admitted = 0;
    while (
      chooseWorker([worker(0, { ...view, sessions: (view.sessions ?? 0) + admitted })], limits) !==
      undefined
    ) {
      admitted++;
    }
    assert.equal(roomOn(worker(0, view), limits), admitted, JSON.stringify(view));
  }
});

test('a costly renderer counts with its cost, and only a worker that has it gets the session', () => {
  const extraCost = new Map([
    ['rig', 0],
    ['wav2lip', 0.5],
  ]);
  assert.equal(chooseWorker([worker(0), worker(1, { extraCost })], limits, 'wav2lip')!.index, 1);
  assert.equal(
    chooseWorker([worker(1, { extraCost, sessions: 1, extraPromised: 0.5 })], limits, 'wav2lip'),
    undefined,
  );
  assert.notEqual(
    chooseWorker([worker(1, { extraCost, sessions: 1, extraPromised: 0.5 })], limits),
    undefined,
  );
});
