// Metrics of the catalogue: LiveKit rooms.
import { counter } from './metric-family.ts';

/** Metrics of LiveKit rooms. */
export const ROOM_METRICS = {
  // ── rooms ──────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_livekit_joins_total: counter(
    'front',
    'Viewers that opened the signal connection of a room of ours: joined, resumed after a lost ' +
      'connection, asked to join again because there was nothing to resume, refused because the ' +
      'offer could not be answered.',
    { result: ['joined', 'resumed', 'restarted', 'refused'] },
  ),
  mouthpiece_livekit_messages_dropped_total: counter(
    'front',
    'Signal messages of viewers that were not read: over the budget of the viewer, too large, or ' +
      'malformed.',
    { reason: ['rate', 'too_large', 'malformed'] },
  ),
} as const;
