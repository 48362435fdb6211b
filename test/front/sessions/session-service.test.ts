// The session service on a real Redis, without a network and without threads: admission, takeover,
// ends, drain.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { sleep } from '../../../src/base/time.ts';
import type { Socket, SocketHandlers, SocketRequest } from '../../../src/front/http/socket.ts';
import type { AttachedSession } from '../../../src/front/placement/worker-handle.ts';
import type { ConversationSource } from '../../../src/front/sessions/conversation-port.ts';
import { EarlyMessageMemory, EarlyMessages } from '../../../src/front/sessions/early-messages.ts';
import { PeerToPeerLink } from '../../../src/front/sessions/session-link.ts';
import { SessionService } from '../../../src/front/sessions/session-service.ts';
import type { ToWorker } from '../../../src/link/messages.ts';
import { createSpeechRing } from '../../../src/link/speech-ring.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { startTestFront, type TestFront } from '../harness.ts';

/** The client's end of a socket: records what it is sent. */
class TestSocket implements Socket {
  data: unknown = undefined;
  open = true;
  answersPings = true;
  readonly sent: string[] = [];
  readonly trusted: boolean[] = [];

  send(message: string | Uint8Array): boolean {
    this.sent.push(String(message));
    return this.open;
  }
  isAlive(): Promise<boolean> {
    return Promise.resolve(this.open && this.answersPings);
  }
  trust(): void {
    this.trusted.push(true);
  }
  distrust(): void {
    this.trusted.push(false);
  }
  end(): void {
    this.open = false;
  }
}

let front: TestFront;
let keyId: string;
let service: SessionService;
let handlers: SocketHandlers;
let hasRoom: boolean;
let posted: ToWorker[];
let attached: AttachedSession[];
let history: string[];
let conversations: ConversationSource | undefined;

beforeAll(async () => {
  front = await startTestFront();
  ({ keyId } = await front.services.apiKeys.authenticate(front.key));
});
afterAll(() => front.close());

beforeEach(() => {
  hasRoom = true;
  conversations = undefined;
  posted = [];
  attached = [];
  history = [];
  const worker = {
    index: 0,
    attach: (session: AttachedSession) => {
      attached.push(session);
    },
    detach: (session: AttachedSession) => {
      attached.splice(attached.indexOf(session), 1);
    },
    post: (message: ToWorker) => {
      posted.push(message);
    },
  };
  service = new SessionService({
    tokens: front.services.tokens,
    quota: front.services.quota,
    faces: front.services.faceCatalog,
    journal: {
      begin: ({ id, ownerId, faceId }) => {
        history.push(`begin ${ownerId} ${faceId} ${id}`);
        return Promise.resolve();
      },
      end: (id) => {
        history.push(`end ${id}`);
        return Promise.resolve();
      },
    },
    conversations: { open: (id) => conversations!.open(id) },
    elsewhere: undefined,
    pool: {
      room: 1,
      renderers: ['rig'],
      place: () => (hasRoom ? worker : undefined),
    },
    metrics: new Metrics(),
    log: createLogger('silent'),
    serverId: 'this server',
    host: 'media.example',
  });
  handlers = service.handlers((_id, _request, destination) => new PeerToPeerLink(destination));
});

const newToken = (faceId = 'ava', conversation = {}): Promise<string> =>
  front.services.tokens.create({
    ownerId: 'owner-1',
    keyId,
    keyName: 'test',
    faceId,
    emotion: 'sad',
    model: 'a renderer of another server',
    apiVersion: 'v2',
    sessionAggregator: null,
    handleSilence: true,
    maxSessionLengthSeconds: 20,
    maxIdleTimeSeconds: 10,
    startFrame: 7,
    audioInputFormat: 'pcm16',
    ...conversation,
  });

function connect(token: string): TestSocket {
  const socket = new TestSocket();
  const request: SocketRequest = {
    path: '/compose/webrtc/p2p',
    query: new URLSearchParams({ session_token: token }),
    header: () => '',
    serverOrigin: 'http://media.example',
    ip: '192.0.2.1',
    localPort: 8080,
  };
  handlers.open(socket, request);
  return socket;
}

