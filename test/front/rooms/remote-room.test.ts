// A room of a LiveKit server that fails, lies or floods: the session learns why in words, or goes
// on. What a real server does is in test/scenarios/livekit-server.test.ts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:http';
import {
  JoinRequest,
  JoinResponse,
  LeaveRequest,
  LeaveRequest_Action,
  ParticipantInfo,
  ParticipantUpdate,
  ReconnectResponse,
  SessionDescription,
  SignalResponse,
  TrickleRequest,
  WrappedJoinRequest,
} from '@livekit/protocol';
import { test, type TestContext } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createLogger } from '../../../src/base/log.ts';
import { ServiceError } from '../../../src/base/errors.ts';
import { RemoteRoom } from '../../../src/front/rooms/remote-room.ts';
import { RemoteCandidates } from '../../../src/front/rooms/remote-candidates.ts';
import type { RoomRole } from '../../../src/front/rooms/room-role.ts';
import type { MediaServerMessage } from '../../../src/front/sessions/session-link.ts';
import type { LocalOfferSpec } from '../../../src/link/messages.ts';
import { linkedSession } from '../../harness/linked-session.ts';
import { until } from '../../harness/until.ts';

type Response = NonNullable<ConstructorParameters<typeof SignalResponse>[0]>['message'];
type Handle = (socket: WebSocket, join: JoinRequest, request: IncomingMessage) => void;

const ANSWER = [
  'v=0',
  'o=- 1 2 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'a=mid:0',
  'a=candidate:1 1 udp 2130706431 10.0.0.1 7882 typ host',
  'a=candidate:2 1 udp 2130706431 1.1.1.1 7882 typ host',
  '',
].join('\r\n');

const say = (socket: WebSocket, message: NonNullable<Response>): void => {
  socket.send(new SignalResponse({ message }).toBinary());
};
/** Lets the avatar in, as a LiveKit server does. */
const admit: Handle = (socket, join) => {
  if (join.reconnect) {
    say(socket, { case: 'reconnect', value: new ReconnectResponse() });
    return;
  }
  const participant = new ParticipantInfo({ sid: 'PA_1' });
  const value = new JoinResponse({ participant, pingInterval: 5, pingTimeout: 15 });
  say(socket, { case: 'join', value });
  const { id } = join.publisherOffer!;
  say(socket, { case: 'answer', value: new SessionDescription({ sdp: ANSWER, id }) });
};

interface Started {
  readonly room: RemoteRoom;
  readonly ends: string[];
  readonly told: MediaServerMessage[];
  readonly offers: LocalOfferSpec[];
  readonly joins: JoinRequest[];
  readonly sockets: WebSocket[];
  /** While it is down, connections are closed before the handshake. */
  readonly gate: { isDown: boolean; attempts: number };
  readonly port: number;
}

