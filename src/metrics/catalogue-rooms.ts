// Metrics of the catalogue: LiveKit rooms.
import { counter } from './metric-family.ts';

/** Metrics of LiveKit rooms. */
export const ROOM_METRICS = {
  // ── rooms ──────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_livekit_joins_total: counter(
    'front',
    'Signal connections of viewers in rooms of ours, and of ours to rooms of LiveKit servers: ' +
      'joined, resumed after a lost connection, joined again because there was nothing to resume, ' +
      'refused.',
    { result: ['joined', 'resumed', 'restarted', 'refused'] },
  ),
  mouthpiece_livekit_messages_dropped_total: counter(
    'front',
    'Messages that were not read: signal messages of viewers and LiveKit servers, and data ' +
      'messages in rooms. Over the budget, too large, or malformed.',
    { reason: ['rate', 'too_large', 'malformed'] },
  ),
  mouthpiece_livekit_room_errors_total: counter(
    'front',
    'Faults of rooms on LiveKit servers: a room that could not be joined, a connection that was ' +
      'lost (and is restored), one that could not be restored in a minute, which ends the session.',
    { reason: ['join_failed', 'connection_lost', 'room_lost'] },
  ),
  mouthpiece_livekit_data_received_bytes_total: counter(
    'worker',
    'Data messages in rooms of LiveKit servers: of the agent, of others, and those that were not ' +
      'read since they were too many or of nobody who counts.',
    { verdict: ['heeded', 'other', 'dropped'] },
  ),
} as const;
