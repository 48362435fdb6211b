// The rooms that this server serves: who may join, what a viewer is told, and what happens when it
// leaves, comes back, floods or lies.
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import {
  JoinRequest,
  LeaveRequest_Action,
  LeaveRequest,
  Ping,
  SessionDescription,
  SignalRequest,
  SignalResponse,
  WrappedJoinRequest,
  WrappedJoinRequest_Compression,
} from '@livekit/protocol';
import { beforeEach, test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { monotonicMs } from '../../../src/base/time.ts';
import type { OfferSpec } from '../../../src/link/messages.ts';
import type { Socket, SocketRequest } from '../../../src/front/http/socket.ts';
import type { OwnRoom } from '../../../src/front/rooms/own-room.ts';
import { readJoinRequest } from '../../../src/front/rooms/join-request.ts';
import type { RoomMeter } from '../../../src/front/rooms/room-meter.ts';
import { type RoomSocketData, Rooms } from '../../../src/front/rooms/rooms.ts';
import type { SocketSession } from '../../../src/front/sessions/session-ports.ts';
import { SharedBudget } from '../../../src/front/sessions/message-budget.ts';
import { plainText } from '../../../src/front/sessions/server-messages.ts';
import { NO_SPEECH, linkedSession } from '../../harness/linked-session.ts';
import type { LinkedSession } from '../../../src/front/sessions/session-link.ts';

const ICE = { urls: 'turn:turn.example.org', username: 'u', credential: 'c' };

/** A signal socket that keeps what it was sent. */
class SignalClient implements Socket<RoomSocketData> {
  data: RoomSocketData | undefined = undefined;
  open = true;
  readonly received: SignalResponse['message'][] = [];
  send(message: string | Uint8Array): boolean {
    this.received.push(SignalResponse.fromBinary(Buffer.from(message as Uint8Array)).message);
    return this.open;
  }
  isAlive(): Promise<boolean> {
    return Promise.resolve(this.open);
  }
  trust(): void {}
  distrust(): void {}
  end(): void {
    this.open = false;
  }
  get cases(): readonly (string | undefined)[] {
    return this.received.map((message) => message.case);
  }
}

let rooms: Rooms;
let room: OwnRoom;
let budget: SharedBudget;
let told: string[];
let offers: (OfferSpec & { readonly sdp: string | undefined })[];
let drops: number;
const counted = new Map<string, number>();
const count = (what: string): void => {
  counted.set(what, (counted.get(what) ?? 0) + 1);
};
const meter: RoomMeter = { joined: count, failed: count, dropped: count };

/** The key of all servers, and what other servers serve. */
let runElsewhere: Map<string, SocketSession>;
const ROOMS = {
  secret: Buffer.alloc(32, 1),
  elsewhere: { openLeg: (room: string) => Promise.resolve(runElsewhere.get(room)) },
};

const requestOf = (query: Record<string, string>): SocketRequest => ({
  path: '/rtc/v1',
  query: new URLSearchParams(query),
  header: () => '',
  ip: '192.0.2.1',
  serverOrigin: 'https://media.example',
  localPort: 443,
});

beforeEach(() => {
  told = [];
  offers = [];
  drops = 0;
  counted.clear();
  runElsewhere = new Map();
  budget = new SharedBudget(monotonicMs());
  rooms = new Rooms({ ...ROOMS, iceServers: () => [ICE], meter, budget });
  room = rooms.create('room-1', requestOf({}), 'media.example:443', createLogger('silent'));
  const session: LinkedSession = {
    id: 'session-1',
    size: { width: 512, height: 512 },
    send: (message) => {
      told.push(plainText(message)!);
    },
    offer: (sdp, spec) => {
      offers.push({ ...spec!, sdp });
    },
    dropPeer: () => {
      drops++;
    },
    end: () => {},
    makeOffer: () => {},
    tell: () => {},
    speech: NO_SPEECH,
  };
  room.open(session);
});

const joinRequest = (fields: ConstructorParameters<typeof JoinRequest>[0], zip = true): string => {
  const bytes = Buffer.from(new JoinRequest(fields).toBinary());
  const { GZIP, NONE } = WrappedJoinRequest_Compression;
  const wrapped = new WrappedJoinRequest({
    joinRequest: new Uint8Array(zip ? gzipSync(bytes) : bytes),
    compression: zip ? GZIP : NONE,
  });
  return Buffer.from(wrapped.toBinary()).toString('base64url');
};
const OFFER = new SessionDescription({ type: 'offer', sdp: 'v=0 first', id: 7 });
const tokenOf = (): string => JSON.parse(told[2]!).livekit_token;

function join(fields: ConstructorParameters<typeof JoinRequest>[0] = {}): SignalClient {
  const socket = new SignalClient();
  const handlers = rooms.handlers();
  const request = requestOf({ access_token: tokenOf(), join_request: joinRequest(fields) });
  handlers.admit!(request);
  handlers.open(socket, request);
  return socket;
}
const say = (
  socket: SignalClient,
  message: NonNullable<ConstructorParameters<typeof SignalRequest>[0]>['message'],
): void => {
  const bytes = new Uint8Array(new SignalRequest({ message: message! }).toBinary());
  rooms.handlers().message(socket, bytes.buffer, true);
};
const answer = (offerId: number): void => {
  const sdp = `answer ${offerId}`;
  const ids = { audioMid: '0', videoMid: '4' };
  room.answered({ type: 'answer', sessionId: 'session-1', sdp, offerId, ...ids });
};

test('the client is told session, picture and room, in this order', () => {
  assert.deepEqual(
    told.map((text) => /^\{"\w+": /.exec(text)?.[0]),
    ['{"destination": ', '{"video_metadata": ', '{"livekit_url": '],
  );
  assert.equal(JSON.parse(told[2]!).livekit_url, 'wss://media.example');
});

test('who joins is told of the avatar, and its offers are answered with the ids of the tracks', () => {
  const socket = join({ publisherOffer: OFFER });
  const [first] = socket.received;
  assert.ok(first?.case === 'join');
  const { otherParticipants, iceServers, participant } = first.value;
  const [avatar] = otherParticipants;
  assert.ok(avatar);
  assert.deepEqual(
    avatar.tracks.map(({ name }) => name),
    ['avatar_audio', 'avatar_video'],
  );
  assert.deepEqual(participant?.permission?.canPublish, false);
  assert.deepEqual(
    iceServers.map(({ urls, username, credential }) => [urls[0], username, credential]),
    [[ICE.urls, 'u', 'c']],
  );
  const [audio, video] = avatar.tracks.map(({ sid }) => sid) as [string, string];
  const names = { streamId: `${avatar.sid}|avatar`, audioTrackId: audio, videoTrackId: video };
  assert.deepEqual(offers, [{ sdp: 'v=0 first', offerId: 7, isNewPeer: true, names }]);
  answer(7);
  say(socket, { case: 'offer', value: new SessionDescription({ sdp: 'v=0 second', id: 8 }) });
  assert.deepEqual(offers[1], { sdp: 'v=0 second', offerId: 8, isNewPeer: false, names });
  const reply = socket.received[1];
  assert.ok(reply?.case === 'answer');
  assert.deepEqual(
    [reply.value.sdp, reply.value.id, reply.value.midToTrackId],
    ['answer 7', 7, { '0': audio, '4': video }],
  );
});

test('pings are answered, and speech is shown as LiveKit shows it', () => {
  const socket = join();
  say(socket, { case: 'pingReq', value: new Ping({ timestamp: 5n }) });
  say(socket, { case: 'ping', value: 6n });
  room.speaking(true);
  assert.deepEqual(socket.cases, ['join', 'pongResp', 'pong', 'speakersChanged']);
});

test('who leaves makes room for another; who joins again takes the place of the one before', () => {
  const first = join({ publisherOffer: OFFER });
  say(first, { case: 'leave', value: new LeaveRequest() });
  assert.deepEqual([drops, first.open], [1, false]);
  const second = join({ publisherOffer: OFFER });
  const third = join({ publisherOffer: OFFER });
  assert.equal(drops, 2);
  assert.deepEqual([second.cases.at(-1), second.open, third.open], ['leave', false, true]);
  assert.deepEqual(
    offers.map(({ isNewPeer }) => isNewPeer),
    [true, true, true],
  );
  say(second, { case: 'offer', value: OFFER });
  assert.equal(offers.length, 3, 'the one that was replaced has no say');
});

test('a client that lost its signal connection resumes; one that lost its peer joins again', () => {
  const first = join({ publisherOffer: OFFER });
  const [joined] = first.received;
  assert.ok(joined?.case === 'join');
  const sid = joined.value.participant!.sid;
  rooms.handlers().close(first, 1006);
  assert.equal(drops, 0, 'media goes on');
  const again = join({ reconnect: true, participantSid: sid });
  assert.deepEqual(again.cases, ['reconnect']);
  say(again, { case: 'offer', value: OFFER });
  assert.equal(offers.at(-1)?.isNewPeer, false);
  room.peerLost();
  const told = again.received.at(-1);
  assert.ok(told?.case === 'leave' && told.value.action === LeaveRequest_Action.RECONNECT);
  const late = join({ reconnect: true, participantSid: sid });
  const refused = late.received.at(-1);
  assert.ok(refused?.case === 'leave' && refused.value.action === LeaveRequest_Action.RECONNECT);
});

test('an offer that cannot be answered costs the viewer its place, not the session', () => {
  const socket = join({ publisherOffer: OFFER });
  const error = { code: 'INVALID_OFFER', message: 'no video' } as const;
  room.refused({ type: 'offerRefused', sessionId: 'session-1', offerId: 7, error });
  assert.deepEqual([socket.cases.at(-1), drops], ['leave', 1]);
});

test('at the end the viewer is sent away, and the room is gone', () => {
  const socket = join();
  const token = tokenOf();
  room.close('done');
  assert.deepEqual([socket.cases.at(-1), socket.open], ['leave', false]);
  assert.equal(rooms.has('room-1'), false);
  assert.equal(rooms.nameOf(token), 'room-1');
});

test('a viewer of a room elsewhere is passed on, with what it sent meanwhile', async () => {
  const token = tokenOf();
  const handlers = rooms.handlers();
  const request = requestOf({ access_token: token, join_request: joinRequest({}) });
  const ping = new SignalRequest({ message: { case: 'pingReq', value: new Ping() } });
  const bytes = new Uint8Array(ping.toBinary()).buffer;
  const open = async (): Promise<SignalClient> => {
    const socket = new SignalClient();
    handlers.admit!(request);
    handlers.open(socket, request);
    handlers.message(socket, bytes, true);
    await new Promise(setImmediate);
    return socket;
  };
  room.close('done');
  const over = await open();
  assert.deepEqual([over.cases, over.open], [['leave'], false]);

  const got: string[] = [];
  runElsewhere.set('room-1', {
    message: (message, isBinary) => got.push(`${message.byteLength} ${isBinary}`),
    tellRate: () => {},
    end: () => {},
    closed: () => got.push('closed'),
  });
  const socket = await open();
  handlers.message(socket, bytes, true);
  const sent = `${bytes.byteLength} true`;
  assert.deepEqual([got, socket.open], [[sent, sent], true]);
  handlers.close(socket, 1000);
  assert.equal(got.at(-1), 'closed');
});

test('nobody joins without the token of the room, or with a request that cannot be read', () => {
  const handlers = rooms.handlers();
  const other = new Rooms({
    ...ROOMS,
    secret: Buffer.alloc(32, 2),
    iceServers: () => [],
    meter,
    budget,
  });
  let foreign = '';
  other
    .create('room-1', requestOf({}), 'd', createLogger('silent'))
    .open(linkedSession({ send: (message) => (foreign = plainText(message)!) }));
  const { livekit_token: stranger } = JSON.parse(foreign);
  const request = joinRequest({});
  const codeOf = (query: Record<string, string>): string | undefined => {
    try {
      handlers.admit!(requestOf(query));
      return undefined;
    } catch (error) {
      return error instanceof ServiceError ? error.code : String(error);
    }
  };
  const access_token = tokenOf();
  assert.equal(codeOf({ access_token, join_request: request }), undefined);
  assert.equal(codeOf({ join_request: request }), 'INVALID_ROOM_TOKEN');
  assert.equal(codeOf({ access_token: stranger, join_request: request }), 'INVALID_ROOM_TOKEN');
  for (const join_request of ['', 'AAAA', 'x'.repeat(70_000), joinRequest({}).slice(0, -8)]) {
    assert.equal(codeOf({ access_token, join_request }), 'INVALID_JOIN_REQUEST');
  }
});

test('a request that inflates beyond its bound is refused', () => {
  const bomb = joinRequest({ metadata: 'x'.repeat(10 << 20) });
  assert.ok(bomb.length < 64 * 1024, 'it is small on the wire');
  assert.equal(readJoinRequest(bomb), undefined);
  assert.ok(readJoinRequest(joinRequest({ publisherOffer: OFFER }, false))?.offer);
});

test('a viewer that floods for long is sent away, and coming back gains it nothing', () => {
  const noise = new Uint8Array(8).buffer;
  const flood = (): number => {
    const socket = join();
    let taken = 0;
    for (; socket.open && taken < 1_000_000; taken++) {
      rooms.handlers().message(socket, noise, true);
    }
    return taken;
  };
  const first = flood();
  assert.ok(first < 100_000, `${first} messages`);
  const again = flood();
  assert.ok(again < first / 4, `${again} messages after ${first}`);
  room.close('client_closed');
  assert.equal(budget.members, 0);
});

test('a room is joined ten times at once, and then once a second', () => {
  for (let joins = 0; joins < 10; joins++) {
    assert.ok(join().open);
  }
  assert.throws(
    () => {
      for (let joins = 0; joins < 10; joins++) {
        join();
      }
    },
    { code: 'RATE_LIMITED' },
  );
});

test('a viewer that floods is not heeded beyond its budget', () => {
  const socket = join();
  for (let i = 0; i < 2000; i++) {
    say(socket, { case: 'offer', value: OFFER });
  }
  assert.ok(offers.length <= 11, `${offers.length} offers reached the worker`);
  for (let i = 0; i < 2000; i++) {
    say(socket, { case: 'ping', value: 1n });
  }
  assert.ok(socket.received.length < 350, `${socket.received.length} answers`);
  const noise = new Uint8Array(200_000).fill(0xff);
  rooms.handlers().message(socket, noise.buffer, true);
  assert.ok(socket.open);
  assert.deepEqual(
    ['rate', 'too_large'].map((reason) => (counted.get(reason) ?? 0) > 0),
    [true, true],
  );
});
