// Limits by client address, over real connections: X-Forwarded-For from loopback names the clients.
import assert from 'node:assert/strict';
import net from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { ServiceError } from '../../../src/base/errors.ts';
import { sleep } from '../../../src/base/time.ts';
import { Addresses, isNetwork, limitKeyOf } from '../../../src/front/http/addresses.ts';
import {
  CLIENT_LIMITS,
  ClientLimits,
  type Refusal,
} from '../../../src/front/http/client-limits.ts';
import { json } from '../../../src/front/http/reply.ts';
import { route } from '../../../src/front/http/route.ts';
import type { Socket } from '../../../src/front/http/socket.ts';
import { raw, serve, type TestHttp } from './server.ts';

let server: TestHttp;
let looked = 0;
const held: (() => void)[] = [];
const sockets: Socket[] = [];

beforeAll(async () => {
  const base = { tag: 't', summary: 's', responses: {} } as const;
  const body = { kind: 'json', schema: z.object({ n: z.int() }), limitBytes: 1024 } as const;
  server = await serve(
    [
      route({ ...base, method: 'GET', path: '/open', auth: 'none', handler: () => json({}) }),
      route({ ...base, method: 'GET', path: '/keyed', auth: 'key', handler: () => json({}) }),
      route({ ...base, method: 'POST', path: '/post', auth: 'key', body, handler: () => json({}) }),
      route({ ...base, method: 'GET', path: '/run', auth: 'operator', handler: () => json({}) }),
      route({
        ...base,
        method: 'GET',
        path: '/own-key',
        auth: 'none',
        handler: async (request) => json(await request.authenticate(request.header('api-key'))),
      }),
      route({
        ...base,
        method: 'GET',
        path: '/token/{id}',
        auth: 'none',
        refusals: ['INVALID_SESSION_TOKEN'],
        params: z.object({ id: z.string() }),
        handler: async ({ params: { id } }) => {
          if (id === 'bad') {
            throw new ServiceError('INVALID_SESSION_TOKEN');
          }
          return json({}, id === 'bad-elsewhere' ? 401 : 200); // as another server answered
        },
      }),
      route({
        ...base,
        method: 'GET',
        path: '/wait',
        auth: 'none',
        handler: async () => {
          await new Promise<void>((resolve) => {
            held.push(resolve);
          });
          return json({});
        },
      }),
    ],
    [],
    { maxConnections: 8 },
    {
      authenticate(key) {
        looked++;
        if (!key.startsWith('right')) {
          return Promise.reject(new ServiceError('INVALID_API_KEY'));
        }
        return Promise.resolve({ ownerId: 'o', keyId: key, keyName: 'n', isOperator: false });
      },
    },
    { openRequestsPerSecond: 2, wrongKeysPerMinute: 5, requestsAtOnce: 3 },
  );
  server.sockets.add('/talk', {
    open(socket, request) {
      sockets.push(socket);
      if (request.query.get('token') === 'good') {
        socket.trust();
      } else if (request.query.get('token') === 'bad') {
        socket.distrust();
        socket.end(1000, 'INVALID_SESSION_TOKEN');
      }
    },
    message() {},
    close() {},
  });
});
afterAll(() => server.close());

const ask = (path: string, client: string, key = '', init: RequestInit = {}): Promise<Response> =>
  fetch(server.url + path, {
    ...init,
    headers: { ...(init.headers as object), 'x-forwarded-for': client, 'x-service-api-key': key },
  });

test('paths without a key have a rate for each address; refusals carry Retry-After', async () => {
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) => ask(index % 2 ? '/open' : '/nowhere', '192.0.2.1')),
  );
  const refused = replies.filter(({ status }) => status === 429);
  assert.ok(refused.length >= 7 && refused.length < 20, `${refused.length} of 20 are refused`);
  assert.match(refused[0]!.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.equal(((await refused[0]!.json()) as { code: string }).code, 'RATE_LIMITED');
  assert.equal(
    (await ask('/open', '192.0.2.2')).status,
    200,
    'another address has a rate of its own',
  );
  // One of the rate may be free again, on a slow machine more.
  const preflights = await Promise.all(
    Array.from({ length: 20 }, () => ask('/open', '192.0.2.1', '', { method: 'OPTIONS' })),
  );
  assert.ok(
    preflights.some(({ status }) => status === 429),
    'preflights count too',
  );
  assert.ok(server.refusals.includes('open_requests'));
});

