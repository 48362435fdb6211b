// Bodies: nothing is kept of one whose sender is not known, none takes all memory, and none may
// trickle.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import net from 'node:net';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { ServiceError } from '../../../src/base/errors.ts';
import { sleep } from '../../../src/base/time.ts';
import { BodyBudget, UNPROVEN } from '../../../src/front/http/body-budget.ts';
import { json } from '../../../src/front/http/reply.ts';
import { type Caller, route } from '../../../src/front/http/route.ts';
import { raw, serve, type TestHttp } from './server.ts';

const MIB = 1024 * 1024;
const budget = new BodyBudget({ maxBytes: 24 * MIB, unprovenBytes: 12 * MIB });
const pace = { windowMs: 300, bytesPerWindow: 3000, deadlineMs: 1500 };
let server: TestHttp;
let checking: Promise<void> = Promise.resolve();
/** What the route /put was told of refusals. */
const told: string[] = [];

async function authenticate(key: string): Promise<Caller> {
  await checking;
  if (key === 'limited') {
    throw new ServiceError('RATE_LIMITED', undefined, 1);
  }
  if (key === 'down') {
    throw new ServiceError('STORE_UNAVAILABLE');
  }
  if (!key.startsWith('right')) {
    throw new ServiceError('INVALID_API_KEY');
  }
  return { ownerId: key, keyId: key, keyName: key, isOperator: false };
}

const hashOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

beforeAll(async () => {
  const body = {
    kind: 'json',
    schema: z.object({ text: z.string() }),
    limitBytes: 16 * MIB,
  } as const;
  const base = { tag: 't', summary: 's', responses: {}, auth: 'key', method: 'POST' } as const;
  server = await serve(
    [
      route({
        ...base,
        path: '/put',
        body,
        refusalFields: ({ code }) => {
          told.push(code);
          return {};
        },
        handler: (asked) => json({ length: asked.body.text.length }),
      }),
      route({
        ...base,
        path: '/pieces',
        body: {
          kind: 'json',
          schema: z.object({ pieces: z.int(), hash: z.string() }),
          limitBytes: MIB,
          parse: (chunks) =>
            Promise.resolve({ pieces: chunks.length, hash: hashOf(Buffer.concat(chunks)) }),
        },
        handler: (asked) => json(asked.body),
      }),
    ],
    [],
    {},
    { authenticate, bodyBudget: budget, bodyPace: pace },
  );
});
beforeEach(() => {
  checking = Promise.resolve();
});
afterAll(() => server.close());

const put = (key: string, length: number): Promise<Response> =>
  fetch(`${server.url}/put`, {
    method: 'POST',
    body: JSON.stringify({ text: 'x'.repeat(length) }),
    headers: { 'content-type': 'application/json', 'x-service-api-key': key },
  });

const headOf = (key: string, framing: string): string =>
  `POST /put HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n` +
  `x-service-api-key: ${key}\r\n${framing}\r\n\r\n`;

interface Upload {
  readonly socket: net.Socket;
  readonly text: () => string;
  readonly closed: Promise<void>;
}

/** The head of an upload that declares `length` bytes; the caller sends the body. */
function startUpload(key: string, length: number): Upload {
  const socket = net.connect(server.port, '127.0.0.1').on('error', () => {});
  let got = '';
  socket.on('data', (data) => {
    got += data.toString('latin1');
  });
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      resolve();
    });
  });
  socket.write(headOf(key, `content-length: ${length}`));
  return { socket, text: () => got, closed };
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 300 && !condition(); i++) {
    await sleep(10);
  }
  assert.ok(condition(), what);
}

for (const [key, status] of [
  ['wrong', 401],
  ['limited', 429],
  ['down', 500],
] as const) {
  test(`a body that is refused with ${status} before it is read releases its memory`, async () => {
    for (let i = 0; i < 60; i++) {
      assert.equal((await put(key, MIB)).status, status);
    }
    assert.equal(budget.held, 0);
    assert.deepEqual(await (await put('right', MIB)).json(), { length: MIB });
  });
}

test('an unfinished body without a valid key: reply, memory freed, connection closed', async () => {
  const upload = startUpload('wrong', 10 * MIB);
  upload.socket.write(Buffer.alloc(MIB, 'x'));
  await upload.closed;
  assert.match(upload.text(), /^HTTP\/1\.1 401 [\s\S]*Connection: close[\s\S]*INVALID_API_KEY/);
  assert.equal(budget.held, 0);
});

test('while a key is checked its body is not read; then it is read completely', async () => {
  let known = (): void => {};
  checking = new Promise((resolve) => {
    known = resolve;
  });
  const text = 'y'.repeat(15 * MIB);
  const sent = JSON.stringify({ text });
  const upload = startUpload('right', sent.length);
  for (let at = 0; at < sent.length; at += 128 * 1024) {
    upload.socket.write(sent.slice(at, at + 128 * 1024));
    await sleep(1);
  }
  await sleep(50);
  const held = budget.held;
  assert.ok(held > 0 && held < 8 * MIB, `${held} bytes are held of one whose key is not known`);
  known();
  await until(() => /"length"/.test(upload.text()), 'the upload is answered');
  assert.match(upload.text(), new RegExp(`"length":${text.length}`));
  upload.socket.destroy();
  assert.equal(budget.held, 0);
});

