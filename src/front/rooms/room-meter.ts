// Counts what happens in rooms.
import type { LabelsOf } from '../../metrics/catalogue.ts';
import type { Metrics } from '../../metrics/metrics.ts';

type JoinResult = LabelsOf<'mouthpiece_livekit_joins_total'>['result'];
type DropReason = LabelsOf<'mouthpiece_livekit_messages_dropped_total'>['reason'];

/** Counts for the metrics of rooms. */
export interface RoomMeter {
  joined(result: JoinResult): void;
  /** A signal message was not read. */
  dropped(reason: DropReason): void;
}

/** The meter of a server. */
export const createRoomMeter = (metrics: Metrics): RoomMeter => ({
  joined: (result) => {
    metrics.counter('mouthpiece_livekit_joins_total', { result }).add();
  },
  dropped: (reason) => {
    metrics.counter('mouthpiece_livekit_messages_dropped_total', { reason }).add();
  },
});
