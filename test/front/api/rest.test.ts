// Faces, agents, history, static video's shell, the renamed paths and the page, over real HTTP on a
// real Redis.
import assert from 'node:assert/strict';
import { readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { newUuid } from '../../../src/base/ids.ts';
import { sleep, wallSeconds } from '../../../src/base/time.ts';
import type { StaticRequest } from '../../../src/front/videos/static-videos.ts';
import { startTestFront, stubVideos, type TestFront } from '../harness.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
let server: TestFront;
let otherKey: string;
const made: StaticRequest[] = [];

beforeAll(async () => {
  server = await startTestFront({
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name), made),
  });
  ({ key: otherKey } = await server.services.apiKeys.create('owner-2', 'other'));
});
afterAll(() => server.close());

const body = async (reply: Response): Promise<Record<string, unknown>> =>
  (await reply.json()) as Record<string, unknown>;

async function upload(bytes: Uint8Array, target = '/faces/legacy?face_name=Me'): Promise<Response> {
  const form = new FormData();
  form.set('image', new File([Buffer.from(bytes)], 'me.webp'));
  return await server.call(target, { method: 'POST', body: form });
}

async function untilDone(faceId: string): Promise<Record<string, unknown>> {
  for (let tries = 0; tries < 600; tries++) {
    const status = await body(
      await server.call(`/faces/legacy/generation_status?face_id=${faceId}`),
    );
    if (status['status'] === 'completed' || status['status'] === 'failed') {
      return status;
    }
    await sleep(50);
  }
  return assert.fail('the face was never done');
}

test('a face is created, used while pending, visible only to its owner, and deleted', async () => {
  const reply = await upload(await readFile(path.join(ROOT, 'models/faces/ava.webp')));
  assert.equal(reply.status, 200);
  assert.ok(reply.headers.get('deprecation'));
  const created = await body(reply);
  assert.equal(created['face_id'], created['character_uid']);
  assert.deepEqual(created['warnings'], []);
  const id = String(created['face_id']);
  assert.equal(
    (await server.call('/compose/token', { json: { faceId: id } })).status,
    200,
    'it can be named while pending',
  );
  assert.equal((await untilDone(id))['status'], 'completed');

  const listed = (await (await server.call('/faces')).json()) as {
    id: string;
    name: string;
    owner_id: string | undefined;
  }[];
  assert.deepEqual(
    listed.map(({ id: one, name, owner_id: owner }) => [one, name, owner]),
    [
      [id, 'Me', 'owner-1'],
      ['ava', 'Ava', null],
    ],
  );
  const others = (await (await server.call('/faces', { key: otherKey })).json()) as {
    id: string;
  }[];
  assert.deepEqual(
    others.map(({ id: one }) => one),
    ['ava'],
  );
  assert.equal(
    (await server.call('/compose/token', { json: { faceId: id }, key: otherKey })).status,
    400,
  );
  assert.equal(
    (
      await body(
        await server.call(`/faces/legacy/generation_status?face_id=${id}`, { key: otherKey }),
      )
    )['status'],
    'not_found',
  );
  assert.equal(
    (await server.call(`/faces/legacy/${id}`, { method: 'DELETE', key: otherKey })).status,
    404,
  );

  const file = path.join(server.dataDir, 'faces', id, 'asset.face');
  await rename(file, `${file}.aside`);
  const gone = await untilDone(id);
  assert.equal(gone['status'], 'failed', 'its files are gone from the disk');
  assert.match(String(gone['error']), /no longer in the storage.*Upload the picture again/);
  await rename(`${file}.aside`, file);
  assert.equal((await untilDone(id))['status'], 'completed');

  const preview = Buffer.from(await (await server.call(`/faces/${id}/preview`)).arrayBuffer());
  assert.equal(preview.subarray(0, 3).toString('latin1'), '\xff\xd8\xff');
  const asset = await server.services.faceCatalog.load('owner-1', id);
  assert.equal(Buffer.from(asset, 0, 6).toString(), 'MPFACE');
  assert.equal(
    await server.services.faceCatalog.load('owner-1', id),
    asset,
    'loaded once, shared by all sessions',
  );
  await assert.rejects(server.services.faceCatalog.load('owner-2', id), {
    code: 'INVALID_FACE_ID',
  });

  assert.equal((await server.call(`/faces/legacy/${id}`, { method: 'DELETE' })).status, 204);
  assert.equal((await server.call(`/faces/legacy/${id}`, { method: 'DELETE' })).status, 404);
  assert.equal((await server.call('/compose/token', { json: { faceId: id } })).status, 400);
  await assert.rejects(server.services.faceCatalog.load('owner-1', id), {
    code: 'INVALID_FACE_ID',
  });
  assert.equal(asset.byteLength > 0, true, 'a running session keeps what it has');
  assert.equal(
    (await server.call('/faces/legacy/ava', { method: 'DELETE' })).status,
    404,
    "a default face is nobody's to delete",
  );
});

