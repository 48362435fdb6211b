// The scenarios of the bench that need a core of their own at full size, small here. The others:
// scenarios.test.ts.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { ENTRY_POINTS } from '../../bench/hostile/entry-points.ts';
import { baseline } from '../../bench/scenarios/baseline.ts';
import { findPython } from '../../bench/baseline/server.ts';
import { capacity } from '../../bench/scenarios/capacity.ts';
import { conversations } from '../../bench/scenarios/conversations.ts';
import { hostile } from '../../bench/scenarios/hostile.ts';
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
  hostile,
  {
    'calm: fps': [20, 45],
    'all: fps': [15, 45],
    'all: lost': [0, 0],
    'calm again: resident MB': [60, 1000],
  },
  ({ outcome }) => {
    const rows = outcome.tables[0]!.rows;
    const names = ENTRY_POINTS.map(({ name }) => name);
    assert.deepEqual(
      rows.map(([entryPoint]) => entryPoint),
      [...names.slice(0, Number(hostile.small['alone'])), ...names.map((name) => `all: ${name}`)],
      'every entry point was attacked',
    );
    for (const [entryPoint, , attempted, , saw] of rows) {
      // The server's time limits for these end after this short a run.
      const isSlow = /slow-body|idle-sockets/.test(String(entryPoint));
      assert.ok(
        Number(attempted) > 0 && (isSlow || saw !== ''),
        `${entryPoint}: ${attempted} a second were attempted, and seen was "${saw}"`,
      );
    }
  },
);
small(
  baseline,
  findPython() === undefined ? {} : { oursFps: [20, 35], aiortcFps: [15, 35], ratio: [0.05, 20] },
  (run) => {
    if (findPython() === undefined) {
      assert.match(run.outcome.notes[0]!, /^Skipped/);
    }
  },
);
