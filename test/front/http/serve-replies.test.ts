// Files and streams for readers of any pace, and clients that leave.
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import { content, serveExamples, state } from './example-routes.ts';
import { raw, type TestHttp } from './server.ts';

let server: TestHttp;
beforeAll(async () => {
  server = await serveExamples();
});
afterAll(() => server.close());

const post = (
  target: string,
  body: BodyInit,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Response> => fetch(server.url + target, { method: 'POST', body, headers });

async function statusOf(headers: Record<string, string>): Promise<number> {
  const reply = await fetch(`${server.url}/file`, { headers });
  await reply.arrayBuffer();
  return reply.status;
}

test('files: whole, ranges, validators, HEAD', async () => {
  const whole = await fetch(`${server.url}/file`);
  assert.ok(content.equals(Buffer.from(await whole.arrayBuffer())));
  const etag = whole.headers.get('etag') ?? '';
  for (const [range, from, to] of [
    ['bytes=0-0', 0, 1],
    ['bytes=100-199', 100, 200],
    ['bytes=5000000-', 5_000_000, content.length],
    ['bytes=-7', content.length - 7, content.length],
    ['bytes=0-99999999', 0, content.length],
    ['Bytes=0-99999999999999999999', 0, content.length],
  ] as const) {
    const part = await fetch(`${server.url}/file`, { headers: { range } });
    assert.equal(part.status, 206, range);
    assert.equal(part.headers.get('content-range'), `bytes ${from}-${to - 1}/${content.length}`);
    assert.ok(content.subarray(from, to).equals(Buffer.from(await part.arrayBuffer())), range);
  }
  for (const range of [`bytes=${content.length}-`, 'bytes=99999999999999999999-', 'bytes=-0']) {
    const refused = await fetch(`${server.url}/file`, { headers: { range } });
    assert.equal(refused.status, 416, range);
    assert.equal(refused.headers.get('content-range'), `bytes */${content.length}`);
    await refused.arrayBuffer();
  }
  for (const range of ['bytes=5-2', 'items=0-1', 'bytes=0-1,5-6', 'bytes=-', 'bytes=a-b']) {
    assert.equal(await statusOf({ range }), 200, range);
  }
  assert.equal(await statusOf({ 'if-none-match': etag }), 304);
  assert.equal(await statusOf({ range: 'bytes=0-1', 'if-range': '"other"' }), 200);
  assert.equal(await statusOf({ range: 'bytes=0-1', 'if-range': etag }), 206);
  const head = await fetch(`${server.url}/file`, { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), String(content.length));
  // Raw, and to the end of the connection: a range is for GET alone, and who asks for the close
  // gets it.
  const closed = await raw(
    server.port,
    'HEAD /file HTTP/1.1\r\nhost: x\r\nrange: bytes=0-9\r\nconnection: close\r\n\r\n',
    /never/,
  );
  assert.match(closed, /^HTTP\/1\.1 200 /);
  assert.match(closed, new RegExp(`content-length: ${content.length}`, 'i'));
  assert.equal(state.openFiles, 0);
});

test('a slow client gets its file with bounded memory; a client that leaves closes it', async () => {
  const agent = new http.Agent();
  const slow = await new Promise<http.IncomingMessage>((resolve) => {
    http.get(`${server.url}/file`, { agent }, resolve);
  });
  slow.pause();
  await sleep(100);
  assert.equal(state.openFiles, 1, 'it waits for its reader');
  const parts: Buffer[] = [];
  for await (const part of slow) {
    parts.push(part as Buffer);
  }
  assert.ok(content.equals(Buffer.concat(parts)));
  const leaving = await new Promise<http.IncomingMessage>((resolve) => {
    http.get(`${server.url}/file`, { agent }, resolve);
  });
  leaving.destroy();
  for (let i = 0; i < 100 && state.openFiles > 0; i++) {
    await sleep(10);
  }
  assert.equal(state.openFiles, 0);
  agent.destroy();
});

test('a stream waits for its reader; it fails as 500 before the first chunk, then by closing', async () => {
  const whole = await (await fetch(`${server.url}/stream`)).text();
  assert.equal(whole.length, 10_000_000);
  state.chunksMade = 0;
  const slow = await new Promise<http.IncomingMessage>((resolve) => {
    http.get(`${server.url}/stream`, resolve);
  });
  slow.pause();
  await sleep(100);
  assert.ok(
    state.chunksMade < 100,
    `made ${state.chunksMade} chunks for a reader that does not read`,
  );
  slow.destroy();
  assert.equal((await fetch(`${server.url}/stream-breaks-early`)).status, 500);
  await assert.rejects(fetch(`${server.url}/stream-breaks-late`).then((reply) => reply.text()));
  assert.equal((await fetch(`${server.url}/stream`, { method: 'HEAD' })).status, 200);
});

test('clients that leave during a body or a handler do no harm', async () => {
  for (let i = 0; i < 20; i++) {
    const socket = net.connect(server.port, '127.0.0.1');
    socket.write(
      'POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ' +
        '500\r\n\r\n{"text":',
    );
    await sleep(1);
    socket.destroy();
  }
  const abort = new AbortController();
  const leaving = fetch(`${server.url}/waits`, { signal: abort.signal });
  for (let i = 0; i < 1000 && state.waiting === 0; i++) {
    await sleep(1);
  }
  abort.abort();
  await assert.rejects(leaving);
  for (let i = 0; i < 100 && state.abortsSeen === 0; i++) {
    await sleep(10);
  }
  assert.equal(state.abortsSeen, 1);
  await sleep(200);
  assert.equal((await post('/echo', '{"text":"alive"}')).status, 200);
});
