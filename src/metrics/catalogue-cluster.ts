// Metrics of the catalogue: servers that share a Redis.
import { counter, gauge } from './metric-family.ts';

/** Metrics of servers that share a Redis. */
export const CLUSTER_METRICS = {
  // ── cluster ────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_cluster_nodes: gauge(
    'front',
    'Live servers that share this Redis, by the last heartbeat of this one.',
  ),
  mouthpiece_cluster_nodes_lost_total: counter(
    'front',
    'Dead servers after which this one cleared up.',
  ),
  mouthpiece_cluster_sessions_freed_total: counter(
    'front',
    'Sessions of dead servers whose token and quota slot this one freed.',
  ),
} as const;