test('a client that leaves while its key is checked holds no memory', async () => {
  let known = (): void => {};
  checking = new Promise((resolve) => {
    known = resolve;
  });
  const upload = startUpload('right', 10 * MIB);
  upload.socket.write(Buffer.alloc(MIB, 'x'));
  await until(() => budget.held > 0, 'some of it is there');
  upload.socket.destroy();
  await upload.closed;
  known();
  await until(() => budget.held === 0, `${budget.held} bytes are left`);
});

test('no key takes the whole body memory: a second key still gets some', async () => {
  const greedy = [1, 2, 3, 4].map(() => {
    const upload = startUpload('right-greedy', 16 * MIB);
    upload.socket.write(Buffer.alloc(12 * MIB, ' '));
    return upload;
  });
  await until(() => greedy.some(({ text }) => /429/.test(text())), 'the greedy one is refused');
  assert.deepEqual(await (await put('right-modest', 2 * MIB)).json(), { length: 2 * MIB });
  for (const { socket } of greedy) {
    socket.destroy();
  }
  await until(() => budget.held === 0, 'all is given back');
});

test('the body budget: a share of the free memory for each account, and one for unchecked keys', () => {
  const mine = new BodyBudget({ maxBytes: 900, unprovenBytes: 100 });
  assert.equal(mine.take('a', 601), false);
  assert.equal(mine.take('a', 600), true);
  assert.equal(mine.take('a', 1), false);
  assert.equal(mine.take('b', 200), true);
  assert.equal(mine.isFull, false);
  assert.equal(mine.take(UNPROVEN, 90), true);
  assert.equal(mine.take(UNPROVEN, 11), false);
  assert.equal(mine.isFull, true);
  mine.give('a', 600);
  mine.give('b', 200);
  mine.give(UNPROVEN, 90);
  assert.deepEqual([mine.held, mine.isFull], [0, false]);
});

test('a slow body is refused after one window, an endless one at the deadline', async () => {
  for (const [bytes, low, high] of [
    [50, 250, 900],
    [500, 1400, 2500],
  ] as const) {
    const startMs = performance.now();
    const upload = startUpload('right', 10 * MIB);
    const timer = setInterval(() => {
      upload.socket.write(Buffer.alloc(bytes, ' '));
    }, 20);
    await upload.closed;
    clearInterval(timer);
    const tookMs = performance.now() - startMs;
    assert.match(upload.text(), /^HTTP\/1\.1 408 [\s\S]*REQUEST_TIMEOUT/);
    assert.ok(tookMs > low && tookMs < high + 2500, `after ${tookMs} ms`);
    assert.equal(budget.held, 0);
  }
});

const chunkedHead = (path: string): string =>
  headOf('right', 'transfer-encoding: chunked').replace('/put', path);

test('small chunks share buffers, and too many of them are refused', async () => {
  const sendPieces = async (
    pieces: readonly string[],
  ): Promise<{ pieces: number; hash: string }> => {
    const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
    const answer = await raw(
      server.port,
      `${chunkedHead('/pieces')}${chunks.join('')}0\r\n\r\n`,
      /\}$/,
    );
    return JSON.parse(answer.slice(answer.indexOf('{'))) as { pieces: number; hash: string };
  };
  const letters = Array.from({ length: 3000 }, (_, index) =>
    String.fromCharCode(65 + (index % 50)),
  );
  assert.deepEqual(await sendPieces(letters), { pieces: 1, hash: hashOf(letters.join('')) });
  const mixed = [5, 20_000, 7, 9000, 15_000, 1, 8191, 8192, 1].map((length, index) =>
    `${index}`.repeat(length),
  );
  const { pieces, hash } = await sendPieces(mixed);
  assert.equal(hash, hashOf(mixed.join('')));
  assert.ok(pieces < mixed.length, `${pieces} pieces`);
  const many = await raw(server.port, chunkedHead('/put') + '1\r\n \r\n'.repeat(20_000), /\}$/);
  assert.match(many, /^HTTP\/1\.1 413 [\s\S]*too many small chunks/);
  assert.equal(budget.held, 0);
});

test('a chunked body without a length has the same limits', async () => {
  const head = headOf('right', 'transfer-encoding: chunked');
  const slow = await raw(server.port, `${head}5\r\n{"tex\r\n`, /never/);
  assert.match(slow, /^HTTP\/1\.1 408 /);
  const text = JSON.stringify({ text: 'z'.repeat(1000) });
  const chunked = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const good = await raw(server.port, head + chunked, /"length":1000/);
  assert.match(good, /^HTTP\/1\.1 200 /);
  assert.equal(budget.held, 0);
});

test('a client that leaves in the middle of its body is no failure of the server', async () => {
  told.length = 0;
  const { length } = server.requests;
  const socket = net.connect(server.port, '127.0.0.1');
  socket.write(
    'POST /put HTTP/1.1\r\nHost: localhost\r\nx-service-api-key: right\r\n' +
      'content-type: application/json\r\nContent-Length: 100\r\n\r\n{"text":"',
  );
  await sleep(100);
  socket.destroy();
  for (let i = 0; i < 100 && server.requests.length === length; i++) {
    await sleep(10);
  }
  assert.equal(server.requests[length]?.status, 499);
  assert.deepEqual(told, []);
});
