// Every scenario by its name on the command line.
import type { Scenario } from '../scenario.ts';
import { baseline } from './baseline.ts';
import { capacity } from './capacity.ts';
import { churn } from './churn.ts';
import { cluster } from './cluster.ts';
import { clusterChurn } from './cluster-churn.ts';
import { clusterFaults } from './cluster-faults.ts';
import { clusterUpgrade } from './cluster-upgrade.ts';
import { compare } from './compare.ts';
import { conversations } from './conversations.ts';
import { hostile } from './hostile.ts';
import { latency } from './latency.ts';
import { load } from './load.ts';
import { neighbours } from './neighbours.ts';
import { network } from './network.ts';
import { rest } from './rest.ts';
import { soak } from './soak.ts';
import { staticVideo } from './static.ts';
import { transport } from './transport.ts';

export const SCENARIOS: readonly Scenario[] = [
  latency,
  load,
  capacity,
  churn,
  soak,
  network,
  neighbours,
  conversations,
  staticVideo,
  rest,
  hostile,
  transport,
  cluster,
  clusterFaults,
  clusterChurn,
  clusterUpgrade,
  compare,
  baseline,
];
