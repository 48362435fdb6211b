// The role of a session that has a room of its own on the operator's LiveKit server: tells the client
// where to join, waits for it, and deletes the room at the end.
import { ParticipantInfo_State } from '@livekit/protocol';
import { after } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { type LinkedSession, sendSessionFacts } from '../sessions/session-link.ts';
import type { RoomRole } from './room-role.ts';
import type { JoinedRoom, RoomParticipant } from './server-signals.ts';
import type { RoomService } from './room-service.ts';
import { VIEWER_IDENTITY } from './signal-messages.ts';

/** What the role is built from. */
export interface ViewerRoleOptions {
  readonly room: string;
  /** What the client is told. */
  readonly url: string;
  readonly token: string;
  readonly destination: string;
  readonly service: RoomService;
  readonly log: Logger;
}

/** Without the viewer for this long, the session ends. */
const VIEWER_TIMEOUT_MS = 30_000;

/** The room of one session. */
export class ViewerRole implements RoomRole {
  readonly kind = 'livekit';
  readonly #options: ViewerRoleOptions;
  #session: LinkedSession | undefined = undefined;
  #timer: NodeJS.Timeout | undefined = undefined;

  constructor(options: ViewerRoleOptions) {
    this.#options = options;
  }

  async prepare(): Promise<void> {
    const { service, room, log } = this.#options;
    await service.create(room).catch((error: unknown) => {
      // The server makes it at the join, with its own settings.
      log.warn({ err: error }, 'a LiveKit room was not made ahead');
    });
  }

  opened(session: LinkedSession): void {
    this.#session = session;
    const { destination, url, token } = this.#options;
    sendSessionFacts(session, destination);
    session.send({ type: 'room', livekit_url: url, livekit_token: token });
    this.#awaitViewer();
  }

  joined({ otherParticipants }: JoinedRoom): void {
    this.changed(otherParticipants);
  }

  changed(participants: readonly RoomParticipant[]): void {
    const viewer = participants.find(({ identity }) => identity === VIEWER_IDENTITY);
    if (viewer === undefined) {
      return;
    }
    if (viewer.state === ParticipantInfo_State.DISCONNECTED) {
      this.#awaitViewer();
    } else {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  closed(): void {
    clearTimeout(this.#timer);
    const { service, room, log } = this.#options;
    service.delete(room).catch((error: unknown) => {
      log.warn({ err: error }, 'a LiveKit room was not deleted; it closes when all have left');
    });
  }

  #awaitViewer(): void {
    clearTimeout(this.#timer);
    this.#timer = after(VIEWER_TIMEOUT_MS, 'the wait for a viewer', () => {
      this.#session?.end('join_timeout');
    });
  }
}
