// Rooms of sessions on the LiveKit server of the operator (LIVEKIT_URL).
import type { Logger } from '../../base/log.ts';
import { wallSeconds } from '../../base/time.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import { type VideoGrants, signAccessToken } from './access-token.ts';
import { RemoteRoom } from './remote-room.ts';
import type { RoomMeter } from './room-meter.ts';
import { type OperatorServer, RoomService } from './room-service.ts';
import { AVATAR_IDENTITY, VIEWER_IDENTITY } from './signal-messages.ts';
import { ViewerRole } from './viewer-role.ts';

/** The longest session of all. */
const TOKEN_TTL_SECONDS = 24 * 3600;

/** Makes the rooms of sessions. */
export class OperatorRooms {
  readonly #server: OperatorServer;
  readonly #videoCodec: VideoCodec;
  readonly #meter: RoomMeter;

  constructor(server: OperatorServer, videoCodec: VideoCodec, meter: RoomMeter) {
    this.#server = server;
    this.#videoCodec = videoCodec;
    this.#meter = meter;
  }

  /** The room of a session, named after it. */
  create(sessionId: string, destination: string, log: Logger): RemoteRoom {
    const server = this.#server;
    const room = `mouthpiece-${sessionId}`;
    const token = (identity: string, kind: string, grants: VideoGrants): string => {
      const claims = { identity, kind, name: identity, video: { room, roomJoin: true, ...grants } };
      return signAccessToken(server, claims, TOKEN_TTL_SECONDS, wallSeconds());
    };
    return new RemoteRoom({
      server: { url: server.url.replace(/\/$/, ''), addresses: undefined, isTrusted: true },
      token: token(AVATAR_IDENTITY, 'agent', {
        canPublish: true,
        canPublishData: true,
        canSubscribe: false,
      }),
      videoCodec: this.#videoCodec,
      role: new ViewerRole({
        room,
        url: server.url,
        token: token(VIEWER_IDENTITY, 'standard', {
          canSubscribe: true,
          canPublish: false,
          canPublishData: false,
        }),
        destination,
        service: new RoomService(server),
        log,
      }),
      meter: this.#meter,
      log,
    });
  }
}
