// Every scenario by its name on the command line.
import type { Scenario } from '../scenario.ts';
import { capacity } from './capacity.ts';
import { churn } from './churn.ts';
import { latency } from './latency.ts';
import { network } from './network.ts';

export const SCENARIOS: readonly Scenario[] = [latency, capacity, churn, network];