test('an unusable portrait fails at once by its first bytes, or later in its status', async () => {
  const svg = await upload(
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
  );
  assert.equal(svg.status, 422);
  assert.deepEqual(((await body(svg))['detail'] as { loc: string[] }[])[0]?.loc, ['body', 'image']);
  const portrait = await readFile(path.join(ROOT, 'models/faces/ava.webp'));
  const { face_id: cut } = await body(await upload(portrait.subarray(0, portrait.length / 2)));
  const failed = await untilDone(String(cut));
  assert.equal(failed['status'], 'failed');
  assert.match(String(failed['error']), /damaged|incomplete/);
  assert.equal(
    (await server.call('/compose/token', { json: { faceId: String(cut) } })).status,
    400,
    'a failed face is no face',
  );
  assert.equal((await server.call(`/faces/${String(cut)}/preview`)).status, 404);
});

test('the queue of faces is bounded; its refusals carry Retry-After', async () => {
  const portrait = await readFile(path.join(ROOT, 'models/faces/noah.webp'));
  const replies = await Promise.all(Array.from({ length: 12 }, () => upload(portrait)));
  const refused = replies.filter(({ status }) => status === 429);
  assert.ok(refused.length > 0 && refused.length < 12, `${refused.length} of 12 refused`);
  assert.equal((await body(refused[0] as Response))['code'], 'QUEUE_FULL');
  assert.ok(refused[0]?.headers.get('retry-after'));
  const accepted = await Promise.all(replies.filter(({ status }) => status === 200).map(body));
  const positions = await Promise.all(
    accepted.map(
      async ({ face_id: id }) =>
        (await body(await server.call(`/faces/legacy/generation_status?face_id=${String(id)}`)))[
          'queue_position'
        ],
    ),
  );
  assert.ok(
    positions.some((position) => Number(position) >= 1),
    'those that wait know their place',
  );
  for (const { face_id: id } of accepted) {
    assert.equal(
      (await server.call(`/faces/legacy/${String(id)}`, { method: 'DELETE' })).status,
      204,
    );
  }
});

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
  const agent = await body(reply);
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
  assert.deepEqual(await body(await server.call(target)), agent);
  const changed = await server.call(target, {
    method: 'PUT',
    json: { ...agent, name: 'Guide', voice_provider: 'cartesia' },
    headers: { 'if-match': etag },
  });
  assert.equal(changed.status, 200);
  const now = await body(changed);
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
  const agent = await body(created);
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
    await body(await server.call(target, { method: 'PUT', json }));
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

test('an auto token does not show the keys that it was created with', async () => {
  const reply = await server.call('/auto/token', {
    json: { llmAPIKey: 'sk-hidden', ttsAPIKey: 'tts-hidden', createTranscript: true },
  });
  assert.equal(reply.status, 200);
  assert.deepEqual(Object.keys(await body(reply)), ['session_token']);
  assert.equal((await server.call('/auto/token', { json: { expiryStamp: 1000 } })).status, 422);
  assert.equal(
    (await server.call('/auto/token', { json: { expiryStamp: wallSeconds() + 100 } })).status,
    200,
  );
});

test('paths that are not available yet reply NOT_IMPLEMENTED', async () => {
  for (const [target, init] of [
    [
      '/integrations/livekit/agents',
      { json: { session_token: 't', livekit_token: 'l', livekit_url: 'wss://x' } },
    ],
  ] as const) {
    const reply = await server.call(target, init);
    assert.equal(reply.status, 501, target);
    assert.equal((await body(reply))['code'], 'NOT_IMPLEMENTED');
  }
});

