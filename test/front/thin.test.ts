// The front from outside: a token, ICE servers, refusals in their shapes, and the WebSocket shell.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestFront, type TestFront } from './harness.ts';

let server: TestFront;
before(async () => { server = await startTestFront(); });
after(() => server.close());

test('a token is made for a valid request, and grants what was asked', async () => {
  const reply = await server.call('/compose/token', { json: { faceId: 'ava/happy', maxIdleTime: 60, extra: 'ignored' } });
  assert.equal(reply.status, 200);
  const { session_token: token } = await reply.json() as { session_token: string };
  const grant = await server.front.tokens.find(token);
  assert.equal(grant?.faceId, 'ava');
  assert.equal(grant?.emotion, 'happy');
  assert.equal(grant?.maxIdleTimeSeconds, 60);
  assert.equal(grant?.handleSilence, true);
});

test('a wrong key is refused with both shapes', async () => {
  const reply = await server.call('/compose/token', { json: { faceId: 'ava' }, key: 'nope' });
  assert.equal(reply.status, 401);
  const body = await reply.json() as Record<string, unknown>;
  assert.equal(body['session_token'], 'FAIL TOKEN');
  assert.equal(body['detail'], 'INVALID_API_KEY');
  assert.equal(body['code'], 'INVALID_API_KEY');
});

test('every bad field is listed', async () => {
  const reply = await server.call('/compose/token', { json: { maxIdleTime: -1, audioInputFormat: 'mp3', handleSilence: 'yes' } });
  assert.equal(reply.status, 422);
  const { detail } = await reply.json() as { detail: { loc: string[]; type: string }[] };
  assert.deepEqual(detail.map(({ loc }) => loc.join('.')).sort(), ['body.audioInputFormat', 'body.faceId', 'body.handleSilence', 'body.maxIdleTime']);
  assert.equal(detail.find(({ loc }) => loc[1] === 'faceId')?.type, 'missing');
});

test('malformed JSON is a validation error', async () => {
  const reply = await server.call('/compose/token', { method: 'POST', body: '{"faceId":', headers: { 'content-type': 'application/json' } });
  assert.equal(reply.status, 422);
  assert.equal((await reply.json() as { detail: { type: string }[] }).detail[0]?.type, 'json_invalid');
});

test('unknown path, wrong method, wrong type, too large', async () => {
  assert.equal((await server.call('/nothing')).status, 404);
  const wrongMethod = await server.call('/compose/ice', { method: 'DELETE' });
  assert.equal(wrongMethod.status, 405);
  assert.equal(wrongMethod.headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal((await server.call('/compose/token', { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } })).status, 415);
  assert.equal((await server.call('/compose/token', { json: { faceId: 'x'.repeat(70_000) } })).status, 413);
  assert.equal((await server.call('/compose/webrtc/p2p')).status, 404);
});

test('HEAD, health, readiness, preflight', async () => {
  assert.equal((await server.call('/healthz', { method: 'HEAD' })).status, 200);
  assert.equal((await server.call('/readyz', { key: null })).status, 200);
  const preflight = await server.call('/compose/token', { method: 'OPTIONS', key: null });
  assert.equal(preflight.status, 204);
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /content-type.*x-service-api-key/);
});

test('an earlier name answers as a deprecated alias in any case', async () => {
  const reply = await server.call('/getICEservers');
  assert.equal(reply.status, 200);
  assert.match(reply.headers.get('link') ?? '', /<\/compose\/ice>; rel="successor-version"/);
  assert.ok(reply.headers.get('deprecation'));
});

test('a WebSocket is opened, echoes, and is closed with a word when a message is too large', async () => {
  server.front.sockets.add('/compose/webrtc/p2p', {
    open(socket, request) { socket.send(`hello ${request.query.get('session_token')}`); },
    message(socket, message, isBinary) { socket.send(isBinary ? new Uint8Array(message.slice(0)) : Buffer.from(message).toString()); },
    close() {},
  });
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/Compose/WebRTC/p2p?session_token=abc`);
  const messages: unknown[] = [];
  const closed = new Promise<number>((resolve) => { socket.addEventListener('close', (event) => resolve(event.code)); });
  socket.addEventListener('message', ({ data }) => {
    messages.push(data);
    if (data === 'hello abc') socket.send('ping');
    if (data === 'ping') socket.send(new Uint8Array(1024 * 1024 + 1));
  });
  assert.equal(await closed, 1009);
  assert.deepEqual(messages, ['hello abc', 'ping', 'ERROR MESSAGE_TOO_LARGE']);
});
