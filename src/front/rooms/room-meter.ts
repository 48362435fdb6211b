// Counts what happens in rooms.
import type { LabelsOf } from '../../metrics/catalogue.ts';
import type { Metrics } from '../../metrics/metrics.ts';

type JoinResult = LabelsOf<'mouthpiece_livekit_joins_total'>['result'];
type RoomError = LabelsOf<'mouthpiece_livekit_room_errors_total'>['reason'];
type DropReason = LabelsOf<'mouthpiece_livekit_messages_dropped_total'>['reason'];

/** Counts for the metrics of rooms. */
export interface RoomMeter {
  joined(result: JoinResult): void;
  /** A room on a LiveKit server has a fault. */
  failed(reason: RoomError): void;
  /** A signal message was not read. */
  dropped(reason: DropReason): void;
}

/** The meter of a server. */
export const createRoomMeter = (metrics: Metrics): RoomMeter => ({
  joined: (result) => {
    metrics.counter('mouthpiece_livekit_joins_total', { result }).add();
  },
  failed: (reason) => {
    metrics.counter('mouthpiece_livekit_room_errors_total', { reason }).add();
  },
  dropped: (reason) => {
    metrics.counter('mouthpiece_livekit_messages_dropped_total', { reason }).add();
  },
});
