// All rooms that this server serves itself, and the signal WebSocket through which viewers join.
import { randomBytes } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { wallSeconds } from '../../base/time.ts';
import type { SocketHandlers, SocketRequest } from '../http/socket.ts';
import type { IceServer } from '../sessions/ice-credentials.ts';
import { type LiveKitKey, signAccessToken, verifyAccessToken } from './access-token.ts';
import { type Join, readJoinRequest } from './join-request.ts';
import { OwnRoom } from './own-room.ts';
import type { RoomMeter } from './room-meter.ts';
import { VIEWER_IDENTITY } from './signal-messages.ts';

/** What the rooms are built from. */
export interface RoomsOptions {
  readonly iceServers: () => readonly IceServer[];
  readonly meter: RoomMeter;
}

/** The longest session of all. */
const TOKEN_TTL_SECONDS = 24 * 3600;

/** The rooms, by name. */
export class Rooms {
  readonly #rooms = new Map<string, OwnRoom>();
  readonly #options: RoomsOptions;
  /** Tokens end with the process: so do the rooms. */
  readonly #key: LiveKitKey = { key: 'mouthpiece', secret: randomBytes(32).toString('base64url') };

  constructor(options: RoomsOptions) {
    this.#options = options;
  }

  /** Makes the room of a session, named after it. */
  create(sessionId: string, request: SocketRequest, destination: string, log: Logger): OwnRoom {
    const room = new OwnRoom({
      name: sessionId,
      url: request.serverOrigin.replace(/^http/, 'ws'),
      token: signAccessToken(
        this.#key,
        {
          identity: VIEWER_IDENTITY,
          video: {
            room: sessionId,
            roomJoin: true,
            canSubscribe: true,
            canPublish: false,
            canPublishData: false,
          },
        },
        TOKEN_TTL_SECONDS,
        wallSeconds(),
      ),
      destination,
      iceServers: this.#options.iceServers,
      meter: this.#options.meter,
      log,
      onClosed: () => {
        this.#rooms.delete(sessionId);
      },
    });
    this.#rooms.set(sessionId, room);
    return room;
  }

  /** The room that a token is for; undefined: the token is not ours, or its room is over. */
  find(accessToken: string): OwnRoom | undefined {
    const { roomJoin, room } =
      verifyAccessToken(accessToken, this.#key, wallSeconds())?.video ?? {};
    return roomJoin === true && room !== undefined ? this.#rooms.get(room) : undefined;
  }

  /** The handlers of WSS /rtc/v1. */
  handlers(): SocketHandlers<OwnRoom> {
    return {
      admit: (request) => {
        this.#joinOf(request);
      },
      open: (socket, request) => {
        const { room, join } = this.#joinOf(request);
        socket.trust();
        socket.data = room;
        room.join(socket, join);
      },
      message: (socket, message) => {
        socket.data?.message(socket, message);
      },
      close: (socket) => {
        socket.data?.disconnected(socket);
      },
    };
  }

  /** @throws ServiceError INVALID_ROOM_TOKEN or INVALID_JOIN_REQUEST */
  #joinOf(request: SocketRequest): { readonly room: OwnRoom; readonly join: Join } {
    const { query } = request;
    const bearer = /^Bearer (.+)$/.exec(request.header('authorization'))?.[1];
    const room = this.find(query.get('access_token') ?? bearer ?? '');
    if (room === undefined) {
      throw new ServiceError('INVALID_ROOM_TOKEN');
    }
    const join = readJoinRequest(query.get('join_request') ?? '');
    if (join === undefined) {
      throw new ServiceError('INVALID_JOIN_REQUEST');
    }
    return { room, join };
  }
}