test('requests from loopback have no limit', async () => {
  for (let i = 0; i < 30; i++) {
    assert.equal((await fetch(`${server.url}/open`)).status, 200);
  }
  for (let i = 0; i < 10; i++) {
    assert.equal(
      (await fetch(`${server.url}/keyed`, { headers: { 'x-service-api-key': 'wrong' } })).status,
      401,
    );
  }
});

test('an address with too many wrong keys can still use recently valid keys', async () => {
  assert.equal((await ask('/keyed', '192.0.2.3', 'right-1')).status, 200);
  for (let i = 0; i < 5; i++) {
    assert.equal((await ask('/keyed', '192.0.2.3', `wrong ${i}`)).status, 401);
  }
  const before = looked;
  const refused = await ask('/keyed', '192.0.2.3', 'wrong');
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) >= 1);
  const init = { method: 'POST', body: '{"n":1}', headers: { 'content-type': 'application/json' } };
  assert.equal((await ask('/post', '192.0.2.3', 'wrong', init)).status, 429);
  assert.equal(looked, before, 'the key is not looked up');
  assert.equal((await ask('/post', '192.0.2.3', 'right-1', init)).status, 200);
  assert.equal(
    (await ask('/keyed', '192.0.2.3', 'right-2')).status,
    429,
    'a key never seen is not tried',
  );
  assert.equal((await ask('/keyed', '192.0.2.4', 'right-2')).status, 200);
  assert.ok(server.refusals.includes('wrong_keys'));
});

test('keys and tokens that handlers check count as well, and so do those of operators', async () => {
  const own = (client: string, key: string): Promise<Response> =>
    ask('/own-key', client, '', { headers: { 'api-key': key } });
  assert.equal((await own('192.0.2.30', 'right-1')).status, 200);
  for (let i = 0; i < 5; i++) {
    assert.equal((await own('192.0.2.30', 'wrong')).status, 401);
  }
  const before = looked;
  assert.equal((await own('192.0.2.30', 'wrong')).status, 429);
  assert.equal(looked, before, 'the key is not looked up');
  assert.equal((await own('192.0.2.30', 'right-1')).status, 200, 'a key that was right passes');

  for (const token of ['bad', 'bad-elsewhere', 'bad', 'bad-elsewhere', 'bad']) {
    assert.equal((await ask(`/token/${token}`, '192.0.2.31')).status, 401);
  }
  assert.equal((await ask('/token/good', '192.0.2.31')).status, 429);
  assert.equal((await ask('/token/good', '192.0.2.32')).status, 200);

  for (let i = 0; i < 5; i++) {
    assert.equal((await ask('/run', '192.0.2.33', 'wrong')).status, 401);
  }
  assert.equal((await ask('/run', '192.0.2.33', 'wrong')).status, 429);
});

test('an address has a limit of concurrent requests, however they end', async () => {
  const leaving = new AbortController();
  const waiting = [0, 1, 2].map(() =>
    ask('/wait', '192.0.2.5', '', { signal: leaving.signal }).catch(() => undefined),
  );
  for (let i = 0; i < 200 && held.length < 3; i++) {
    await sleep(5);
  }
  assert.equal((await ask('/keyed', '192.0.2.5', 'right')).status, 429);
  assert.equal((await ask('/keyed', '192.0.2.6', 'right')).status, 200);
  leaving.abort();
  await Promise.all(waiting);
  for (const release of held) {
    release();
  }
  await sleep(50);
  assert.equal((await ask('/keyed', '192.0.2.5', 'right')).status, 200);
});

const handshake = (
  client: string,
  query = '',
  { port } = server,
): Promise<{ status: number; socket: net.Socket }> =>
  new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {});
    socket.once('data', (data) => {
      resolve({ status: Number(data.toString('latin1').split(' ')[1]), socket });
    });
    socket.write(
      `GET /talk${query} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n` +
        `sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n` +
        `x-forwarded-for: ${client}\r\n\r\n`,
    );
  });