/** The message is overwritten at once: uWebSockets.js reuses its memory. */
const say = (socket: TestSocket, text: string): void => {
  const bytes = new TextEncoder().encode(text);
  handlers.message(socket, bytes.buffer, false);
  bytes.fill(0x78);
};

async function until(what: string, isTrue: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !isTrue(); i++) {
    await sleep(5);
  }
  assert.ok(isTrue(), what);
}

/** Waits until the claim and the slot of the key are free again. */
const untilReleased = async (token: string): Promise<void> => {
  for (let i = 0; i < 400 && (await front.services.quota.usage(keyId)) > 0; i++) {
    await sleep(5);
  }
  assert.equal(await front.services.quota.usage(keyId), 0, 'the slot is free');
  const claim = await front.services.tokens.claim(token, 'next', 'another server');
  assert.equal(claim.kind, 'claimed', 'the token is free');
};

test('a session that finds no worker gives back the conversation that it opened', async () => {
  const ends: string[] = [];
  conversations = {
    open: () => {
      hasRoom = false;
      return Promise.resolve({
        microphoneRing: createSpeechRing(),
        begin: () => {},
        interrupt: () => {},
        end: (reason) => ends.push(reason),
      });
    },
  };
  const token = await newToken('ava', { conversationId: 'one' });
  const socket = connect(token);
  await until('it is refused', () => !socket.open);
  assert.deepEqual([socket.sent, ends], [['ERROR SERVER_OVERLOADED'], ['error']]);
  await untilReleased(token);
});

test('a token becomes a session as granted; early messages reach it; its end frees the token', async () => {
  const token = await newToken();
  const socket = connect(token);
  say(socket, 'ping early');
  await until('the session runs', () => service.size === 1 && socket.sent.length > 0);
  assert.deepEqual(socket.sent, ['pong early']);
  assert.deepEqual(socket.trusted, [true]);
  const [open] = posted;
  assert.ok(open?.type === 'open');
  const { sessionId, speechRing, face, microphoneRing, ...spec } = open.spec;
  assert.equal(microphoneRing, undefined, 'no conversation');
  assert.deepEqual(spec, {
    delaysFrames: false,
    ignoresMicrophone: false,
    emotion: 2,
    renderer: 'rig',
    handleSilence: true,
    startFrame: 7,
    reports: undefined,
    maxIdleMs: 10_000,
    maxLengthMs: 20_000,
    outlivesPeers: false,
  });
  assert.equal(face.faceId, 'ava');
  assert.ok(speechRing.byteLength > 0);
  assert.deepEqual(history, [`begin owner-1 ava ${sessionId}`]);
  assert.equal(await front.services.quota.usage(keyId), 1);
  assert.equal(await service.find('owner-2', sessionId)?.stats(), undefined, "not this owner's");

  attached[0]!.receive({
    type: 'answer',
    sessionId,
    sdp: 'v=0',
    offerId: 0,
    audioMid: undefined,
    videoMid: undefined,
  });
  assert.match(socket.sent.join('\n'), /"destination": "media\.example:8080"/);
  handlers.close(socket, 1006);
  assert.equal(service.size, 0);
  assert.deepEqual(attached, []);
  assert.deepEqual(history.at(-1), `end ${sessionId}`);
  assert.deepEqual(posted.at(-1), { type: 'close', sessionId, reason: 'client_closed' });
  assert.equal(service.messageBudget.members, 0);
  await untilReleased(token);
});

test('a client that is ended for flooding cannot come back at once', async () => {
  const token = await newToken();
  const socket = connect(token);
  await until('the session runs', () => service.size === 1);
  for (let i = 0; i < 100_000 && socket.open; i++) {
    say(socket, 'x');
  }
  assert.ok(!socket.open && socket.sent.includes('ERROR RATE_LIMITED'), socket.sent.join());
  handlers.close(socket, 1000);
  const again = connect(token);
  await until('refused', () => !again.open);
  assert.deepEqual(again.sent, ['ERROR SESSION_IN_USE']);
  assert.equal(await front.services.quota.usage(keyId), 1, 'its slot is held too');
  await front.services.quota.release(keyId, history[0]!.split(' ').at(-1)!);
});

