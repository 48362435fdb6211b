// Clients passed on to other servers, which are real WebSocket servers here that answer as they are
// told: one that refuses, one that is gone, one that falls silent, and pings.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createLogger, type Logger } from '../../../src/base/log.ts';
import { monotonicMs } from '../../../src/base/time.ts';
import type { NodeRecord } from '../../../src/front/cluster/node-record.ts';
import { Relay } from '../../../src/front/cluster/relay.ts';
import { RelayTickets } from '../../../src/front/cluster/relay-tickets.ts';
import type { RelayedSession } from '../../../src/front/cluster/relayed-session.ts';
import { RoomiestNodes } from '../../../src/front/cluster/roomiest-nodes.ts';
import type { Socket, SocketRequest } from '../../../src/front/http/socket.ts';
import { plainText } from '../../../src/front/sessions/server-messages.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { until } from '../../harness/until.ts';
import { GRANT } from '../store/records.ts';

const KEY = Buffer.alloc(32, 1);
const SESSION_ID = 'the session';
const CLIENT_HEADERS: Record<string, string> = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'a=\u00e4', // cannot be sent
};

/** Another server, as far as the relay sees it. */
interface Other {
  readonly id: string;
  readonly server: WebSocketServer;
  /** What its sockets got. */
  readonly received: string[];
  readonly sockets: WebSocket[];
  readonly headers: IncomingHttpHeaders[];
}

/** The socket of a client, with what was sent on it. */
class ClientSocket implements Socket {
  data: unknown = undefined;
  readonly open = true;
  readonly sent: string[] = [];
  ended: string | undefined = undefined;
  isThere = true;

  send(message: string | Uint8Array): boolean {
    this.sent.push(String(message));
    return true;
  }
  isAlive(): Promise<boolean> {
    return Promise.resolve(this.isThere);
  }
  trust(): void {}
  distrust(): void {}
  end(code?: number, reason?: string): void {
    this.ended ??= `${code} ${reason}`;
  }
}

let others: Other[];
let metrics: Metrics;
let relay: Relay;
let socket: ClientSocket;
/** What the relay warns of. */
let warned: unknown[];
let log: Logger;
beforeEach(() => {
  others = [];
  metrics = new Metrics();
  socket = new ClientSocket();
  warned = [];
  log = createLogger('silent');
  log.warn = (fields: unknown) => warned.push(fields);
});
afterEach(() => {
  relay.close();
  for (const { server, sockets } of others) {
    sockets.forEach((one) => {
      one.terminate();
    });
    server.close();
  }
});

/** @param answer says what a socket is told after its first message */
async function startOther(answer: (socket: WebSocket) => void): Promise<void> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, autoPong: false });
  await once(server, 'listening');
  const other: Other = {
    id: `other ${others.length}`,
    server,
    received: [],
    sockets: [],
    headers: [],
  };
  others.push(other);
  server.on('connection', (opened, { headers }) => {
    other.headers.push(headers);
    other.sockets.push(opened);
    opened.on('message', (data: Buffer) => {
      other.received.push(data.toString());
      if (other.received.length === 1) {
        answer(opened);
      }
    });
    opened.on('ping', () => {
      other.received.push('PING');
    });
    opened.on('pong', () => {
      other.received.push('PONG');
    });
  });
}

const refusing =
  (code: string) =>
  (opened: WebSocket): void => {
    opened.send(`ERROR ${code}`);
    opened.close(1000, code);
  };
const starting = (opened: WebSocket): void => {
  opened.send('START');
};

const record = ({ id, server }: Other, index: number): NodeRecord => ({
  id,
  host: 'here',
  url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  mediaAddresses: [],
  version: '0',
  region: '',
  startedAtMs: 0,
  workers: 1,
  kinds: ['p2p'],
  models: ['rig'],
  room: 9 - index, // they are tried in this order
  sessions: 0,
  load: 0,
  isDraining: false,
});

/** Passes the client on, which has sent two messages already. */
async function open(isLeg = false): Promise<RelayedSession | undefined> {
  const records = others.map(record);
  relay = new Relay({
    nodes: new RoomiestNodes({ roomiest: () => Promise.resolve(records) }, 'this one', ''),
    registry: {
      find: (id) => Promise.resolve(records.find((one) => one.id === id)),
      nodeIdOf: (id) => Promise.resolve(id === SESSION_ID ? records[0]!.id : undefined),
    },
    nodeId: 'this one',
    tickets: new RelayTickets(KEY, 'this one'),
    tokens: { find: () => Promise.resolve({ ...GRANT, tokenId: '', issuedAtMs: 0 }) },
    metrics,
    log,
  });
  const request: SocketRequest = {
    path: '/compose/webrtc/p2p',
    query: new URLSearchParams('session_token=any'),
    rawQuery: 'session_token=any',
    header: (name) => CLIENT_HEADERS[name] ?? '',
    ip: '192.0.2.1',
    serverOrigin: 'https://media.example',
    localPort: 443,
  };
  const session = (await (isLeg
    ? relay.openLeg(SESSION_ID, socket, request, plainText)
    : relay.open(socket, request, plainText))) as RelayedSession | undefined;
  for (const text of ['first', 'second']) {
    session?.message(new TextEncoder().encode(text).buffer, false);
  }
  return session;
}

