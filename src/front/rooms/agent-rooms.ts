// POST /integrations/livekit/agents: opens a session that joins somebody else's room.
import { ServiceError } from '../../base/errors.ts';
import { monotonicMs } from '../../base/time.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { SocketRequest } from '../http/socket.ts';
import type { SessionService } from '../sessions/session-service.ts';
import type { SessionTokens } from '../sessions/session-tokens.ts';
import { AgentRole } from './agent-role.ts';
import { JoinLimits } from './join-limits.ts';
import { checkLiveKitUrl } from './livekit-url.ts';
import { RemoteRoom } from './remote-room.ts';
import type { RoomMeter } from './room-meter.ts';

/** What the caller asks for. */
export interface AgentRequest {
  readonly sessionToken: string;
  /** For the avatar, as the caller's agent got it from its LiveKit server. */
  readonly livekitToken: string;
  readonly livekitUrl: string;
}

/** Options of AgentRooms. */
export interface AgentRoomsOptions {
  readonly sessions: Pick<SessionService, 'openHeadless'>;
  readonly tokens: Pick<SessionTokens, 'find'>;
  /** Hosts that may be reached though they are not public: LIVEKIT_HOSTS. */
  readonly hosts: readonly string[];
  readonly videoCodec: VideoCodec;
  readonly meter: RoomMeter;
}

/** Sends avatars into rooms. */
export class AgentRooms {
  readonly #options: AgentRoomsOptions;
  readonly #limits = new JoinLimits();

  constructor(options: AgentRoomsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the avatar is in the room.
   * @returns the id of its session
   * @throws ServiceError that says why it is not; the session is over then
   */
  async join(
    { sessionToken, livekitToken, livekitUrl }: AgentRequest,
    caller: Omit<SocketRequest, 'query'>,
  ): Promise<string> {
    const { sessions, tokens, hosts, videoCodec, meter } = this.#options;
    // Nobody without a token makes us ask for a name, or connect.
    const grant = await tokens.find(sessionToken);
    if (grant === undefined) {
      throw new ServiceError('INVALID_SESSION_TOKEN');
    }
    this.#limits.take(grant.keyId, monotonicMs());
    const server = await checkLiveKitUrl(livekitUrl, hosts, caller.ip);
    let room: RemoteRoom | undefined;
    const request = { ...caller, query: new URLSearchParams({ session_token: sessionToken }) };
    const session = await sessions.openHeadless(request, (_id, _request, _destination, log) => {
      const role = new AgentRole(meter, log);
      room = new RemoteRoom({ server, token: livekitToken, videoCodec, role, meter, log });
      return room;
    });
    await room?.joined;
    return session.id;
  }
}
