// POST /compose/token and GET /compose/ice as clients of such services expect them.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import type { Logger } from '../../src/base/log.ts';
import { wallSeconds } from '../../src/base/time.ts';
import { composeRoutes, type ComposeDeps } from '../../src/front/api/compose.ts';
import type { ApiRequest } from '../../src/front/http/route.ts';
import { startTestFront, type TestFront } from './harness.ts';

const sessions = {
  canPlace: true,
  get room() {
    return this.canPlace ? 1 : 0;
  },
  isDraining: false,
  find: () => undefined,
};
let server: TestFront;
beforeAll(async () => {
  server = await startTestFront({
    config: {
      TURN_SECRET: 'shared',
      MAX_SESSIONS_PER_KEY: 2,
      ICE_SERVERS: [
        { urls: 'stun:stun.example.org:3478' },
        { urls: 'turn:turn.example.org:3478' },
        { urls: 'turn:fixed.example.org', username: 'u', credential: 'c' },
      ],
    },
    sessions,
  });
});
afterAll(() => server.close());

interface Refusal {
  session_token: string;
  detail: string;
  error: string;
  code: string;
}

test('a token grants the requested values, with the defaults of the interface', async () => {
  const reply = await server.call('/compose/token', {
    json: { faceId: 'ava/happy', maxIdleTime: 60, sessionAggregator: 'team', extra: 'ignored' },
  });
  assert.equal(reply.status, 200);
  const body = (await reply.json()) as { session_token: string };
  assert.deepEqual(Object.keys(body), ['session_token']);
  const { tokenId, keyId, issuedAtMs, ...grant } =
    (await server.services.tokens.find(body.session_token)) ?? assert.fail();
  assert.ok(tokenId.length >= 16 && !body.session_token.includes(tokenId) && keyId.length === 16);
  assert.ok(Math.abs(issuedAtMs - Date.now()) < 10_000);
  assert.deepEqual(grant, {
    ownerId: 'owner-1',
    keyName: 'test',
    faceId: 'ava',
    emotion: 'happy',
    model: null,
    apiVersion: 'v2',
    sessionAggregator: 'team',
    handleSilence: true,
    maxSessionLengthSeconds: 3600,
    maxIdleTimeSeconds: 60,
    startFrame: 0,
    audioInputFormat: 'pcm16',
  });
});

for (const [what, request, status, detail] of [
  ['an unknown face', { faceId: 'nobody' }, 400, 'INVALID_FACE_ID'],
  ['a default face that the set-up has not made', { faceId: 'unmade' }, 400, 'INVALID_FACE_ID'],
  ['an id that is a path', { faceId: '../../etc/passwd' }, 400, 'INVALID_FACE_ID'],
  ['an unknown emotion', { faceId: 'ava/furious' }, 400, 'INVALID_EMOTION'],
] as const) {
  test(`${what} is refused with both fields that clients read`, async () => {
    const reply = await server.call('/compose/token', { json: request });
    assert.equal(reply.status, status);
    const body = (await reply.json()) as Refusal;
    assert.equal(body.session_token, 'FAIL TOKEN');
    assert.equal(body.detail, detail);
    assert.equal(body.code, detail);
    assert.ok(body.error);
  });
}

test('a wrong key, no key, no room, draining and too many sessions are 4xx with both fields', async () => {
  const refusal = async (options: { key?: string | undefined } = {}): Promise<[number, string]> => {
    const reply = await server.call('/compose/token', { json: { faceId: 'ava' }, ...options });
    const body = (await reply.json()) as Refusal;
    assert.equal(body.session_token, 'FAIL TOKEN');
    if (reply.status === 429) {
      assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    }
    return [reply.status, body.detail];
  };
  assert.deepEqual(await refusal({ key: 'wrong' }), [401, 'INVALID_API_KEY']);
  assert.deepEqual(await refusal({ key: undefined }), [401, 'INVALID_API_KEY']);
  sessions.canPlace = false;
  assert.deepEqual(await refusal(), [429, 'SERVER_OVERLOADED']);
  sessions.canPlace = true;
  sessions.isDraining = true;
  assert.deepEqual(await refusal(), [429, 'SERVER_OVERLOADED']);
  assert.equal((await server.call('/readyz')).status, 503);
  sessions.isDraining = false;
  const readiness = async (query: string): Promise<unknown[]> => {
    const answer = await server.call(`/readyz${query}`, { key: undefined });
    const { ready, full, room } = (await answer.json()) as Record<string, unknown>;
    return [answer.status, ready, full, room];
  };
  assert.deepEqual(await readiness('?full=503'), [200, true, false, 1]);
  sessions.canPlace = false;
  assert.deepEqual(await readiness(''), [200, true, true, 0]);
  assert.deepEqual(await readiness('?full=503'), [503, true, true, 0]);
  assert.deepEqual((await server.call('/readyz?full=yes')).status, 422);
  sessions.canPlace = true;
  const { keyId } = await server.services.apiKeys.authenticate(server.key);
  await server.services.quota.acquire(keyId, 'one');
  assert.deepEqual(await (await server.call('/ratelimiter/sessions')).json(), { currentUsage: 1 });
  await server.services.quota.acquire(keyId, 'two');
  assert.deepEqual(await refusal(), [429, 'RATE_LIMITED']);
  for (const id of ['one', 'two']) {
    await server.services.quota.release(keyId, id);
  }
});

