// Starting conversations over HTTP: what is refused and which field is named, rooms that open once,
// and transcripts that only their owner reads.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { hashSecret } from '../../../src/base/ids.ts';
import { AGENT_FIELDS } from '../../../src/front/api/conversation-request.ts';
import {
  chooseLanguageModel,
  type ProviderSettings,
  type ProviderWishes,
} from '../../../src/front/talk/provider-choice.ts';
import { keys } from '../../../src/front/store/keys.ts';
import { until } from '../../harness/until.ts';
import { type TestFront, startTestFront } from '../harness.ts';

let server: TestFront;
let otherKey: string;

beforeAll(async () => {
  server = await startTestFront({ config: { LLM_HOSTS: ['models.lan:8000'] } });
  ({ key: otherKey } = await server.services.apiKeys.create('owner-2', 'other'));
});
afterAll(() => server.close());

const body = async (reply: Response): Promise<any> => await reply.json();
const local = { llmConfig: { provider: 'local' }, ttsProvider: 'local' };

async function start(json: object): Promise<{ id: string; secret: string }> {
  const reply = await server.call('/auto/start/configurable', { json });
  const answer = await body(reply);
  assert.equal(reply.status, 200, JSON.stringify(answer));
  const url = new URL(answer.roomUrl);
  assert.equal(url.pathname, `/auto/room/${answer.sessionId}`);
  return { id: answer.sessionId, secret: url.hash.slice(1) };
}