test('early messages of all sockets have one limit, and clients that leave free their part', async () => {
  const memory = new EarlyMessageMemory();
  const large = new ArrayBuffer(4 << 20);
  const kept = Array.from({ length: 16 }, () => new EarlyMessages(memory));
  assert.ok(kept.every((messages) => messages.push(large, true)));
  assert.equal(new EarlyMessages(memory).push(new ArrayBuffer(1), true), false);
  for (const messages of kept) {
    messages.take();
  }
  assert.equal(memory.usedBytes, 0);
  for (let i = 0; i < 17; i++) {
    const socket = connect('a token that nobody was given');
    handlers.message(socket, large, true);
    handlers.close(socket, 1006);
  }
  const token = await newToken();
  const socket = connect(token);
  say(socket, 'ping early');
  await until('the session runs', () => socket.sent.length > 0);
  assert.deepEqual(socket.sent, ['pong early']);
  handlers.close(socket, 1000);
  await untilReleased(token);
});

test('a refused socket is told why, and leaves neither claim nor slot behind', async () => {
  const unknown = connect('a token that nobody was given');
  await until('refused', () => !unknown.open);
  assert.deepEqual(unknown.sent, ['ERROR INVALID_SESSION_TOKEN']);
  assert.deepEqual(unknown.trusted, [false]);

  hasRoom = false;
  const token = await newToken();
  const unplaced = connect(token);
  await until('refused', () => !unplaced.open);
  assert.deepEqual(unplaced.sent, ['ERROR SERVER_OVERLOADED']);
  await untilReleased(token);

  const faceless = await newToken('no-such-face');
  const unfaced = connect(faceless);
  await until('refused', () => !unfaced.open);
  assert.deepEqual(unfaced.sent, ['ERROR INVALID_FACE_ID']);
  await untilReleased(faceless);
  assert.deepEqual([posted, history, service.size], [[], [], 0]);
});

test('too much before the token is checked refuses the socket, once', async () => {
  const socket = connect(await newToken());
  for (let i = 0; i < 300; i++) {
    say(socket, 'ping');
  }
  assert.deepEqual(socket.sent, ['ERROR RATE_LIMITED']);
  handlers.close(socket, 1000);
  await sleep(100);
  assert.deepEqual([socket.sent.length, service.size], [1, 0]);
});

test('a token is taken over from a client that does not answer, and from no other', async () => {
  const token = await newToken();
  const first = connect(token);
  await until('the first session runs', () => service.size === 1);
  const second = connect(token);
  await until('refused', () => !second.open);
  assert.deepEqual(second.sent, ['ERROR SESSION_IN_USE']);
  assert.ok(first.open);

  first.answersPings = false;
  const third = connect(token);
  await until('the third session runs', () => posted.filter((m) => m.type === 'open').length === 2);
  assert.deepEqual([first.sent, first.open], [['STOP taken_over'], false]);
  assert.deepEqual([third.sent, service.size], [[], 1]);
  handlers.close(third, 1000);
  await untilReleased(token);
});

test('a drain tells the sessions, refuses new ones, and ends those that are left', async () => {
  const token = await newToken();
  const socket = connect(token);
  await until('the session runs', () => service.size === 1);
  assert.deepEqual([service.canPlace, service.room], [true, 1]);
  const drained = service.drain(300, () => false);
  assert.deepEqual([service.canPlace, service.room], [false, 0]);
  const late = connect(await newToken());
  await until('refused', () => !late.open);
  assert.deepEqual(late.sent, ['ERROR SERVER_DRAINING']);
  assert.ok(socket.open, 'it may go on');
  await drained;
  assert.deepEqual(socket.sent, ['CLOSING server_draining 0', 'STOP server_stopped']);
  await untilReleased(token);
});
