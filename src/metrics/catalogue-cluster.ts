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
  mouthpiece_relayed_sessions: gauge(
    'front',
    'Sessions of clients of this server that another server runs.',
  ),
  mouthpiece_relays_total: counter(
    'front',
    'Connections to other servers for sessions of clients of this one: opened, unreachable, refused ' +
      'by the other server after that, lost during the session.',
    { outcome: ['opened', 'unreachable', 'refused', 'lost'] },
  ),
  mouthpiece_relay_bytes_total: counter(
    'front',
    'Payload bytes of messages that were passed on: in, from clients; out, to clients.',
    { direction: ['in', 'out'] },
  ),
} as const;
