// Scenarios of the bench that measure one server, small. The others: load.test.ts, front.test.ts,
// network.test.ts, long.test.ts.
import assert from 'node:assert/strict';
import { churn } from '../../bench/scenarios/churn.ts';
import { latency } from '../../bench/scenarios/latency.ts';
import { staticVideo } from '../../bench/scenarios/static.ts';
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
small(staticVideo, { realtimeFactor: [0.2, 500], mp4Bytes: [20_000, 10_000_000] });