test('an address has a limit of sockets without a valid token; others do not count', async () => {
  const open = [];
  for (let i = 0; i < 4; i++) {
    open.push(await handshake('192.0.2.7', '?token=good'));
  }
  for (let i = 0; i < 3; i++) {
    open.push(await handshake('192.0.2.7'));
  }
  assert.deepEqual(
    open.map(({ status }) => status),
    [101, 101, 101, 101, 101, 101, 101],
  );
  const refused = await handshake('192.0.2.7');
  assert.equal(refused.status, 429);
  const other = await handshake('192.0.2.8');
  assert.equal(other.status, 101);
  for (const { socket } of [...open, refused, other]) {
    socket.destroy();
  }
  for (let i = 0; i < 200 && server.sockets.connections > 0; i++) {
    await sleep(5);
  }
  const again = await handshake('192.0.2.7');
  assert.equal(again.status, 101, 'closed ones are given back');
  again.socket.destroy();
});

test('one address holds at most half of all sockets without a valid token', async () => {
  const small = await serve([], [], { maxConnections: 4 });
  small.sockets.add('/talk', { open() {}, message() {}, close() {} });
  const answers = [];
  for (const client of ['192.0.2.20', '192.0.2.20', '192.0.2.20', '192.0.2.21']) {
    answers.push(await handshake(client, '', small));
  }
  assert.deepEqual(
    answers.map(({ status }) => status),
    [101, 101, 429, 101],
  );
  for (const { socket } of answers) {
    socket.destroy();
  }
  await small.close();
});

test('wrong tokens count like wrong keys', async () => {
  const statuses = [];
  for (let i = 0; i < 8; i++) {
    const { status, socket } = await handshake('192.0.2.9', '?token=bad');
    statuses.push(status);
    socket.destroy();
  }
  assert.deepEqual(statuses, [101, 101, 101, 101, 101, 429, 429, 429]);
});

test('connections are counted through upgrades, and limited in number and rate', async () => {
  const small = await serve([], [], {}, {}, { trustedProxies: [], connectionsPerSecond: 2 }, 5);
  small.sockets.add('/talk', { open() {}, message() {}, close() {} });
  const gone = async (socket: net.Socket): Promise<boolean> => {
    socket.on('error', () => {});
    return await new Promise((resolve) => {
      socket.once('close', () => {
        resolve(true);
      });
      setTimeout(() => {
        resolve(false);
      }, 150);
    });
  };
  const head =
    'GET /talk HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n' +
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n';
  const first = net.connect(small.port, '127.0.0.1');
  first.write(head);
  await new Promise((resolve) => {
    first.once('data', resolve);
  });
  assert.deepEqual([small.sockets.connections, small.listener.connections], [1, 1]);
  const more = Array.from({ length: 7 }, () => net.connect(small.port, '127.0.0.1'));
  const closed = await Promise.all(more.map(gone));
  assert.equal(closed.filter(Boolean).length, 3);
  assert.equal(small.listener.connections, 5);
  assert.equal(small.refusals.filter((reason) => reason === 'all_connections').length, 3);
  for (const socket of [first, ...more]) {
    socket.destroy();
  }
  for (let i = 0; i < 200 && small.listener.connections > 0; i++) {
    await sleep(5);
  }
  assert.deepEqual([small.sockets.connections, small.listener.connections], [0, 0]);
  for (let i = 0; i < 40 && !small.refusals.includes('new_connections'); i++) {
    await gone(net.connect(small.port, '127.0.0.1').end());
  }
  assert.ok(small.refusals.includes('new_connections'));
  await small.close();
});

