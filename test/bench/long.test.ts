// The scenarios of the bench that wait long, or need the machine for themselves; small.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { hasBalancer } from '../../bench/balancer.ts';
import { ENTRY_POINTS } from '../../bench/hostile/entry-points.ts';
import { clusterChurn } from '../../bench/scenarios/cluster-churn.ts';
import { clusterFaults } from '../../bench/scenarios/cluster-faults.ts';
import { clusterUpgrade } from '../../bench/scenarios/cluster-upgrade.ts';
import { conversations } from '../../bench/scenarios/conversations.ts';
import { hostile } from '../../bench/scenarios/hostile.ts';
import { soak } from '../../bench/scenarios/soak.ts';
import { ROOT } from '../harness/server.ts';
import { small } from './small.ts';

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
small(soak, { peersAlive: [2, 2], gapsOver300: [0, 200], aliveMb: [40, 400], rssMb: [60, 1000] });
if (existsSync(path.join(ROOT, 'scripts/talk/node_modules'))) {
  small(conversations, { p99Ms: [0.5, 500], withoutP99Ms: [0.5, 500], turns: [1, 100] });
} else {
  test.skip('bench conversations: needs scripts/talk (npm run setup)');
}
small(clusterChurn, { lostElsewhere: [0, 0], sessionsLeft: [0, 0], nodesLeft: [4, 4] });
if (hasBalancer()) {
  small(clusterFaults, { lostElsewhere: [0, 0], lostOfKilled: [1, 4], backMs: [500, 30_000] });
  small(clusterUpgrade, { drained: [1, 9], lost: [0, 0], gone: [0, 0], tokensRefused: [0, 0] });
} else {
  test.skip('bench cluster-faults, cluster-upgrade: need HAProxy (apt-get install haproxy)');
}
