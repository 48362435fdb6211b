// The messages of LiveKit's signalling that we send as a server, as protocol buffers.
import {
  ICEServer,
  JoinResponse,
  LeaveRequest,
  type LeaveRequest_Action,
  ParticipantInfo,
  ParticipantInfo_Kind,
  ParticipantInfo_State,
  ParticipantPermission,
  Pong,
  ReconnectResponse,
  Room,
  ServerInfo,
  ServerInfo_Edition,
  SessionDescription,
  SignalResponse,
  SpeakerInfo,
  SpeakersChanged,
  TrackInfo,
  TrackSource,
  TrackType,
  type DisconnectReason,
} from '@livekit/protocol';
import type { IceServer } from '../sessions/ice-credentials.ts';
import type { PictureSize } from '../../media/face-look.ts';

/** Names of a room and of those in it, in LiveKit's form: a prefix that says what it is. */
export interface RoomNames {
  readonly room: string;
  readonly avatarSid: string;
  readonly audioTrackSid: string;
  readonly videoTrackSid: string;
}

/** The identity of the avatar in a room of ours. */
export const AVATAR_IDENTITY = 'avatar';
/** The identity in the token of the client. */
export const VIEWER_IDENTITY = 'viewer';
/** What clients are told: they choose features by it. */
const SERVER_VERSION = '1.9.1';
const PROTOCOL = 16;
/** As livekit-server has it. */
export const PING_INTERVAL_SECONDS = 5;
export const PING_TIMEOUT_SECONDS = 15;

type Response = NonNullable<ConstructorParameters<typeof SignalResponse>[0]>['message'];

const encode = (message: NonNullable<Response>): Uint8Array =>
  new SignalResponse({ message }).toBinary();

const serverInfo = (): ServerInfo =>
  new ServerInfo({
    edition: ServerInfo_Edition.Standard,
    version: SERVER_VERSION,
    protocol: PROTOCOL,
  });

const iceServersOf = (servers: readonly IceServer[]): ICEServer[] =>
  servers.map(
    ({ urls, username = '', credential = '' }) =>
      new ICEServer({ urls: [urls], username, credential }),
  );

/** The avatar with its two tracks. @param joinedAtSeconds Unix time */
function avatarInfo(names: RoomNames, size: PictureSize, joinedAtSeconds: number): ParticipantInfo {
  return new ParticipantInfo({
    sid: names.avatarSid,
    identity: AVATAR_IDENTITY,
    name: AVATAR_IDENTITY,
    state: ParticipantInfo_State.ACTIVE,
    kind: ParticipantInfo_Kind.AGENT,
    isPublisher: true,
    joinedAt: BigInt(joinedAtSeconds),
    version: 1,
    permission: new ParticipantPermission({ canPublish: true, agent: true }),
    tracks: [
      new TrackInfo({
        sid: names.audioTrackSid,
        type: TrackType.AUDIO,
        source: TrackSource.MICROPHONE,
        name: 'avatar_audio',
        mimeType: 'audio/opus',
        stream: AVATAR_IDENTITY,
      }),
      new TrackInfo({
        sid: names.videoTrackSid,
        type: TrackType.VIDEO,
        source: TrackSource.CAMERA,
        name: 'avatar_video',
        mimeType: 'video/vp8',
        ...size,
        stream: AVATAR_IDENTITY,
      }),
    ],
  });
}

/** The answer to a participant that joins. */
export function joinResponse(
  names: RoomNames,
  size: PictureSize,
  viewerSid: string,
  joinedAtSeconds: number,
  iceServers: readonly IceServer[],
): Uint8Array {
  const value = new JoinResponse({
    room: new Room({ sid: names.room, name: names.room, numParticipants: 2, numPublishers: 1 }),
    participant: new ParticipantInfo({
      sid: viewerSid,
      identity: VIEWER_IDENTITY,
      state: ParticipantInfo_State.JOINED,
      joinedAt: BigInt(joinedAtSeconds),
      version: 1,
      permission: new ParticipantPermission({ canSubscribe: true }),
    }),
    otherParticipants: [avatarInfo(names, size, joinedAtSeconds)],
    serverVersion: SERVER_VERSION,
    serverInfo: serverInfo(),
    iceServers: iceServersOf(iceServers),
    pingInterval: PING_INTERVAL_SECONDS,
    pingTimeout: PING_TIMEOUT_SECONDS,
    subscriberPrimary: false,
    fastPublish: false,
  });
  return encode({ case: 'join', value });
}

/** The answer to a participant that resumes on a new socket. */
export const reconnectResponse = (iceServers: readonly IceServer[]): Uint8Array =>
  encode({
    case: 'reconnect',
    value: new ReconnectResponse({
      iceServers: iceServersOf(iceServers),
      serverInfo: serverInfo(),
    }),
  });

/** Our answer to an offer of the client. */
export const answerResponse = (
  sdp: string,
  id: number,
  midToTrackId: Record<string, string>,
): Uint8Array =>
  encode({
    case: 'answer',
    value: new SessionDescription({ type: 'answer', sdp, id, midToTrackId }),
  });

/** Sends a participant away, or asks it to connect again. */
export const leaveResponse = (reason: DisconnectReason, action: LeaveRequest_Action): Uint8Array =>
  encode({ case: 'leave', value: new LeaveRequest({ reason, action }) });

/** The answer to `pingReq`. @param nowMs Unix time */
export const pongResponse = (lastPingTimestamp: bigint, nowMs: number): Uint8Array =>
  encode({ case: 'pongResp', value: new Pong({ lastPingTimestamp, timestamp: BigInt(nowMs) }) });

/** The answer to the older `ping`: its own time. */
export const oldPongResponse = (timestamp: bigint): Uint8Array =>
  encode({ case: 'pong', value: timestamp });

/** The avatar speaks, or does no longer. */
export const speakersResponse = (sid: string, active: boolean): Uint8Array =>
  encode({
    case: 'speakersChanged',
    value: new SpeakersChanged({
      speakers: [new SpeakerInfo({ sid, active, level: active ? 1 : 0 })],
    }),
  });
