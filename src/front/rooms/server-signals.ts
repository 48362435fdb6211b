// What a LiveKit server says on its signal connection, as far as we act on it. The server may be a
// stranger's, so nothing else of a message is decoded.
import { DisconnectReason, LeaveRequest_Action, ParticipantInfo_State } from '@livekit/protocol';
import { type DescriptionSignal, readDescription } from './description-signal.ts';
import { type ProtobufFields, readFields, readMap, readUnion } from '../../base/protobuf.ts';

/** Somebody in a room. */
export interface RoomParticipant {
  readonly identity: string;
  readonly state: ParticipantInfo_State;
}

/** What we are told when we have joined a room. */
export interface JoinedRoom {
  /** Us. */
  readonly participant?:
    | { readonly sid: string; readonly attributes: Readonly<Record<string, string>> }
    | undefined;
  readonly otherParticipants: readonly RoomParticipant[];
  readonly room?: { readonly name: string } | undefined;
  readonly serverInfo?: { readonly version: string } | undefined;
  readonly pingInterval: number;
  readonly pingTimeout: number;
}

/** A server sends us away, or asks us to connect again. */
export interface LeaveSignal {
  readonly action: LeaveRequest_Action;
  readonly reason: DisconnectReason;
  readonly canReconnect: boolean;
}

/** A message of the server. */
export type ServerSignal =
  | { readonly case: 'join'; readonly value: JoinedRoom }
  | { readonly case: 'answer'; readonly value: DescriptionSignal }
  | { readonly case: 'trickle'; readonly value: { readonly candidateInit: string } }
  | { readonly case: 'update'; readonly value: readonly RoomParticipant[] }
  | {
      readonly case: 'trackPublished';
      readonly value: { readonly cid: string; readonly sid: string };
    }
  | { readonly case: 'leave'; readonly value: LeaveSignal }
  | {
      readonly case: 'subscribedQualityUpdate';
      /** Whether anybody looks at the track: some of its qualities is subscribed to. */
      readonly value: { readonly trackSid: string; readonly isWatched: boolean };
    }
  | { readonly case: 'refreshToken'; readonly value: string }
  | { readonly case: 'reconnect' }
  | { readonly case: 'other' };

function readParticipant(data: Uint8Array): RoomParticipant & { sid: string } {
  const found = { sid: '', identity: '', state: ParticipantInfo_State.JOINING };
  readFields(data, {
    1: ({ text }) => (found.sid = text),
    2: ({ text }) => (found.identity = text),
    3: (fields) => (found.state = fields.asEnum()),
  });
  return found;
}

const textOf = (data: Uint8Array, field: number): string => {
  let found = '';
  readFields(data, { [field]: ({ text }) => (found = text) });
  return found;
};

function readJoin(data: Uint8Array): JoinedRoom {
  const otherParticipants: RoomParticipant[] = [];
  let [room, participant, serverInfo]: (Uint8Array | undefined)[] = [];
  const found = { pingTimeout: 0, pingInterval: 0 };
  readFields(data, {
    1: ({ bytes }) => (room = bytes),
    2: ({ bytes }) => (participant = bytes),
    3: ({ bytes }) => otherParticipants.push(readParticipant(bytes)),
    10: ({ number }) => (found.pingTimeout = number),
    11: ({ number }) => (found.pingInterval = number),
    12: ({ bytes }) => (serverInfo = bytes),
  });
  return {
    ...found,
    otherParticipants,
    room: room && { name: textOf(room, 2) },
    participant: participant && {
      sid: readParticipant(participant).sid,
      attributes: readMap(participant, 15),
    },
    serverInfo: serverInfo && { version: textOf(serverInfo, 2) },
  };
}

function isEnabled(quality: Uint8Array): boolean {
  let enabled = false;
  readFields(quality, { 2: ({ number }) => (enabled = number !== 0) });
  return enabled;
}

/** The readers of messages, by their fields in SignalResponse. */
const MESSAGES: Readonly<Record<number, (fields: ProtobufFields) => ServerSignal>> = {
  1: ({ bytes }) => ({ case: 'join', value: readJoin(bytes) }),
  2: ({ bytes }) => ({ case: 'answer', value: readDescription(bytes) }),
  4: ({ bytes }) => ({ case: 'trickle', value: { candidateInit: textOf(bytes, 1) } }),
  5: ({ bytes }) => {
    const value: RoomParticipant[] = [];
    readFields(bytes, { 1: (one) => value.push(readParticipant(one.bytes)) });
    return { case: 'update', value };
  },
  6: ({ bytes }) => {
    const value = { cid: '', sid: '' };
    readFields(bytes, {
      1: ({ text }) => (value.cid = text),
      2: (track) => (value.sid = textOf(track.bytes, 1)),
    });
    return { case: 'trackPublished', value };
  },
  8: ({ bytes }) => {
    const value = {
      canReconnect: false,
      reason: DisconnectReason.UNKNOWN_REASON,
      action: LeaveRequest_Action.DISCONNECT,
    };
    readFields(bytes, {
      1: ({ number }) => (value.canReconnect = number !== 0),
      2: (fields) => (value.reason = fields.asEnum()),
      3: (fields) => (value.action = fields.asEnum()),
    });
    return { case: 'leave', value };
  },
  14: ({ bytes }) => {
    const value = { trackSid: '', isWatched: false };
    const note = ({ bytes: quality }: ProtobufFields): void => {
      value.isWatched ||= isEnabled(quality);
    };
    readFields(bytes, {
      1: ({ text }) => (value.trackSid = text),
      2: note,
      3: (codec) => {
        readFields(codec.bytes, { 2: note });
      },
    });
    return { case: 'subscribedQualityUpdate', value };
  },
  16: ({ text }) => ({ case: 'refreshToken', value: text }),
  19: () => ({ case: 'reconnect' }),
};

/** @returns undefined when it is malformed */
export const readServerSignal = (message: Uint8Array): ServerSignal | undefined =>
  readUnion(message, MESSAGES, { case: 'other' });