test('history: only records of the caller, in order, by range, with both parameter names', async () => {
  const now = wallSeconds();
  const entry = (userId: string, ago: number) => ({
    id: newUuid(),
    userId,
    sessionTokenId: 't',
    face_id: 'ava',
    kind: 'p2p' as const,
    endUserAggregator: 'team',
    apiKeyName: 'test',
    sessionTotalTime: 1.25,
    startTime: now - ago,
    endTime: now - ago + 1,
  });
  const records = [entry('owner-1', 30), entry('owner-1', 20), entry('owner-1', 10)];
  for (const one of [...records.toReversed(), entry('owner-2', 15)]) {
    await server.services.history.write(one, now);
  }
  assert.deepEqual(await body(await server.call('/history/sessions')), { sessions: records });
  assert.deepEqual(
    await body(await server.call(`/history/sessions?startTime=${now - 25}&endTime=${now - 15}`)),
    { sessions: [records[1]] },
  );
  assert.deepEqual(
    await body(await server.call(`/history/sessions?start=${now - 25}&end=${now - 15}`)),
    { sessions: [records[1]] },
  );
  assert.deepEqual(await body(await server.call(`/history/sessions?startTime=${now + 5}`)), {
    sessions: [],
  });
  const wrong = await server.call('/history/sessions', { key: 'wrong' });
  assert.equal(wrong.status, 401);
  assert.deepEqual(Object.keys(await body(wrong)).sort(), ['code', 'error']);
  assert.equal((await server.call('/history/sessions?startTime=yesterday')).status, 422);
});

test('static video: fully validated, parsed off the main thread when large, files with ranges', async () => {
  const bad = await server.call('/static/audio', {
    json: {
      audioBase64: '!!!',
      audioFormat: 'flac',
      audioSampleRate: 4000,
      audioChannelCount: 3,
      videoStartingFrame: -1,
    },
  });
  assert.deepEqual(
    ((await body(bad))['detail'] as { loc: [string, string] }[])
      .map(({ loc }) => loc[1])
      .sort((a, b) => a.localeCompare(b)),
    [
      'audioBase64',
      'audioChannelCount',
      'audioFormat',
      'audioSampleRate',
      'faceId',
      'videoStartingFrame',
    ],
  );
  for (const audioBase64 of ['', 5, null, undefined]) {
    assert.equal(
      (await server.call('/static/audio', { json: { faceId: 'ava', audioBase64 } })).status,
      422,
    );
  }
  const rejected = await server.call('/static/audio', {
    json: {
      faceId: 'ava',
      audioFormat: 'mp3',
      audioBase64: Buffer.from('1234').toString('base64'),
    },
  });
  assert.equal(
    ((await body(rejected))['detail'] as { msg: string }[])[0]?.msg,
    'This is not an MP3 file',
  );
  assert.equal(
    (await server.call('/static/audio', { json: { faceId: 'nobody', audioBase64: 'AAAA' } }))
      .status,
    400,
  );

  const audio = Buffer.alloc(3_000_000, 7);
  for (const [index, bytes] of [audio.subarray(0, 1000), audio].entries()) {
    const reply = await server.call('/static/audio', {
      json: { faceId: 'ava/sad', audioBase64: bytes.toString('base64') },
    });
    assert.equal(reply.status, 200);
    assert.deepEqual(await body(reply), {
      id: 'video-1',
      hls_url: `${server.url}/static/hls/video-1/output.m3u8`,
      mp4_url: `${server.url}/static/mp4/video-1/output.mp4`,
      mp4_availability_eta_seconds: 1.5,
    });
    const { audio: got, ...request } = made[index] as StaticRequest;
    assert.ok(Buffer.from(got).equals(bytes));
    assert.deepEqual(
      { ...request, keyId: '' },
      {
        ownerId: 'owner-1',
        keyId: '',
        keyName: 'test',
        faceId: 'ava',
        emotion: 'sad',
        audioFormat: 'pcm16',
        sampleRate: 16_000,
        channelCount: 1,
        startFrame: 0,
      },
    );
  }
  assert.equal(
    (
      await server.call('/static/audio', {
        method: 'POST',
        body: `${' '.repeat(300_000)}{`,
        headers: { 'content-type': 'application/json' },
      })
    ).status,
    422,
  );

  assert.equal(
    (await body(await server.call('/static/status?id=video-1', { key: undefined })))['progress'],
    0.5,
  );
  const part = await server.call('/static/mp4/video-1/output.mp4', {
    key: undefined,
    headers: { range: 'bytes=0-2' },
  });
  assert.deepEqual(
    [part.status, part.headers.get('content-type'), await part.text()],
    [206, 'video/mp4', 'not'],
  );
  const playlist = await server.call('/static/hls/video-1/output.m3u8', {
    key: undefined,
    method: 'HEAD',
  });
  assert.deepEqual(
    [playlist.status, playlist.headers.get('content-type'), playlist.headers.get('cache-control')],
    [200, 'application/vnd.apple.mpegurl', 'no-cache'],
  );
  for (const target of [
    '/static/hls/video-1/segment-9.m4s',
    '/static/mp4/unknown/output.mp4',
    '/static/status?id=unknown',
  ]) {
    assert.equal((await server.call(target, { key: undefined })).status, 404);
  }
  for (const target of [
    '/static/hls/video-1/..%2f..%2fsecrets.key',
    '/static/hls/video-1/output.txt',
  ]) {
    assert.equal((await server.call(target, { key: undefined })).status, 422);
  }
  const old = await server.call('/MP4?id=video-1', { key: undefined, redirect: 'manual' });
  assert.deepEqual(
    [old.status, old.headers.get('location')],
    [302, '/static/mp4/video-1/output.mp4'],
  );
});