const relaysCounted = async (): Promise<string[]> =>
  [...(await metrics.render('')).body.matchAll(/relays_total{outcome="(\w+)"} ([1-9])/g)].map(
    ([, outcome, count]) => `${outcome} ${count}`,
  );

test('a server that refuses: the next one gets everything that the client has sent', async () => {
  await startOther(refusing('SERVER_OVERLOADED'));
  await startOther(refusing('SERVER_DRAINING'));
  await startOther(starting);
  const session = await open();
  await until(() => socket.sent.length > 0);
  assert.deepEqual(socket.sent, ['START'], 'the client hears of no refusal');
  await until(() => others[2]!.received.length === 2);
  assert.deepEqual(others[2]!.received, ['first', 'second']);
  const [{ traceparent, tracestate }] = others[2]!.headers as [IncomingHttpHeaders];
  assert.deepEqual([traceparent, tracestate], [CLIENT_HEADERS['traceparent'], undefined]);
  session!.message(new TextEncoder().encode('third').buffer, false);
  await until(() => others[2]!.received.length === 3);
  assert.deepEqual(await relaysCounted(), ['opened 3', 'refused 2']);
});

test('when all refuse the client is told the last refusal; one that is gone is left out', async () => {
  await startOther(refusing('SERVER_DRAINING'));
  await startOther(starting);
  await new Promise((resolve) => {
    const { server } = others[1]!;
    Object.defineProperty(server, 'address', { value: () => ({ port: 1 }) });
    server.close(resolve);
  });
  await open();
  await until(() => socket.ended !== undefined);
  assert.deepEqual(socket.sent, ['ERROR SERVER_DRAINING']);
  assert.equal(socket.ended, '1000 SERVER_DRAINING');
  assert.deepEqual(await relaysCounted(), ['opened 1', 'unreachable 1', 'refused 1']);
});

test('an error of a session that runs is no refusal', async () => {
  await startOther((opened) => {
    opened.send('START');
    refusing('SERVER_DRAINING')(opened);
  });
  await startOther(starting);
  await open();
  await until(() => socket.ended !== undefined);
  assert.deepEqual(socket.sent, ['START', 'ERROR SERVER_DRAINING']);
  assert.deepEqual(others[1]!.received, []);
});

test('a ping is answered only when the client answers it', async () => {
  await startOther(starting);
  await open();
  await until(() => socket.sent.length > 0);
  const [{ sockets, received }] = others as [Other];
  socket.isThere = false;
  sockets[0]!.ping();
  sockets[0]!.send('heard'); // after the ping
  await until(() => socket.sent.includes('heard'));
  socket.isThere = true;
  sockets[0]!.ping();
  await until(() => received.includes('PONG'));
  assert.equal(received.filter((what) => what === 'PONG').length, 1);
});

test('a server that says nothing for seven seconds is lost, and so is one that breaks off', async () => {
  await startOther(starting);
  const silent = await open();
  await until(() => socket.sent.length > 0);
  silent!.check(monotonicMs() + 6500);
  await until(() => others[0]!.received.includes('PING'));
  assert.equal(socket.ended, undefined, 'it is asked first');
  silent!.check(monotonicMs() + 7500);
  assert.deepEqual(socket.sent, ['START', 'ERROR WORKER_LOST']);
  relay.close();
  socket = new ClientSocket();
  await open();
  await until(() => others[0]!.sockets.length === 2);
  others[0]!.sockets[1]!.terminate();
  await until(() => socket.ended === '1000 WORKER_LOST');
  assert.deepEqual(await relaysCounted(), ['opened 2', 'lost 2']);
  assert.deepEqual(warned, [
    { node: 'other 0', why: 'it said nothing for 7 s' },
    { node: 'other 0', why: 'the connection to it broke off' },
  ]);
});

test('a leg of a session elsewhere: at its server only, and told nothing when this one stops', async () => {
  await startOther(starting);
  await startOther(starting);
  await open(true);
  await until(() => socket.sent.length > 0);
  assert.deepEqual(others[1]!.received, []);
  await relay.drain(0, () => false);
  assert.deepEqual([socket.sent, socket.ended], [['START'], '1001 ']);
});
