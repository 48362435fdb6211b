// WebSocket routes: origin list, aliases, limits, and sockets that are used after they closed.
import assert from 'node:assert/strict';
import net from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import type { Socket } from '../../../src/front/http/socket.ts';
import { RawSocket, frame } from '../../harness/raw-socket.ts';
import { raw, serve, type TestHttp } from './server.ts';

let server: TestHttp;
const seen: { socket: Socket; closes: number }[] = [];
beforeAll(async () => {
  server = await serve([], [], { allowedOrigins: ['https://good.example'], maxConnections: 3 });
  server.sockets.add('/talk', {
    open(socket, request) {
      socket.data = request.query.get('name');
      seen.push({ socket, closes: 0 });
      socket.send(`hello ${String(socket.data)}`);
    },
    message(socket, message, isBinary) {
      const text = Buffer.from(message).toString();
      if (text === 'throw') {
        throw new Error('inner detail');
      }
      if (text === 'flood') {
        for (let i = 0; i < 2000; i++) {
          socket.send('x'.repeat(1000));
        }
      } else if (isBinary) {
        socket.send(new Uint8Array(message.slice(0)));
      } else {
        socket.send(`${String(socket.data)} said ${text}`);
      }
    },
    close(socket) {
      for (const entry of seen) {
        if (entry.socket === socket) {
          entry.closes++;
        }
      }
    },
  });
});
afterAll(() => server.close());

const address = (): string => server.url.replace('http', 'ws');

async function talk(
  path: string,
  options?: ConstructorParameters<typeof WebSocket>[1],
): Promise<{ socket: WebSocket; next: () => Promise<unknown>; closed: Promise<CloseEvent> }> {
  const socket = new WebSocket(address() + path, options);
  socket.binaryType = 'arraybuffer';
  const waiting: ((data: unknown) => void)[] = [];
  const arrived: unknown[] = [];
  socket.addEventListener('message', ({ data }) => {
    const waiter = waiting.shift();
    if (waiter) {
      waiter(data);
    } else {
      arrived.push(data);
    }
  });
  const closed = new Promise<CloseEvent>((resolve) => {
    socket.addEventListener('close', resolve);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  return {
    socket,
    closed,
    next: () =>
      arrived.length > 0
        ? Promise.resolve(arrived.shift())
        : new Promise((resolve) => {
            waiting.push(resolve);
          }),
  };
}

test('text and binary frames come back to their sender', async () => {
  const [one, two] = await Promise.all([talk('/talk?name=one'), talk('/TALK?name=two')]);
  assert.deepEqual([await one.next(), await two.next()], ['hello one', 'hello two']);
  one.socket.send('a');
  two.socket.send(new Uint8Array([1, 2, 3]));
  assert.equal(await one.next(), 'one said a');
  assert.deepEqual(new Uint8Array((await two.next()) as ArrayBuffer), new Uint8Array([1, 2, 3]));
  one.socket.close();
  two.socket.close();
  await Promise.all([one.closed, two.closed]);
});

test('a client that sends no pong is not alive, nor is one that left', async () => {
  const client = await talk('/talk?name=alive');
  await client.next();
  const alive = seen.at(-1)!.socket;
  assert.equal(await alive.isAlive(5000), true);
  client.socket.close();
  await client.closed;
  const silent = net.connect(server.port, '127.0.0.1');
  silent.write(
    'GET /talk?name=silent HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: ' +
      'upgrade\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: ' +
      '13\r\n\r\n',
  );
  await new Promise((resolve) => {
    silent.once('data', resolve);
  });
  const dead = seen.at(-1)!.socket;
  assert.notEqual(dead, alive);
  assert.equal(await dead.isAlive(50), false);
  const leaving = dead.isAlive(60_000);
  silent.destroy();
  assert.equal(await leaving, false);
  assert.equal(await alive.isAlive(60_000), false);
});

test('a pong that arrived while this thread was blocked counts', async () => {
  const client = await RawSocket.open(server, '/talk?name=stalled');
  const { socket } = seen.at(-1)!;
  await sleep(50);
  await new Promise((resolve) => {
    setImmediate(resolve);
  }); // from here timers are next, then what came in
  const alive = socket.isAlive(100);
  void client.flood(frame('pong', ''), 1);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  assert.equal(await alive, true);
  client.destroy();
});

test('a closed socket does nothing, and its close is reported once', async () => {
  const client = await talk('/talk?name=x');
  await client.next();
  const entry = seen.at(-1);
  client.socket.close();
  await client.closed;
  for (let i = 0; i < 100 && (seen.at(-1)?.closes ?? 1) === 0; i++) {
    await sleep(5);
  }
  assert.equal(entry?.closes, 1);
  assert.equal(entry?.socket.open, false);
  assert.equal(entry?.socket.send('late'), false);
  entry?.socket.end();
  assert.equal(await entry?.socket.isAlive(100), false);
});

test('1 MiB is accepted, one byte more is refused with an error code', async () => {
  const client = await talk('/talk');
  await client.next();
  client.socket.send(new Uint8Array(1024 * 1024));
  assert.equal(((await client.next()) as ArrayBuffer).byteLength, 1024 * 1024);
  client.socket.send(new Uint8Array(1024 * 1024 + 1));
  assert.equal(await client.next(), 'ERROR MESSAGE_TOO_LARGE');
  assert.equal((await client.closed).code, 1009);
});

test('a handler that throws closes only its own socket, without details', async () => {
  const [bad, good] = await Promise.all([talk('/talk?name=b'), talk('/talk?name=g')]);
  await Promise.all([bad.next(), good.next()]);
  bad.socket.send('throw');
  assert.equal(await bad.next(), 'ERROR INTERNAL_ERROR');
  assert.equal((await bad.closed).code, 1011);
  good.socket.send('still here');
  assert.equal(await good.next(), 'g said still here');
  good.socket.close();
  await good.closed;
  assert.match(server.logged(), /inner detail/);
});

test('a client that does not read is disconnected, so memory stays bounded', async () => {
  const before = seen.length;
  const socket = net.connect(server.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    'GET /talk HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: ' +
      'upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: ' +
      '13\r\n\r\n',
  );
  for (let i = 0; i < 200 && seen.length === before; i++) {
    await sleep(5);
  }
  socket.pause();
  const entry = seen.at(-1);
  const flood = Buffer.from('flood');
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | flood.length, 0, 0, 0, 0]), flood]);
  for (let i = 0; i < 10 && entry?.socket.open; i++) {
    socket.write(frame);
    await sleep(20);
  }
  for (let i = 0; i < 200 && entry?.socket.open; i++) {
    await sleep(5);
  }
  assert.equal(entry?.socket.open, false);
  socket.destroy();
});