/** A session in a room of a server that does what `handle` says. */
async function start(
  t: TestContext,
  handle: Handle | { readonly refuse: (socket: Socket) => void },
  isTrusted = true,
  host = '127.0.0.1',
): Promise<Started> {
  const http = createServer();
  const webSockets = new WebSocketServer({ noServer: true });
  const [ends, told, offers, joins, sockets]: [
    string[],
    MediaServerMessage[],
    LocalOfferSpec[],
    JoinRequest[],
    WebSocket[],
  ] = [[], [], [], [], []];
  const gate = { isDown: false, attempts: 0 };
  http.on('upgrade', (request, socket: Socket, head) => {
    socket.on('error', () => {});
    gate.attempts++;
    if (gate.isDown) {
      socket.destroy();
      return;
    }
    if (typeof handle !== 'function') {
      handle.refuse(socket);
      return;
    }
    webSockets.handleUpgrade(request, socket, head, (client) => {
      const text = new URL(request.url!, 'ws://x').searchParams.get('join_request')!;
      const wrapped = WrappedJoinRequest.fromBinary(Buffer.from(text, 'base64url'));
      const join = JoinRequest.fromBinary(wrapped.joinRequest);
      joins.push(join);
      sockets.push(client);
      handle(client, join, request);
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  const role: RoomRole = { kind: 'agent', opened() {}, joined() {}, changed() {}, closed() {} };
  const room = new RemoteRoom({
    server: {
      url: `ws://${host}:${port}`,
      addresses: [{ address: '127.0.0.1', family: 4 }],
      isTrusted,
    },
    token: 'token',
    videoCodec: 'vp8',
    role,
    meter: { joined() {}, failed() {}, dropped() {} },
    log: createLogger('silent'),
  });
  const session = linkedSession({
    tell: (message) => told.push(message),
    end: (reason) => {
      ends.push(reason);
      room.close(reason);
    },
    makeOffer: (spec) => {
      offers.push(spec);
      const { offerId } = spec;
      queueMicrotask(() => {
        room.offered({ type: 'localOffer', sessionId: 's', sdp: 'v=0', offerId });
      });
    },
  });
  t.onTestFinished(async () => {
    room.close('done');
    webSockets.close();
    http.closeAllConnections();
    await new Promise((resolve) => {
      http.close(resolve);
    });
  });
  room.open(session);
  return { room, ends, told, offers, joins, sockets, gate, port };
}

const failure = async ({ joined }: RemoteRoom): Promise<string> => {
  try {
    await joined;
    return '';
  } catch (error) {
    assert.ok(error instanceof ServiceError && error.status === 400, String(error));
    return error.message;
  }
};

test('the offer and both tracks go with the request to join; the answer reaches the worker', async (t) => {
  const { room, joins, told, offers } = await start(t, admit);
  await room.joined;
  const [join] = joins;
  assert.equal(join?.publisherOffer?.sdp, 'v=0');
  assert.deepEqual(
    join.addTrackRequests.map(({ name, cid }) => [name, cid]),
    [
      ['avatar_audio', offers[0]?.names.audioTrackId],
      ['avatar_video', offers[0]?.names.videoTrackId],
    ],
  );
  assert.deepEqual([join.connectionSettings?.autoSubscribe, offers[0]?.isNewPeer], [false, true]);
  assert.equal(told[0]?.type, 'accept');
});

test('a server that refuses is quoted', async (t) => {
  const refuse = (socket: Socket): void => {
    socket.end(
      'HTTP/1.1 401 Unauthorized\r\ncontent-length: 24\r\n\r\ninvalid token\u0007: expired',
    );
  };
  const { room, ends } = await start(t, { refuse });
  assert.match(await failure(room), /could not be joined: HTTP 401 invalid token : expired/);
  assert.deepEqual(ends, ['room_refused']);
});

test('a server that is too old for the single peer connection is named so', async (t) => {
  const refuse = (socket: Socket): void => {
    socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 18\r\n\r\n404 page not found');
  };
  const { room, ends } = await start(t, { refuse });
  assert.match(await failure(room), /HTTP 404 .* \(its server has no \/rtc\/v1: .* 1\.9\.1\)/);
  assert.deepEqual(ends, ['room_refused']);
});

test('the connection is made to the address that was checked, whatever the name means now', async (t) => {
  // The name has no address at all any more.
  const { room, sockets, joins } = await start(t, admit, true, 'nothing.invalid');
  await room.joined;
  room.connected();
  sockets[0]!.terminate();
  await until(() => joins.length === 2);
});

test('nobody is led elsewhere by a redirect', async (t) => {
  const elsewhere = await start(t, admit);
  await elsewhere.room.joined;
  const { port } = elsewhere;
  for (const status of [301, 302, 307, 308]) {
    const { room, gate } = await start(t, {
      refuse: (socket) => {
        socket.end(`HTTP/1.1 ${status} Moved\r\nlocation: ws://127.0.0.1:${port}/rtc/v1\r\n\r\n`);
      },
    });
    assert.match(await failure(room), new RegExp(`HTTP ${status}`));
    assert.equal(gate.attempts, 1);
  }
  assert.equal(elsewhere.gate.attempts, 1);
});

test('a server that hangs up, sends noise, or too much, ends a join in words', async (t) => {
  const hangsUp = await start(t, {
    refuse: (socket) => {
      socket.destroy();
    },
  });
  assert.match(await failure(hangsUp.room), /does not answer/);
  const noise = await start(t, (socket) => {
    socket.send(Buffer.alloc(64, 0xff));
  });
  assert.match(await failure(noise.room), /malformed message/);
  const huge = await start(t, (socket) => {
    socket.send(Buffer.alloc(2 << 20));
  });
  assert.match(await failure(huge.room), /does not answer/);
  const { offers } = await start(t, (socket) => {
    say(socket, {
      case: 'leave',
      value: new LeaveRequest({ action: LeaveRequest_Action.DISCONNECT }),
    });
  });
  assert.ok(offers.length <= 1);
});

test('only public candidates of a stranger are checked, and not many', async (t) => {
  const { room, told } = await start(
    t,
    (socket, join, request) => {
      admit(socket, join, request);
      for (let i = 0; i < 1000; i++) {
        const address = i % 2 === 0 ? `10.0.0.${i % 250}` : `1.1.1.${i % 250}`;
        const candidate = `candidate:1 1 udp 2130706431 ${address} 7882 typ host`;
        const candidateInit = JSON.stringify({ candidate });
        say(socket, { case: 'trickle', value: new TrickleRequest({ candidateInit }) });
      }
      say(socket, { case: 'trickle', value: new TrickleRequest({ candidateInit: 'no JSON' }) });
    },
    false,
  );
  await room.joined;
  await until(() => told.length >= 17);
  const [accept, ...candidates] = told;
  assert.ok(accept?.type === 'accept');
  assert.deepEqual(
    accept.answer.candidates.map(({ address }) => address),
    ['1.1.1.1'],
  );
  const addresses = candidates.flatMap((one) =>
    one.type === 'candidate' ? [one.candidate.address] : [],
  );
  assert.equal(addresses.length, 16);
  assert.ok(addresses.every((address) => address.startsWith('1.1.1.')));
});

test('of a stranger with 100,000 candidates, many answers and participants little is read', async (t) => {
  const participants = Array.from({ length: 5000 }, () => new ParticipantInfo({ identity: 'x' }));
  const update = new SignalResponse({
    message: { case: 'update', value: new ParticipantUpdate({ participants }) },
  }).toBinary();
  const candidates = new RemoteCandidates(false);
  for (let i = 0; i < 100_000; i++) {
    const candidate = `candidate:1 1 udp 2130706431 1.1.${i >> 8}.${i & 255} 7882 typ host`;
    assert.equal(candidates.trickled(JSON.stringify({ candidate })) !== undefined, i < 32);
  }
  const long = ANSWER.replaceAll('a=mid:0', `a=mid:0\r\na=x:${'y'.repeat(100_000)}`);
  const { room, told, joins } = await start(
    t,
    (socket, join, request) => {
      admit(socket, join, request);
      const { id } = join.publisherOffer ?? { id: 0 };
      for (let i = 0; i < 100; i++) {
        say(socket, { case: 'answer', value: new SessionDescription({ sdp: long, id }) });
        socket.send(update);
      }
    },
    false,
  );
  await room.joined;
  await until(() => joins.length > 1, 10_000, 'a connection that says too much is closed');
  assert.equal(told.filter(({ type }) => type === 'accept').length, 1, 'one answer for each offer');
});

test('a lost signal connection is resumed; after a lost peer the room is joined again', async (t) => {
  const { room, joins, sockets, offers, ends } = await start(t, admit);
  await room.joined;
  room.connected();
  sockets[0]!.terminate();
  await until(() => joins.length === 2);
  assert.deepEqual([joins[1]!.reconnect, joins[1]!.participantSid], [true, 'PA_1']);
  assert.equal(offers.length, 1, 'media goes on');
  room.peerSilent();
  await until(() => offers.length > 1);
  assert.deepEqual([offers[1]?.restartsIce, offers[1]?.isNewPeer], [true, false]);
  room.peerLost();
  await until(() => joins.length === 3);
  assert.deepEqual([joins[2]!.reconnect, offers[2]?.isNewPeer], [false, true]);
  assert.deepEqual(ends, []);
});

test('a server that is away is asked to resume; one that forgot us, to let us in', async (t) => {
  let forgets = false;
  const { room, joins, sockets, gate, offers } = await start(t, (socket, join, request) => {
    if (join.reconnect && forgets) {
      socket.close();
    } else {
      admit(socket, join, request);
    }
  });
  await room.joined;
  room.connected();
  gate.isDown = true;
  sockets[0]!.terminate();
  await until(() => gate.attempts >= 3);
  gate.isDown = false;
  await until(() => joins.length === 2);
  assert.ok(joins[1]!.reconnect && offers.length === 1, 'media goes on');
  forgets = true;
  sockets[1]!.terminate();
  await until(() => joins.length === 4);
  assert.deepEqual([joins[2]!.reconnect, joins[3]!.reconnect], [true, false]);
});

test('a peer that no server has seen serves for the next attempt, too', async (t) => {
  const { room, joins, gate, offers, ends } = await start(t, admit);
  await room.joined;
  room.connected();
  gate.isDown = true;
  room.peerLost();
  await until(() => gate.attempts >= 3);
  assert.equal(offers.length, 2);
  room.peerSilent(); // of the peer before
  assert.equal(offers.length, 2);
  gate.isDown = false;
  await until(() => joins.length === 2);
  assert.deepEqual([joins[1]!.reconnect, offers.length, ends], [false, 2, []]);
});

test('silence while there is no signal connection restarts ICE when there is one', async (t) => {
  const { room, sockets, gate, offers, joins } = await start(t, admit);
  await room.joined;
  room.connected();
  gate.isDown = true;
  sockets[0]!.terminate();
  await until(() => gate.attempts >= 2);
  room.peerSilent();
  assert.equal(offers.length, 1);
  gate.isDown = false;
  await until(() => joins.length === 2 && offers.length === 2);
  assert.ok(offers[1]!.restartsIce);
});

test('media that is closed before its goodbye is no reason to join again', async (t) => {
  const { room, sockets, joins, ends } = await start(t, admit);
  await room.joined;
  room.connected();
  room.peerLost();
  const value = new LeaveRequest({ action: LeaveRequest_Action.DISCONNECT });
  say(sockets[0]!, { case: 'leave', value });
  await until(() => ends.length > 0);
  assert.deepEqual([ends, joins.length], [['room_closed'], 1]);
});

test('who is removed from the room does not come back', async (t) => {
  const { room, sockets, joins, ends } = await start(t, admit);
  await room.joined;
  room.connected();
  const value = new LeaveRequest({ action: LeaveRequest_Action.DISCONNECT });
  say(sockets[0]!, { case: 'leave', value });
  await until(() => ends.length > 0);
  assert.deepEqual([ends, joins.length], [['room_closed'], 1]);
});

test('a flood of messages costs a server its connection', async (t) => {
  const { room, joins } = await start(t, admit);
  await room.joined;
  room.connected();
  const flooded = await start(t, (socket, join, request) => {
    admit(socket, join, request);
    for (let i = 0; i < 5000 && !join.reconnect; i++) {
      say(socket, { case: 'refreshToken', value: 'x' });
    }
  });
  await flooded.room.joined;
  flooded.room.connected();
  await until(() => flooded.joins.length > 1);
  assert.equal(joins.length, 1, 'the other room is not concerned');
});
