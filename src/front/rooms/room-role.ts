// What a session does in a room of a LiveKit server, apart from being there.
import type { EndReason } from '../../base/session-ends.ts';
import type { LinkedSession } from '../sessions/session-link.ts';
import type { JoinedRoom, RoomParticipant } from './server-signals.ts';

/** What a session does in a room. */
export interface RoomRole {
  readonly kind: 'livekit' | 'agent';
  /** What has to be done before the room is joined. Does not reject. */
  prepare?(): Promise<void>;
  /** The session has been placed on a worker. */
  opened(session: LinkedSession): void;
  /** The room was joined, at first or again. @throws ServiceError when it is of no use */
  joined(join: JoinedRoom): void;
  /** Participants came, changed or left. */
  changed(participants: readonly RoomParticipant[]): void;
  /** A message of somebody in the room. */
  data?(message: Uint8Array): void;
  /** The session is over. */
  closed(reason: EndReason): void;
}
