// All rooms that this server serves itself, and the signal WebSocket through which viewers join.
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, wallSeconds } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../http/socket.ts';
import type { IceServer } from '../sessions/ice-credentials.ts';
import { EarlyMessageMemory } from '../sessions/early-messages.ts';
import { costOf, MessageBudget, type SharedBudget } from '../sessions/message-budget.ts';
import type { Elsewhere } from '../sessions/session-ports.ts';
import { type LiveKitKey, signAccessToken, verifyAccessToken } from './access-token.ts';
import { type Join, readJoinRequest } from './join-request.ts';
import { OwnRoom } from './own-room.ts';
import { PassedOnViewer } from './passed-on-viewer.ts';
import type { RoomMeter } from './room-meter.ts';
import { VIEWER_IDENTITY } from './signal-messages.ts';

/** What the rooms are built from. */
export interface RoomsOptions {
  /** Signs tokens: the same on all servers, each of which lets viewers in. */
  readonly secret: Buffer;
  readonly iceServers: () => readonly IceServer[];
  /** Takes viewers into rooms that other servers serve. */
  readonly elsewhere: Pick<Elsewhere, 'openLeg'>;
  readonly meter: RoomMeter;
  /** What the messages of all sockets, those of sessions too, may cost the main thread. */
  readonly budget: SharedBudget;
}

/** A room with its budgets, which outlive each of its sockets. */
interface GuardedRoom {
  readonly room: OwnRoom;
  readonly messages: MessageBudget;
  readonly joins: TokenBucket;
}

/** The room of a viewer, here or at another server. */
export type RoomSocketData = GuardedRoom | PassedOnViewer;

/**
 * Joins of one room: each costs the worker a new peer, 4 ms. livekit-client joins again when its
 * network changes.
 */
const JOINS_PER_SECOND = 1;
const JOIN_BURST = 10;
/** The longest session of all. */
const TOKEN_TTL_SECONDS = 24 * 3600;

/** The rooms, by name. */
export class Rooms {
  readonly #rooms = new Map<string, GuardedRoom>();
  readonly #options: RoomsOptions;
  readonly #memory = new EarlyMessageMemory();
  readonly #key: LiveKitKey;

  constructor(options: RoomsOptions) {
    this.#options = options;
    this.#key = { key: 'mouthpiece', secret: options.secret.toString('base64url') };
  }

  /** Makes the room of a session, named after it. */
  create(sessionId: string, request: SocketRequest, destination: string, log: Logger): OwnRoom {
    const nowMs = monotonicMs();
    const messages = new MessageBudget(this.#options.budget, nowMs);
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
        messages.close();
        this.#rooms.delete(sessionId);
      },
    });
    const joins = new TokenBucket(JOINS_PER_SECOND, JOIN_BURST, nowMs);
    this.#rooms.set(sessionId, { room, messages, joins });
    return room;
  }

  /** The name of the room that a token is for; undefined: the token is not ours. */
  nameOf(accessToken: string): string | undefined {
    const { roomJoin, room } =
      verifyAccessToken(accessToken, this.#key, wallSeconds())?.video ?? {};
    return roomJoin === true ? room : undefined;
  }

  /** Whether this server serves the room. */
  has(name: string): boolean {
    return this.#rooms.has(name);
  }

  /** The handlers of WSS /rtc/v1. */
  handlers(): SocketHandlers<RoomSocketData> {
    return {
      admit: (request) => {
        const guarded = this.#rooms.get(this.#joinOf(request).name);
        if (guarded?.joins.take(1, monotonicMs()) === false) {
          throw new ServiceError('RATE_LIMITED', undefined, 1 / JOINS_PER_SECOND);
        }
      },
      open: (socket, request) => {
        const { name, join } = this.#joinOf(request);
        const guarded = this.#rooms.get(name);
        socket.trust();
        if (guarded === undefined) {
          this.#passOn(socket, name, request);
        } else {
          socket.data = guarded;
          guarded.room.join(socket, join);
        }
      },
      message: (socket, message, isBinary) => {
        this.#receive(socket, message, isBinary);
      },
      close: (socket) => {
        const { data } = socket;
        if (data instanceof PassedOnViewer) {
          data.closed();
        } else {
          data?.room.disconnected(socket);
        }
      },
    };
  }

  #passOn(socket: Socket<RoomSocketData>, name: string, request: SocketRequest): void {
    const { elsewhere, budget } = this.#options;
    const viewer = new PassedOnViewer(socket, budget, this.#memory);
    socket.data = viewer;
    void viewer.open(elsewhere, name, request);
  }

  /** Dropping a message costs nearly as much as reading it: who floods for long is sent away. */
  #receive(socket: Socket<RoomSocketData>, message: ArrayBuffer, isBinary: boolean): void {
    if (socket.data instanceof PassedOnViewer) {
      if (!socket.data.message(message, isBinary)) {
        this.#options.meter.dropped('rate');
      }
      return;
    }
    if (socket.data === undefined) {
      return; // the room was over before the socket was open
    }
    const { room, messages } = socket.data;
    const verdict = messages.take(costOf(message.byteLength, false), monotonicMs());
    if (verdict === 'taken') {
      room.message(socket, message);
      return;
    }
    this.#options.meter.dropped('rate');
    if (verdict === 'exhausted') {
      socket.end(1008, 'RATE_LIMITED');
    }
  }

  /** @throws ServiceError INVALID_ROOM_TOKEN or INVALID_JOIN_REQUEST */
  #joinOf(request: SocketRequest): { readonly name: string; readonly join: Join } {
    const { query } = request;
    const bearer = /^Bearer (.+)$/.exec(request.header('authorization'))?.[1];
    const name = this.nameOf(query.get('access_token') ?? bearer ?? '');
    if (name === undefined) {
      throw new ServiceError('INVALID_ROOM_TOKEN');
    }
    const join = readJoinRequest(query.get('join_request') ?? '');
    if (join === undefined) {
      throw new ServiceError('INVALID_JOIN_REQUEST');
    }
    return { name, join };
  }
}
