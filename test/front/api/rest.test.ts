// History, the renamed paths, the page and the rate limit, over real HTTP on a real Redis.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { newUuid } from '../../../src/base/ids.ts';
import { sleep, wallSeconds } from '../../../src/base/time.ts';
import { jsonOf, startTestFront, stubVideos, type TestFront } from '../harness.ts';

let server: TestFront;

beforeAll(async () => {
  server = await startTestFront({
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name)),
  });
});
afterAll(() => server.close());

test('an auto token does not show the keys that it was created with', async () => {
  const reply = await server.call('/auto/token', {
    json: { llmAPIKey: 'sk-hidden', ttsAPIKey: 'tts-hidden', createTranscript: true },
  });
  assert.equal(reply.status, 200);
  assert.deepEqual(Object.keys(await jsonOf(reply)), ['session_token', 'sessionToken', 'token']);
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
    assert.equal((await jsonOf(reply))['code'], 'NOT_IMPLEMENTED');
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
  assert.deepEqual(await jsonOf(await server.call('/history/sessions')), { sessions: records });
  assert.deepEqual(
    await jsonOf(await server.call(`/history/sessions?startTime=${now - 25}&endTime=${now - 15}`)),
    { sessions: [records[1]] },
  );
  assert.deepEqual(
    await jsonOf(await server.call(`/history/sessions?start=${now - 25}&end=${now - 15}`)),
    { sessions: [records[1]] },
  );
  assert.deepEqual(await jsonOf(await server.call(`/history/sessions?startTime=${now + 5}`)), {
    sessions: [],
  });
  const wrong = await server.call('/history/sessions', { key: 'wrong' });
  assert.equal(wrong.status, 401);
  assert.deepEqual(Object.keys(await jsonOf(wrong)).sort(), ['code', 'error']);
  assert.equal((await server.call('/history/sessions?startTime=yesterday')).status, 422);
});

test('usage: sessions and seconds of the caller, by key and by day, from the first day on', async () => {
  const now = wallSeconds();
  const today = new Date(now * 1000).toISOString().slice(0, 10);
  const before = (await jsonOf(await server.call('/usage?days=3'))) as any;
  assert.equal(before.daily.length, 3);
  assert.equal(before.daily[2].date, today);
  assert.equal(before.daily[0].date, before.since);
  const entry = (userId: string, apiKeyName: string, daysAgo: number) => ({
    id: newUuid(),
    userId,
    sessionTokenId: 't',
    face_id: 'ava',
    kind: 'p2p' as const,
    apiKeyName,
    sessionTotalTime: 90.5,
    startTime: now - daysAgo * 86_400,
    endTime: now - daysAgo * 86_400 + 91,
  });
  for (const one of [
    entry('owner-1', 'laptop', 0),
    entry('owner-1', 'laptop', 1),
    entry('owner-1', 'phone', 2),
    entry('owner-1', 'phone', 3),
    entry('owner-2', 'laptop', 0),
  ]) {
    await server.services.history.write(one, now);
  }
  const [usage, same, day] = (await Promise.all(
    ['?days=3', '?days=3', '?days=1'].map(async (query) =>
      jsonOf(await server.call(`/usage${query}`)),
    ),
  )) as any[];
  assert.deepEqual(usage, same);
  assert.equal(usage.sessions - before.sessions, 3);
  assert.ok(Math.abs(usage.seconds - before.seconds - 271.5) < 0.01);
  assert.deepEqual(
    usage.keys.find(({ name }: any) => name === 'laptop'),
    {
      name: 'laptop',
      sessions: 2,
      seconds: 181,
    },
  );
  assert.deepEqual(
    usage.daily.map(({ sessions }: any, at: number) => sessions - before.daily[at].sessions),
    [1, 1, 1],
  );
  assert.equal(day.daily.length, 1);
  assert.equal(day.sessions, before.daily[2].sessions + 1);
  assert.equal((await server.call('/usage?days=0')).status, 422);
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
  assert.match(String((await jsonOf(removed))['error']), /\/static\/audio/);
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
