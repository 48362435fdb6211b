// The scenarios of the bench that load a core, small. The others: scenarios.test.ts.
import assert from 'node:assert/strict';
import { baseline } from '../../bench/scenarios/baseline.ts';
import { findPython } from '../../bench/baseline/server.ts';
import { capacity } from '../../bench/scenarios/capacity.ts';
import { neighbours } from '../../bench/scenarios/neighbours.ts';
import { small } from './small.ts';

// Rooms and, for the comparison, p2p.
small(
  { ...capacity, small: { ...capacity.small, kind: 'livekit' } },
  {
    coresPerSession: [0.005, 0.5],
    bareEncodeMsPerFrame: [0.1, 20],
    ratioToBareEncode: [0.5, 20],
    emptyMb: [50, 1000],
    roomAgainstP2p: [0.2, 5],
  },
);
small(neighbours, { runMs: [0.5, 100], rigP99Ms: [0.5, 500], wav2lipP99Ms: [0.5, 500] });
small(
  baseline,
  findPython() === undefined ? {} : { oursFps: [20, 35], aiortcFps: [15, 35], ratio: [0.05, 20] },
  (run) => {
    if (findPython() === undefined) {
      assert.match(run.outcome.notes[0]!, /^Skipped/);
    }
  },
);