test('every invalid field is listed under `errors`, beside both fields that clients read', async () => {
  const bad = await server.call('/compose/token', {
    json: {
      maxIdleTime: -1,
      maxSessionLength: 1e9,
      startFrame: 0.5,
      audioInputFormat: 'mp3',
      handleSilence: 'yes',
      sessionAggregator: 5,
      apiVersion: null,
    },
  });
  assert.equal(bad.status, 422);
  const { errors, ...told } = (await bad.json()) as {
    errors: { loc: string[]; type: string }[];
  } & Refusal;
  assert.deepEqual(errors.map(({ loc }) => loc.join('.')).sort(), [
    'body.apiVersion',
    'body.audioInputFormat',
    'body.faceId',
    'body.handleSilence',
    'body.maxIdleTime',
    'body.maxSessionLength',
    'body.sessionAggregator',
    'body.startFrame',
  ]);
  assert.deepEqual(
    { ...told, error: '' },
    { session_token: 'FAIL TOKEN', detail: 'UNKNOWN_ERROR', error: '', code: 'VALIDATION_FAILED' },
  );
  assert.match(told.error, /^body\.\w+: /, 'the first of them are told in words too');
});

test('every 4xx of the route carries both fields, whatever is wrong', async () => {
  const type = { 'content-type': 'application/json' };
  const refused: [number, string, RequestInit][] = [
    [422, 'VALIDATION_FAILED', { body: '{"faceId": ', headers: type }],
    [422, 'VALIDATION_FAILED', { body: '', headers: type }],
    [422, 'VALIDATION_FAILED', { body: '[]', headers: type }],
    [422, 'VALIDATION_FAILED', { body: '{"faceId": "ava", "model": 5}', headers: type }],
    [
      413,
      'BODY_TOO_LARGE',
      { body: JSON.stringify({ faceId: 'x'.repeat(70_000) }), headers: type },
    ],
    [
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      { body: 'faceId=ava', headers: { 'content-type': 'text/plain' } },
    ],
  ];
  for (const [status, code, init] of refused) {
    const reply = await server.call('/compose/token', { method: 'POST', ...init });
    assert.equal(reply.status, status);
    const body = (await reply.json()) as Refusal;
    assert.deepEqual(
      [body.session_token, body.detail, body.code],
      ['FAIL TOKEN', 'UNKNOWN_ERROR', code],
    );
  }
});

test('a known model is granted; any other name means the default', async () => {
  const granted = async (model: unknown): Promise<string | null> => {
    const reply = await server.call('/compose/token', { json: { faceId: 'ava', model } });
    assert.equal(reply.status, 200, `model ${String(model).slice(0, 20)}`);
    const { session_token: token } = (await reply.json()) as { session_token: string };
    return (await server.services.tokens.find(token))!.model;
  };
  assert.equal(await granted('rig'), 'rig');
  for (const model of ['fasttalk', 'artalk', '', null, 'x'.repeat(1000)]) {
    assert.equal(await granted(model), null);
  }
});

test('an unknown model is logged once, and the number of logged names is bounded', async () => {
  const warned: object[] = [];
  const log = {
    warn: (fields: object) => {
      warned.push(fields);
    },
  } as unknown as Logger;
  const deps = {
    models: ['rig'],
    log,
    tokens: { create: () => 'token' },
    quota: { check() {} },
    requireFace: () => Promise.resolve(),
    canPlace: () => Promise.resolve(true),
    draining: () => false,
  };
  const [post] = composeRoutes({
    ...deps,
    iceServers: [],
    turnSecret: undefined,
  } as unknown as ComposeDeps);
  const ask = async (model: string): Promise<void> => {
    await post!.handler({
      body: { faceId: 'ava', model },
      caller: { ownerId: 'o', keyId: 'k', keyName: 'n', isOperator: false },
    } as unknown as ApiRequest);
  };
  for (let n = 0; n < 3; n++) {
    for (const model of ['fasttalk', 'artalk', 'rig']) {
      await ask(model);
    }
  }
  assert.deepEqual(warned, [
    { model: 'fasttalk', known: ['rig'] },
    { model: 'artalk', known: ['rig'] },
  ]);
  for (let n = 0; n < 1000; n++) {
    await ask(`model-${n}`);
  }
  assert.ok(warned.length <= 16, `${warned.length} lines`);
});

test('ICE servers: urls is a string, three fields only, TURN credentials as coturn checks them', async () => {
  const servers = (await (await server.call('/compose/ice')).json()) as {
    urls: string;
    username?: string;
    credential?: string;
  }[];
  assert.equal(servers.length, 3);
  for (const entry of servers) {
    assert.ok(
      typeof entry.urls === 'string' &&
        Object.keys(entry).every((name) => ['urls', 'username', 'credential'].includes(name)),
    );
  }
  assert.deepEqual(servers[0], { urls: 'stun:stun.example.org:3478' });
  const { username = '', credential } = servers[1] ?? {};
  assert.ok(Number(username.split(':')[0]) > wallSeconds() + 3600);
  assert.equal(credential, createHmac('sha1', 'shared').update(username).digest('base64'));
  assert.deepEqual(servers[2], { urls: 'turn:fixed.example.org', username: 'u', credential: 'c' });
});