test('a configuration gives a room that opens once', async () => {
  const { id, secret } = await start({ ...local, firstMessage: 'Welcome!' });
  const page = await server.call(`/auto/room/${id}`, { key: undefined });
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-security-policy') ?? '', /frame-ancestors \*/);
  const join = (given: string) =>
    server.call(`/auto/room/${id}/join`, { key: undefined, json: { secret: given } });
  assert.equal((await body(await join('wrong'))).code, 'ROOM_CLOSED');
  const ticket = await body(await join(secret));
  assert.equal(ticket.scripted, true);
  const grant = await server.services.tokens.find(ticket.session_token);
  assert.equal(grant?.conversationId, id);
  assert.equal((await body(await join(secret))).code, 'ROOM_CLOSED', 'the second time');
  const unknown = await server.call('/auto/room/no-such-room', { key: undefined });
  assert.match(unknown.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'$/);
});

test('null stands for what is not set', async () => {
  const names = ['faceId', 'maxSessionLength', 'maxIdleTime', 'language', 'createTranscript'];
  const { id } = await start({ ...local, ...Object.fromEntries(names.map((one) => [one, null])) });
  const stored = await server.services.conversationStore.find(id);
  assert.deepEqual(
    [stored!.faceId, stored!.maxLengthSeconds, stored!.maxIdleSeconds, stored!.language],
    ['ava', 3600, 300, 'en'],
  );
});

test('the key may be in the body, and a wrong one is refused', async () => {
  const open = (apiKey: string) =>
    server.call('/auto/start/configurable', { key: undefined, json: { ...local, apiKey } });
  assert.equal((await open(server.key)).status, 200);
  assert.equal((await open('wrong')).status, 401);
});

test('an auto token takes the key in the body, and is named as each client expects', async () => {
  const ask = (apiKey?: string) => server.call('/auto/token', { key: undefined, json: { apiKey } });
  const answer = await body(await ask(server.key));
  assert.ok(answer.session_token.length > 20);
  assert.deepEqual(
    [answer.sessionToken, answer.token],
    [answer.session_token, answer.session_token],
  );
  assert.equal((await ask('wrong')).status, 401);
  assert.equal((await ask()).status, 401);
});

test('what is missing or wrong is refused, with the name of the field', async () => {
  const cases: [object, string][] = [
    [{ ...local, llmConfig: { provider: 'OpenAI' } }, 'body.llmConfig.apiKey'],
    [{ ...local, llmConfig: { provider: 'User' } }, 'body.llmConfig.baseURL'],
    [
      { ...local, customLLMConfig: { baseURL: 'https://a.example' }, llmConfig: null },
      'body.customLLMConfig.model',
    ],
    [{ ...local, llmConfig: { provider: 'Other', apiKey: 'k' } }, 'body.llmConfig.provider'],
    [
      { ...local, customLLMConfig: { provider: 'x' }, llmConfig: null },
      'body.customLLMConfig.provider',
    ],
    [{ ...local, ttsProvider: 'PlayHT' }, 'body.ttsProvider'],
    [{ ...local, ttsProvider: 'OpenAI' }, 'body.ttsAPIKey'],
    [{ ...local, voiceId: 'nobody' }, 'body.voiceId'],
  ];
  for (const [json, field] of cases) {
    const reply = await server.call('/auto/start/configurable', { json });
    const { detail } = await body(reply);
    assert.equal(reply.status, 422, field);
    assert.equal(detail[0].loc.join('.'), field);
  }
  const face = await server.call('/auto/start/configurable', { json: { ...local, faceId: 'x' } });
  assert.equal((await body(face)).code, 'INVALID_FACE_ID');
});

test('the model of the operator answers for providers without a key, and for no unknown one', () => {
  const settings = { LLM_BASE_URL: 'http://models.lan/v1', LLM_MODEL: 'm' } as ProviderSettings;
  const choose = (llmProvider: string) => {
    const wishes = { llmProvider, llmModel: '', llmEndpoint: '', llmApiKey: '' };
    return chooseLanguageModel(wishes as ProviderWishes, settings, AGENT_FIELDS);
  };
  const url = 'http://models.lan/v1/chat/completions';
  for (const provider of ['local', 'openai', 'google']) {
    assert.deepEqual(choose(provider), { kind: 'chat', url, model: 'm', apiKey: '' });
  }
  assert.throws(
    () => choose('other'),
    ({ issues }) => /is not served\. Use/.test(issues[0].msg),
  );
});

test('a client cannot make the server call its own network', async () => {
  const at = async (baseURL: string): Promise<number> =>
    (
      await server.call('/auto/start/configurable', {
        json: { ttsProvider: 'local', llmConfig: { provider: 'User', baseURL, model: 'm' } },
      })
    ).status;
  for (const url of [
    'http://127.0.0.1:6379',
    'https://127.0.0.1',
    'https://[::1]/v1',
    'https://169.254.169.254/latest',
    'https://localhost/v1',
    'https://redis',
    'https://printer.local/v1',
    'http://public.example/v1',
    'https://user:password@public.example/v1',
    'https://:password@public.example/v1',
    'http://:password@models.lan:8000/v1',
    'ftp://public.example',
    'https://2130706433/v1',
  ]) {
    assert.equal(await at(url), 422, url);
  }
  assert.equal(await at('https://public.example/v1'), 200);
  assert.equal(await at('http://models.lan:8000/v1/chat/completions'), 200);
});

test('an agent is started with an auto token, by header and by link, on allowed origins', async () => {
  const agent = await body(
    await server.call('/auto/agent', {
      json: { face_id: 'ava', name: 'Guide', llm_provider: 'local' },
    }),
  );
  const token = (
    await body(
      await server.call('/auto/token', { json: { originAllowList: ['https://shop.example'] } }),
    )
  ).session_token;
  const reply = await server.call(`/auto/start/${agent.id}`, {
    method: 'POST',
    key: undefined,
    headers: { 'session-token': token },
  });
  assert.equal(reply.status, 200);
  const { sessionId } = await body(reply);
  const page = await server.call(`/auto/room/${sessionId}`, { key: undefined });
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /frame-ancestors https:\/\/shop\.example$/,
  );
  const link = `/auto/start/${agent.id}/${token}?redirect=true`;
  const redirect = await server.call(link, { key: undefined, redirect: 'manual' });
  assert.equal(redirect.status, 302);
  assert.match(redirect.headers.get('location') ?? '', /\/auto\/room\/.+#.+/);
  const elsewhere = await server.call(link, {
    key: undefined,
    headers: { origin: 'https://other.example' },
  });
  assert.equal((await body(elsewhere)).code, 'ORIGIN_NOT_ALLOWED');
  assert.equal(
    (await server.call(`/auto/start/${agent.id}/unknown-token`, { key: undefined })).status,
    401,
  );
});

test('origins are taken in each form that clients send, and what is none is refused', async () => {
  const tokenFor = async (origins: string[]): Promise<Response> =>
    await server.call('/auto/token', { json: { originAllowList: origins } });
  const agent = await body(
    await server.call('/auto/agent', { json: { face_id: 'ava', llm_provider: 'local' } }),
  );
  const statusOf = async (token: string, origin: string): Promise<number> => {
    const headers = { origin };
    const path = `/auto/start/${agent.id}/${token}`;
    return (await server.call(path, { key: undefined, headers })).status;
  };
  const { token } = await body(
    await tokenFor(['shop.example', 'https://a.example/', 'https://*.b.example', 'http://c:3000']),
  );
  for (const origin of ['https://shop.example', 'https://a.example', 'https://x.b.example']) {
    assert.equal(await statusOf(token, origin), 200, origin);
  }
  for (const origin of ['http://shop.example', 'https://b.example', 'https://b.example.evil']) {
    assert.equal(await statusOf(token, origin), 403, origin);
  }
  assert.equal(await statusOf(token, ''), 200, 'a program sends none');
  for (const wrong of [
    'https://a.example/page',
    'https://a.example/;script-src *',
    'ftp://a',
    '',
  ]) {
    const reply = await tokenFor([wrong]);
    assert.equal(reply.status, 422, wrong);
    assert.equal((await body(reply)).detail[0].loc.join('.'), 'body.originAllowList');
  }
});

test('a token is over at its expiry, and a room two minutes after its start', async () => {
  const { token } = await body(
    await server.call('/auto/token', { json: { expiryStamp: Math.ceil(Date.now() / 1000) + 1 } }),
  );
  const agent = await body(
    await server.call('/auto/agent', { json: { face_id: 'ava', llm_provider: 'local' } }),
  );
  const go = () => server.call(`/auto/start/${agent.id}/${token}`, { key: undefined });
  assert.equal((await go()).status, 200);
  const { id, secret } = await start(local);
  const { store } = server.store;
  const key = keys.conversationGrant(hashSecret(secret));
  const left = await store.use((client) => client.ttl(key));
  assert.ok(left > 115 && left <= 120, `${left} s`);
  await store.use((client) => client.pexpire(key, 1));
  await until(async () => (await go()).status === 401);
  const join = await server.call(`/auto/room/${id}/join`, { key: undefined, json: { secret } });
  assert.equal((await body(join)).code, 'ROOM_CLOSED');
});

test('a transcript is read by its owner only, with either key header', async () => {
  const store = server.services.conversationStore;
  const items = [
    { role: 'user', text: 'Hello', startMs: 1, endMs: 2, interrupted: false },
  ] as const;
  await store.writeTranscript({
    sessionId: 'c1',
    agentId: '',
    ownerId: 'owner-1',
    startedAt: '2026-01-01T00:00:00.000Z',
    endedAt: '2026-01-01T00:01:00.000Z',
    endReason: 'done',
    items,
  });
  const reply = await server.call('/auto/transcript/c1');
  assert.deepEqual(Object.keys(await body(reply)), [
    'sessionId',
    'agentId',
    'startedAt',
    'endedAt',
    'endReason',
    'items',
  ]);
  const other = await server.call('/auto/transcript/c1', {
    key: undefined,
    headers: { 'api-key': server.key },
  });
  assert.equal(other.status, 200);
  assert.equal((await server.call('/auto/transcript/c1', { key: otherKey })).status, 404);
  assert.equal((await server.call('/auto/transcript/c2')).status, 404);
  assert.equal((await server.call('/auto/transcript/c1', { key: undefined })).status, 401);
});
