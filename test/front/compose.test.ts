// POST /compose/token and GET /compose/ice as clients of such services expect them.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { wallSeconds } from '../../src/base/time.ts';
import { startTestFront, type TestFront } from './harness.ts';

const state = { room: true, draining: false };
let server: TestFront;
before(async () => {
  server = await startTestFront({
    turnSecret: 'shared', sessionsPerKey: 2,
    iceServers: [{ urls: 'stun:stun.example.org:3478' }, { urls: 'turn:turn.example.org:3478' }, { urls: 'turn:fixed.example.org', username: 'u', credential: 'c' }],
  }, { canPlace: () => state.room, draining: () => state.draining });
});
after(() => server.close());

interface Refusal { session_token: string; detail: string; error: string; code: string }

test('a token grants what was asked, with the defaults of the interface', async () => {
  const reply = await server.call('/compose/token', { json: { faceId: 'ava/happy', maxIdleTime: 60, sessionAggregator: 'team', extra: 'ignored' } });
  assert.equal(reply.status, 200);
  const body = await reply.json() as { session_token: string };
  assert.deepEqual(Object.keys(body), ['session_token']);
  const { tokenId, keyId, issuedAtMs, ...grant } = await server.front.tokens.find(body.session_token) ?? assert.fail();
  assert.ok(tokenId.length >= 16 && !body.session_token.includes(tokenId) && keyId.length === 16);
  assert.ok(Math.abs(issuedAtMs - Date.now()) < 10_000);
  assert.deepEqual(grant, {
    ownerId: 'owner-1', keyName: 'test', faceId: 'ava', emotion: 'happy', model: null, apiVersion: 'v2', sessionAggregator: 'team', handleSilence: true,
    maxSessionLengthSeconds: 3600, maxIdleTimeSeconds: 60, startFrame: 0, audioInputFormat: 'pcm16',
  });
});

for (const [what, request, status, detail] of [
  ['an unknown face', { faceId: 'nobody' }, 400, 'INVALID_FACE_ID'],
  ['a default face that the set-up has not made', { faceId: 'unmade' }, 400, 'INVALID_FACE_ID'],
  ['an id that is a path', { faceId: '../../etc/passwd' }, 400, 'INVALID_FACE_ID'],
  ['an unknown emotion', { faceId: 'ava/furious' }, 400, 'INVALID_EMOTION'],
] as const) {
  test(`${what} is refused with both keys`, async () => {
    const reply = await server.call('/compose/token', { json: request });
    assert.equal(reply.status, status);
    const body = await reply.json() as Refusal;
    assert.equal(body.session_token, 'FAIL TOKEN');
    assert.equal(body.detail, detail);
    assert.equal(body.code, detail);
    assert.ok(body.error);
  });
}

test('a wrong key, no key, no room, draining and too many sessions are 4xx with both keys', async () => {
  const refusal = async (key?: string | null): Promise<[number, string]> => {
    const reply = await server.call('/compose/token', { json: { faceId: 'ava' }, ...(key === undefined ? {} : { key }) });
    const body = await reply.json() as Refusal;
    assert.equal(body.session_token, 'FAIL TOKEN');
    if (reply.status === 429) assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    return [reply.status, body.detail];
  };
  assert.deepEqual(await refusal('wrong'), [401, 'INVALID_API_KEY']);
  assert.deepEqual(await refusal(null), [401, 'INVALID_API_KEY']);
  state.room = false;
  assert.deepEqual(await refusal(), [429, 'SERVER_OVERLOADED']);
  state.room = true;
  state.draining = true;
  assert.deepEqual(await refusal(), [429, 'SERVER_OVERLOADED']);
  assert.equal((await server.call('/readyz')).status, 503);
  state.draining = false;
  const { keyId } = await server.front.apiKeys.authenticate(server.key);
  await server.front.quota.acquire(keyId, 'one');
  assert.deepEqual(await (await server.call('/ratelimiter/sessions')).json(), { currentUsage: 1 });
  await server.front.quota.acquire(keyId, 'two');
  assert.deepEqual(await refusal(), [429, 'RATE_LIMITED']);
  for (const id of ['one', 'two']) await server.front.quota.release(keyId, id);
});

test('every bad field is listed, and the model must be one the server has', async () => {
  const bad = await server.call('/compose/token', { json: { maxIdleTime: -1, maxSessionLength: 1e9, startFrame: 0.5, audioInputFormat: 'mp3', handleSilence: 'yes', sessionAggregator: 5, apiVersion: null } });
  assert.equal(bad.status, 422);
  const { detail } = await bad.json() as { detail: { loc: string[]; type: string }[] };
  assert.deepEqual(detail.map(({ loc }) => loc.join('.')).sort(), ['body.apiVersion', 'body.audioInputFormat', 'body.faceId', 'body.handleSilence', 'body.maxIdleTime', 'body.maxSessionLength', 'body.sessionAggregator', 'body.startFrame']);
  assert.equal((await server.call('/compose/token', { json: { faceId: 'ava', model: 'rig' } })).status, 200);
  const unknown = await server.call('/compose/token', { json: { faceId: 'ava', model: 'other' } });
  assert.equal(unknown.status, 422);
  assert.deepEqual((await unknown.json() as { detail: { loc: string[] }[] }).detail[0]?.loc, ['body', 'model']);
});

test('ICE servers: urls is a string, nothing but the three fields, TURN credentials as coturn checks them', async () => {
  const servers = await (await server.call('/compose/ice')).json() as { urls: string; username?: string; credential?: string }[];
  assert.equal(servers.length, 3);
  for (const entry of servers) assert.ok(typeof entry.urls === 'string' && Object.keys(entry).every((name) => ['urls', 'username', 'credential'].includes(name)));
  assert.deepEqual(servers[0], { urls: 'stun:stun.example.org:3478' });
  const { username = '', credential } = servers[1] ?? {};
  assert.ok(Number(username.split(':')[0]) > wallSeconds() + 3600);
  assert.equal(credential, createHmac('sha1', 'shared').update(username).digest('base64'));
  assert.deepEqual(servers[2], { urls: 'turn:fixed.example.org', username: 'u', credential: 'c' });
});

test('the LiveKit socket says in words that it is not served', async () => {
  for (const path of ['/compose/webrtc/livekit', '/StartWebRTCSessionLiveKit']) {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}${path}?session_token=x`);
    const message = new Promise((resolve) => { socket.addEventListener('message', ({ data }) => resolve(data)); });
    const closed = new Promise((resolve) => { socket.addEventListener('close', resolve); });
    assert.equal(await message, 'ERROR NOT_IMPLEMENTED');
    await closed;
  }
});
