// Agents of conversations over real HTTP on a real Redis.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { jsonOf, startFrontOfTwo, type TestFront } from '../harness.ts';

let server: TestFront;
let otherKey: string;

beforeAll(async () => {
  ({ front: server, otherKey } = await startFrontOfTwo());
});
afterAll(() => server.close());

test('an agent is created with defaults, listed, changed without lost updates, and deleted', async () => {
  const reply = await server.call('/auto/agent', {
    json: {
      face_id: 'ava',
      prompt: 'Be kind.',
      owner_id: 'somebody else',
      created_at: 'yesterday',
    },
  });
  assert.equal(reply.status, 201);
  assert.ok(reply.headers.get('deprecation'));
  const etag = reply.headers.get('etag') ?? '';
  const agent = await jsonOf(reply);
  const { id, created_at: createdAt, updated_at: updatedAt, ...rest } = agent;
  assert.match(String(id), /^[0-9a-f-]{36}$/);
  assert.ok(Date.parse(String(createdAt)) > Date.now() - 60_000 && createdAt === updatedAt);
  assert.deepEqual(rest, {
    face_id: 'ava',
    name: 'Untitled Agent',
    first_message: null,
    prompt: 'Be kind.',
    voice_provider: 'local',
    voice_id: null,
    voice_model: null,
    language: 'en',
    emotion: null,
    llm_model: null,
    llm_provider: 'openai',
    llm_endpoint: null,
    max_idle_time: 300,
    max_session_length: 3600,
    owner_id: 'owner-1',
    service_version: 1,
  });
  const target = `/auto/agent/${String(id)}`;
  assert.deepEqual(await jsonOf(await server.call(target)), agent);
  const changed = await server.call(target, {
    method: 'PUT',
    json: { ...agent, name: 'Guide', voice_provider: 'cartesia' },
    headers: { 'if-match': etag },
  });
  assert.equal(changed.status, 200);
  const now = await jsonOf(changed);
  assert.equal(now['name'], 'Guide');
  assert.equal(now['prompt'], 'Be kind.');
  assert.ok(String(now['updated_at']) > String(updatedAt) && now['created_at'] === createdAt);
  assert.equal(
    (
      await server.call(target, {
        method: 'PUT',
        json: { name: 'Late' },
        headers: { 'if-match': etag },
      })
    ).status,
    412,
  );
  assert.equal(
    (await server.call(target, { method: 'PUT', json: { voice_provider: 'nobody' } })).status,
    422,
  );
  assert.deepEqual(((await (await server.call('/auto/agents')).json()) as unknown[]).length, 1);
  assert.deepEqual(await (await server.call('/auto/agents', { key: otherKey })).json(), []);
  for (const init of [{}, { method: 'PUT', json: { name: 'x' } }, { method: 'DELETE' }]) {
    assert.equal((await server.call(target, { ...init, key: otherKey })).status, 404);
  }
  assert.equal((await server.call(target, { method: 'DELETE' })).status, 204);
  assert.equal((await server.call(target)).status, 404);
  assert.equal((await server.call('/auto/agent', { json: { name: 'faceless' } })).status, 422);
});

test('null sets the default of an agent field, also on a change; omitted fields stay', async () => {
  const settable = [
    'name',
    'first_message',
    'prompt',
    'voice_provider',
    'voice_id',
    'voice_model',
    'language',
    'emotion',
    'llm_model',
    'llm_provider',
    'llm_endpoint',
    'max_idle_time',
    'max_session_length',
  ];
  const nothing = Object.fromEntries(settable.map((name) => [name, null]));
  const created = await server.call('/auto/agent', {
    json: { face_id: 'ava', ...nothing, owner_id: null, created_at: null, updated_at: null },
  });
  assert.equal(created.status, 201);
  const agent = await jsonOf(created);
  assert.deepEqual(
    [
      agent['name'],
      agent['language'],
      agent['voice_provider'],
      agent['llm_provider'],
      agent['max_idle_time'],
      agent['max_session_length'],
      agent['prompt'],
    ],
    ['Untitled Agent', 'en', 'local', 'openai', 300, 3600, null],
  );
  const target = `/auto/agent/${String(agent['id'])}`;
  const change = async (json: Record<string, unknown>) =>
    await jsonOf(await server.call(target, { method: 'PUT', json }));
  const set = await change({
    name: 'Guide',
    language: 'fi',
    prompt: 'Be kind.',
    max_idle_time: 60,
  });
  assert.deepEqual(
    [set['name'], set['language'], set['prompt'], set['max_idle_time']],
    ['Guide', 'fi', 'Be kind.', 60],
  );
  const back = await change({ language: null, prompt: null, max_idle_time: null });
  assert.deepEqual(
    [back['name'], back['language'], back['prompt'], back['max_idle_time']],
    ['Guide', 'en', null, 300],
  );
  for (const [method, path] of [
    ['PUT', target],
    ['POST', '/auto/agent'],
  ] as const) {
    assert.equal(
      (await server.call(path, { method, json: { name: 'x', face_id: null } })).status,
      422,
    );
  }
  assert.equal((await server.call(target, { method: 'PUT', json: { name: '' } })).status, 422);
  assert.equal((await server.call(target, { method: 'DELETE' })).status, 204);
  const { paths } = (await (await server.call('/openapi.json', { key: undefined })).json()) as {
    paths: Record<
      string,
      Record<
        string,
        {
          requestBody: {
            content: Record<
              string,
              {
                schema: {
                  required?: string[];
                  properties: Record<string, { anyOf?: { type: string }[]; description?: string }>;
                };
              }
            >;
          };
        }
      >
    >;
  };
  for (const operation of [paths['/auto/agent']!['post']!, paths['/auto/agent/{id}']!['put']!]) {
    const { required, properties } = operation.requestBody.content['application/json']!.schema;
    for (const name of settable) {
      assert.ok(
        properties[name]!.anyOf?.some(({ type }) => type === 'null') && !required?.includes(name),
        `${name} may be null, by the document`,
      );
    }
    assert.equal(properties['language']!.description, 'null: "en".');
  }
});
