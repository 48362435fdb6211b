// Most scenarios of the bench, small. The others: load.test.ts, front.test.ts, long.test.ts.
import assert from 'node:assert/strict';
import { churn } from '../../bench/scenarios/churn.ts';
import { latency } from '../../bench/scenarios/latency.ts';
import { network } from '../../bench/scenarios/network.ts';
import { staticVideo } from '../../bench/scenarios/static.ts';
import { transport } from '../../bench/scenarios/transport.ts';
import { broken, small } from './small.ts';

small(latency, {
  burstLipsSeen: [1, 1],
  burstLipsP50Ms: [1, 600],
  burstSoundP50Ms: [1, 600],
  burstLedgerP50Ms: [1, 600],
  realtimeLipsP50Ms: [10, 900],
  interruptP50Ms: [0, 500],
  setUpP50Ms: [20, 5000],
});
small(
  churn,
  { connects: [12, 12], heapKbPerConnect: [-1000, 1000], mallocKbPerConnect: [-3000, 3000] },
  (run) => {
    assert.deepEqual(broken(run, /failed|left|never ended|slot is free/), []);
  },
);
small(network, {
  'perfect: longest gap ms': [30, 2000],
  'loss 5 %, jitter 50 ms: longest gap ms': [50, 3000],
});
small(staticVideo, { realtimeFactor: [0.2, 500], mp4Bytes: [20_000, 10_000_000] });
small(transport, {
  oursJoinMs: [0.05, 100],
  weriftJoinMs: [0.05, 500],
  oursPacedMs: [0.05, 100],
  weriftPacedMs: [0.05, 200],
  packedRatio: [0.01, 10],
  arrived: [0.9, 1],
});