test('the client of a request is the last entry that is not a trusted proxy', () => {
  const addresses = new Addresses(['127.0.0.0/8', '::1', '10.0.0.0/8', '2001:db8:1::/48']);
  for (const [peer, forwarded, client] of [
    ['192.0.2.1', '', '192.0.2.1'],
    ['192.0.2.1', '198.51.100.1', '192.0.2.1'], // an unknown proxy is not believed
    ['127.0.0.1', '', undefined],
    ['127.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['127.0.0.1', '203.0.113.9, 198.51.100.1, 10.1.2.3', '198.51.100.1'],
    ['127.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
    ['127.0.0.1', '[2001:db8::1]:443', '2001:db8:0:0:0:0:0:1'],
    ['0000:0000:0000:0000:0000:ffff:7f00:0001', '198.51.100.1', '198.51.100.1'],
    ['0000:0000:0000:0000:0000:0000:0000:0001', '', undefined],
    ['::ffff:192.0.2.1', '', '192.0.2.1'],
    ['2001:0db8:0001:0000:0000:0000:0000:0005', '2001:db8:2::1', '2001:db8:2:0:0:0:0:1'],
    ['127.0.0.1', 'unknown', 'unknown'],
    ['127.0.0.1', '198.51.100.1, ', undefined],
  ] as const) {
    assert.equal(addresses.clientOf(peer, forwarded), client, `${peer} for ${forwarded}`);
  }
  assert.equal(
    limitKeyOf('2001:db8:2:3:4:5:6:7'),
    limitKeyOf('2001:db8:2:3::1'),
    'one network of 64 bits is one client',
  );
  assert.notEqual(limitKeyOf('2001:db8:2:3::1'), limitKeyOf('2001:db8:2:4::1'));
  assert.deepEqual(
    ['10.0.0.0/8', '::1', '10.0.0.0/33', 'host', '10.0.0.0/', '1.2.3.4/8/9'].map(isNetwork),
    [true, true, false, false, false, false],
  );
});

test('limits recover with time, and addresses are dropped in the order of their last use', () => {
  let nowMs = 0;
  const refusals: Refusal[] = [];
  const settings = { ...CLIENT_LIMITS, wrongKeysPerMinute: 2, openRequestsPerSecond: 1 };
  const limits = new ClientLimits(
    settings,
    (reason) => {
      refusals.push(reason);
    },
    () => nowMs,
  );
  limits.reportWrongKey('192.0.2.1');
  limits.reportWrongKey('192.0.2.1');
  assert.throws(
    () => {
      limits.checkKeyAttempt('192.0.2.1', 'k');
    },
    { code: 'RATE_LIMITED', retryAfterSeconds: 30 },
  );
  limits.reportGoodKey('k');
  limits.checkKeyAttempt('192.0.2.1', 'k');
  nowMs += 30_000;
  limits.checkKeyAttempt('192.0.2.1');
  limits.reportWrongKey('192.0.2.1', 'k');
  assert.throws(() => {
    limits.checkKeyAttempt('192.0.2.1', 'k');
  }, 'a key that went bad passes no longer');
  limits.reportGoodKey('k');
  nowMs += 600_000;
  limits.reportWrongKey('192.0.2.1');
  limits.reportWrongKey('192.0.2.1');
  assert.throws(() => {
    limits.checkKeyAttempt('192.0.2.1', 'k');
  }, 'a key that was good long ago is tried no more');
  for (let i = 0; i < 25_000; i++) {
    limits.countOpenRequest(`10.0.${i >> 8}.${i & 255}`);
  }
  limits.checkKeyAttempt('192.0.2.1', 'k');
  assert.deepEqual(refusals, ['wrong_keys', 'wrong_keys', 'wrong_keys']);
  limits.reportWrongKey('192.0.2.2');
  limits.reportWrongKey('192.0.2.2');
  for (let i = 0; i < 25_000; i++) {
    limits.countOpenRequest(`10.1.${i >> 8}.${i & 255}`);
    if (i % 5000 === 0) {
      assert.throws(() => {
        limits.checkKeyAttempt('192.0.2.2');
      }, 'an address that goes on trying is not forgotten for others');
    }
  }
});

test('a request over the limit that sends a body gets a reply', async () => {
  for (let i = 0; i < 6; i++) {
    await ask('/keyed', '192.0.2.10', 'wrong');
  }
  const text =
    'POST /post HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.10\r\nx-service-api-key: wrong\r\n' +
    `content-type: application/json\r\ncontent-length: 1000\r\n\r\n${'x'.repeat(500)}`;
  assert.match(
    await raw(server.port, text, /\}$/),
    /^HTTP\/1\.1 429 [\s\S]*retry-after: \d+[\s\S]*RATE_LIMITED/i,
  );
  // Until the server closes, though the rest of the body never comes.
  assert.match(await raw(server.port, text, /(?!)/), /^HTTP\/1\.1 429 /);
});
