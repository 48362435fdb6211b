// The routes of static videos over real HTTP: what they refuse, and the files that they serve.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import type { StaticRequest } from '../../../src/front/videos/static-videos.ts';
import { jsonOf, startTestFront, stubVideos, type TestFront } from '../harness.ts';

let server: TestFront;
const made: StaticRequest[] = [];

beforeAll(async () => {
  server = await startTestFront({
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name), made),
  });
});
afterAll(() => server.close());

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
    ((await jsonOf(bad))['detail'] as { loc: [string, string] }[])
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
    ((await jsonOf(rejected))['detail'] as { msg: string }[])[0]?.msg,
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
    assert.deepEqual(await jsonOf(reply), {
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
    (await jsonOf(await server.call('/static/status?id=video-1', { key: undefined })))['progress'],
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
  const proxied = await jsonOf(
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
      (await jsonOf(await named.call('/static/audio', audio)))['hls_url'],
      'https://media.example/static/hls/video-1/output.m3u8',
    );
  } finally {
    await named.close();
  }
});