test('a deprecated path opens as well, and its handshake names the successor', async () => {
  server.sockets.add(
    '/OldTalk',
    {
      open(socket) {
        socket.send('old');
        socket.end();
      },
      message() {},
      close() {},
    },
    '/talk',
  );
  const handshake = await raw(
    server.port,
    'GET /oldTALK HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: ' +
      'upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: ' +
      '13\r\n\r\n',
    /old/,
  );
  assert.match(handshake, /^HTTP\/1\.1 101 /);
  assert.match(handshake, /link: <\/talk>; rel="successor-version"/);
  assert.match(handshake, /deprecation: @\d+/);
  assert.match(handshake, /Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
});

test('other origins, unknown paths, too many connections and plain requests are refused', async () => {
  const upgrade = async (path: string, origin?: string): Promise<number> => {
    const reply = await new Promise<string>((resolve, reject) => {
      const socket = net.connect(server.port, '127.0.0.1', () => {
        socket.write(
          `GET ${path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: ` +
            `upgrade\r\nsec-websocket-key: ` +
            `dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: ` +
            `13\r\n${origin ? `origin: ${origin}\r\n` : ''}\r\n`,
        );
      });
      socket.once('data', (data) => {
        socket.destroy();
        resolve(data.toString());
      });
      socket.once('error', reject);
    });
    return Number(reply.split(' ')[1]);
  };
  assert.equal(await upgrade('/talk', 'https://evil.example'), 403);
  assert.equal(await upgrade('/talk', 'https://good.example'), 101);
  assert.equal(await upgrade('/nowhere'), 404);
  for (let i = 0; i < 200 && server.sockets.connections > 0; i++) {
    await sleep(5);
  }
  const three = await Promise.all([talk('/talk'), talk('/talk'), talk('/talk')]);
  assert.equal(await upgrade('/talk'), 429);
  for (const { socket } of three) {
    socket.close();
  }
  await Promise.all(three.map(({ closed }) => closed));
  const plain = await fetch(`${server.url}/talk`);
  assert.equal(plain.status, 426);
  assert.equal(((await plain.json()) as { code: string }).code, 'UPGRADE_REQUIRED');
});
