// The scenarios of the bench that load a core, small. The others: scenarios.test.ts, front.test.ts.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { baseline } from '../../bench/scenarios/baseline.ts';
import { findPython } from '../../bench/baseline/server.ts';
import { capacity } from '../../bench/scenarios/capacity.ts';
import { conversations } from '../../bench/scenarios/conversations.ts';
import { neighbours } from '../../bench/scenarios/neighbours.ts';
import { ROOT } from '../harness/server.ts';
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
if (existsSync(path.join(ROOT, 'scripts/talk/node_modules'))) {
  small(conversations, { p99Ms: [0.5, 500], withoutP99Ms: [0.5, 500], turns: [1, 100] });
}
small(
  baseline,
  findPython() === undefined ? {} : { oursFps: [20, 35], aiortcFps: [15, 35], ratio: [0.05, 20] },
  (run) => {
    if (findPython() === undefined) {
      assert.match(run.outcome.notes[0]!, /^Skipped/);
    }
  },
);
