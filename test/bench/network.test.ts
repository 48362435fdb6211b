// The scenarios of the bench that measure packets on their way, small.
import { network } from '../../bench/scenarios/network.ts';
import { transport } from '../../bench/scenarios/transport.ts';
import { small } from './small.ts';

small(network, {
  'perfect: longest gap ms': [30, 2000],
  'loss 5 %, jitter 50 ms: longest gap ms': [50, 3000],
});
small(transport, {
  oursJoinMs: [0.05, 100],
  weriftJoinMs: [0.05, 500],
  oursPacedMs: [0.05, 100],
  weriftPacedMs: [0.05, 200],
  packedRatio: [0.01, 10],
  arrived: [0.9, 1],
});