test('links to static videos follow PUBLIC_URL, else the headers of the proxy', async () => {
  const audio = { json: { faceId: 'ava', audioBase64: 'AAAA' } };
  const proxied = await body(
    await server.call('/static/audio', { ...audio, headers: { 'x-forwarded-proto': 'https' } }),
  );
  assert.equal(
    proxied['mp4_url'],
    `${server.url.replace('http:', 'https:')}/static/mp4/video-1/output.mp4`,
  );
  const named = await startTestFront({
    config: { PUBLIC_URL: 'https://media.example' },
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name)),
  });
  try {
    assert.equal(
      (await body(await named.call('/static/audio', audio)))['hls_url'],
      'https://media.example/static/hls/video-1/output.m3u8',
    );
  } finally {
    await named.close();
  }
});

test('every deprecated path names its successor, in any case; the removed one says what to do', async () => {
  for (const [method, old, successor, ok] of [
    ['GET', '/getIceServers', '/compose/ice', 200],
    ['POST', '/startAudioToVideoSession', '/compose/token', 422],
    ['POST', '/audioToVideoStream', '/static/audio', 422],
    ['POST', '/generateFaceID', '/faces/legacy', 415],
    ['POST', '/getRequestStatus?face_id=x', '/faces/legacy/generation_status', 200],
    ['GET', '/mp4', '/static/mp4', 422],
    ['GET', '/hls', '/static/hls', 422],
    ['POST', '/StartLivekitAgentsSession', '/integrations/livekit/agents', 422],
  ] as const) {
    for (const spelling of [
      old,
      old.toLowerCase(),
      old.toUpperCase().replace('FACE_ID=X', 'face_id=x'),
    ]) {
      const reply = await server.call(
        spelling,
        method === 'POST'
          ? { method, body: '{}', headers: { 'content-type': 'application/json' } }
          : {},
      );
      assert.equal(reply.status, ok, spelling);
      assert.match(reply.headers.get('deprecation') ?? '', /^@\d+$/, spelling);
      assert.equal(reply.headers.get('link'), `<${successor}>; rel="successor-version"`);
    }
  }
  const removed = await server.call('/texttovideoSTREAM', { method: 'POST', key: undefined });
  assert.equal(removed.status, 410);
  assert.match(String((await body(removed))['error']), /\/static\/audio/);
});

test('the demo page is served with its own files and nothing else', async () => {
  const index = await server.call('/', { key: undefined });
  assert.equal(index.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(index.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  const html = await index.text();
  for (const [, name] of html.matchAll(/(?:src|href)="([\w./-]+\.(?:js|css|svg))"/g)) {
    assert.equal((await server.call(`/${String(name)}`, { key: undefined })).status, 200, name);
  }
  for (const hidden of [
    '/README.md',
    '/tsconfig.json',
    '/samples/make.sh',
    '/../config.ts',
    '/%2e%2e/config.ts',
  ]) {
    assert.equal((await server.call(hidden, { key: undefined })).status, 404, hidden);
  }
});

test('too many requests are refused for some time', async () => {
  const limited = await startTestFront({ config: { RATE_LIMIT_RPS: 5 } });
  try {
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => limited.call('/ratelimiter/sessions')),
    );
    const refused = replies.filter(({ status }) => status === 429);
    assert.ok(refused.length >= 5 && refused.length <= 10, `${refused.length} of 20 refused`);
    assert.equal(refused[0]?.headers.get('retry-after'), '1');
    await sleep(1000);
    assert.equal((await limited.call('/ratelimiter/sessions')).status, 200);
  } finally {
    await limited.close();
  }
});
