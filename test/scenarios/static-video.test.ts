// Static video over REST as a client meets it: playable at once, both files played to the end by a
// browser, ranges, refusals, kill -9.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { patience } from '../harness/machine.ts';
import { FPS } from '../../src/media/timeline.ts';
import type { TestBrowser } from '../harness/browser.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { probeFile, topBoxes } from '../harness/media-file.ts';
import { call, firstFace, startServer, type TestServer } from '../harness/server.ts';
import { concat, synthesize, toWav, type Speech } from '../harness/speech.ts';

let server: TestServer;
let browser: TestBrowser;
let speech: Speech;
let faceId: string;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
  speech = await synthesize('My mother bought a big apple pie, and papa made bread.');
  faceId = await firstFace(server);
});
afterAll(async () => {
  await browser.close();
  assert.equal(await server.stop(), 0);
  // Servers of other tests may run beside this one.
  assert.deepEqual(
    server.logs.filter((line) => /"level":(40|50|60)/.test(line) && !/share cores/.test(line)),
    [],
  );
});

interface Created {
  readonly id: string;
  readonly hls_url: string;
  readonly mp4_url: string;
  readonly mp4_availability_eta_seconds: number;
}

async function create(
  target: TestServer,
  audio: Buffer,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Created> {
  const { status, body } = await call(target, '/static/audio', {
    faceId,
    audioBase64: audio.toString('base64'),
    audioFormat: 'wav',
    ...fields,
  });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Polls until the video is done, and sees to it that progress never goes back. */
async function finished(target: TestServer, id: string): Promise<Record<string, any>> {
  let progress = 0;
  for (;;) {
    const { status, body } = await call(target, `/static/status?id=${id}`);
    assert.equal(status, 200);
    if (body.status === 'completed') {
      assert.equal(body.progress, 1);
      return body;
    }
    assert.ok(['queued', 'rendering'].includes(body.status), JSON.stringify(body));
    assert.ok(
      body.progress >= progress && body.progress < 1,
      `progress went from ${progress} to ${body.progress}`,
    );
    assert.ok(body.eta_seconds > 0);
    progress = body.progress;
    await delay(50);
  }
}

const get = async (
  url: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<{ status: number; headers: Headers; bytes: Buffer }> => {
  const response = await fetch(url, { method, headers });
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  };
};

test('HLS can be played while the rest is rendered; the MP4 comes with ranges and validators', async () => {
  const startMs = performance.now();
  const made = await create(server, await readFile(speech.wavFile));
  const first = await get(made.hls_url);
  const playableMs = performance.now() - startMs;
  assert.equal(first.status, 200);
  assert.equal(first.headers.get('content-type'), 'application/vnd.apple.mpegurl');
  assert.match(first.bytes.toString(), /#EXTINF/);
  // One second on an idle machine. Beside other tests the job thread, of low priority, gets little.
  assert.ok(playableMs < 15_000 * patience(), `HLS was playable after ${playableMs.toFixed(0)} ms`);
  await finished(server, made.id);

  const hls = await probeFile(made.hls_url);
  assert.ok(Math.abs(hls.seconds - speech.durationMs / 1000) < 1 / FPS);
  assert.match((await get(made.hls_url)).bytes.toString(), /TYPE:VOD[^]*ENDLIST/);
  const mp4 = await probeFile(made.mp4_url);
  assert.ok(Math.abs(mp4.seconds - speech.durationMs / 1000) < 1 / FPS);

  const whole = await get(made.mp4_url);
  const etag = whole.headers.get('etag')!;
  assert.equal(topBoxes(whole.bytes)[1], 'moov');
  assert.equal(whole.headers.get('content-type'), 'video/mp4');
  const size = whole.bytes.length;
  const head = await get(made.mp4_url, {}, 'HEAD');
  assert.deepEqual(
    [head.status, head.bytes.length, head.headers.get('content-length'), head.headers.get('etag')],
    [200, 0, String(size), etag],
  );
  for (const [range, from, to] of [
    ['bytes=0-99', 0, 100],
    ['bytes=1000-1999', 1000, 2000],
    [`bytes=${size - 10}-`, size - 10, size],
    ['bytes=-500', size - 500, size],
  ] as const) {
    const part = await get(made.mp4_url, { range });
    assert.deepEqual(
      [part.status, part.headers.get('content-range')],
      [206, `bytes ${from}-${to - 1}/${size}`],
    );
    assert.ok(part.bytes.equals(whole.bytes.subarray(from, to)));
  }
  assert.equal((await get(made.mp4_url, { range: `bytes=${size}-` })).status, 416);
  assert.equal((await get(made.mp4_url, { 'if-none-match': etag })).status, 304);
  assert.equal((await get(`${server.url}/static/mp4?id=${made.id}`)).bytes.length, size);
});

test('a video that does not exist is 404, whatever the name looks like', async () => {
  const made = await create(server, await readFile(speech.wavFile));
  await finished(server, made.id);
  const unknown = '00000000-0000-4000-8000-000000000000';
  for (const url of [
    `/static/mp4/${unknown}/output.mp4`,
    `/static/hls/${unknown}/output.m3u8`,
    `/static/status?id=${unknown}`,
    `/static/hls/${made.id}/segment-9999.m4s`,
    `/static/hls/${made.id}/upload.mp4`,
    `/static/hls/..%2F${made.id}/output.m3u8`,
    '/static/mp4/..%2f..%2fapi-key/output.mp4',
    '/static/mp4/x/output.mp4',
  ]) {
    const { status, bytes } = await get(server.url + url);
    assert.ok(status === 404 || status === 422, `${url}: ${status}`);
    assert.ok(JSON.parse(bytes.toString()));
  }
});

test('what cannot be used is refused before anything is queued, in words that name the field', async () => {
  const post = (fields: Readonly<Record<string, unknown>>): ReturnType<typeof call> =>
    call(server, '/static/audio', {
      faceId,
      audioBase64: Buffer.alloc(3200).toString('base64'),
      ...fields,
    });
  for (const [fields, pattern] of [
    [{ audioFormat: 'mp3' }, /not an MP3 file/],
    [{ audioFormat: 'wav' }, /not a WAV file/],
    [{ audioFormat: 'ogg' }, /not an Ogg file/],
    [{ audioBase64: 'AAAA' }, /not a whole number of samples/],
    [{ audioBase64: '' }, /empty/],
    [{ audioBase64: '%%%' }, /Base64/],
    [{ audioSampleRate: 4000 }, /8000/],
    [{ audioFormat: 'flac' }, /pcm16/],
    [{ audioChannelCount: 3 }, /2/],
    [
      { audioBase64: Buffer.alloc(16_000 * 601).toString('base64'), audioSampleRate: 8000 },
      /longer than 10 minutes/,
    ],
  ] as const) {
    const { status, body } = await post(fields);
    assert.equal(status, 422, JSON.stringify(body));
    assert.match(JSON.stringify(body.detail), pattern);
    assert.equal(body.detail[0].loc[0], 'body');
  }
  assert.equal((await post({ faceId: 'nobody' })).status, 400);
  assert.equal((await post({ faceId: `${faceId}/furious` })).status, 400);
});

test('a browser plays the MP4 and the HLS segments to the end', async () => {
  const made = await create(server, await readFile(speech.wavFile), { faceId: `${faceId}/happy` });
  const page = await browser.newPage({ width: 600, height: 600 });
  await page.setBypassCSP(true);
  await page.goto(`${server.url}/healthz`);
  const live = await page.evaluate(playHls, made.hls_url); // while it is still being rendered
  await finished(server, made.id);
  const file = await page.evaluate(playFile, made.mp4_url);
  for (const [name, seen] of [
    ['HLS', live],
    ['MP4', file],
  ] as const) {
    assert.ok(
      Math.abs(seen.seconds - speech.durationMs / 1000) < 0.05,
      `${name} lasts ${seen.seconds} s`,
    );
    assert.ok(
      seen.frames > seen.seconds * FPS * 0.5,
      `${name}: only ${seen.frames} frames were shown`,
    );
    assert.equal(seen.starts, 0, `${name} begins at ${seen.starts}`);
    assert.ok(seen.audibleBytes > 1000, `${name}: no sound was decoded`);
    assert.deepEqual([seen.width, seen.height], [512, 512]);
  }
  assert.deepEqual(browser.problems, []);
});

test('kill -9 in the middle: the restart does the job, and what was served stays the same', async () => {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-kill-'));
  let own = await startServer({ dataDir });
  try {
    const long = concat(...Array.from({ length: 5 }, () => speech.pcm));
    const made = await create(own, toWav(long));
    const queued = await create(own, await readFile(speech.wavFile));
    const names = await listed(own, made.id, 3);
    const served = await Promise.all(
      names.map(async (name) => (await get(`${own.url}/static/hls/${made.id}/${name}`)).bytes),
    );
    assert.notEqual(
      (await call(own, `/static/status?id=${made.id}`)).body.status,
      'completed',
      'too fast to be killed in the middle',
    );
    own.process.kill('SIGKILL');
    await once(own.process, 'exit');

    own = await startServer({ dataDir });
    assert.ok(
      (await listed(own, made.id, names.length)).length >= names.length,
      'a segment that was announced is gone',
    );
    const { duration_seconds: seconds } = await finished(own, made.id);
    await finished(own, queued.id);
    assert.ok(Math.abs(seconds - long.length / 16_000) < 0.001);
    for (const [index, name] of names.entries()) {
      assert.ok(
        (await get(`${own.url}/static/hls/${made.id}/${name}`)).bytes.equals(served[index]!),
        `${name} changed`,
      );
    }
    for (const address of [
      `${own.url}/static/mp4/${made.id}/output.mp4`,
      `${own.url}/static/hls/${made.id}/output.m3u8`,
    ]) {
      assert.ok(Math.abs((await probeFile(address)).seconds - seconds) < 1 / FPS);
    }
    const { body } = await call(own, '/history/sessions');
    assert.deepEqual(
      body.sessions.map(({ id, kind }: { id: string; kind: string }) => `${kind} ${id}`).sort(),
      [`static ${made.id}`, `static ${queued.id}`].sort(),
    );
  } finally {
    await own.stop();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
});

/** Files of the playlist, once there are `count` segments. */
async function listed(target: TestServer, id: string, count: number): Promise<string[]> {
  for (;;) {
    const text = (await get(`${target.url}/static/hls/${id}/output.m3u8`)).bytes.toString();
    const segments = text.split('\n').filter((line) => line.endsWith('.m4s'));
    if (segments.length >= count) {
      return ['init.mp4', ...segments];
    }
    await delay(20);
  }
}

interface Played {
  readonly seconds: number;
  readonly frames: number;
  readonly starts: number;
  readonly audibleBytes: number;
  readonly width: number;
  readonly height: number;
}

/** In the page: follows the playlist as a player does, appending each segment when it appears. */
async function playHls(url: string): Promise<Played> {
  const video = document.createElement('video');
  const source = new MediaSource();
  video.src = URL.createObjectURL(source);
  document.body.append(video);
  await new Promise((resolve) => {
    source.addEventListener('sourceopen', resolve, { once: true });
  });
  const buffer = source.addSourceBuffer('video/mp4; codecs="avc1.42c01f,mp4a.40.2"');
  const append = async (name: string): Promise<void> => {
    const bytes = await (await fetch(new URL(name, url))).arrayBuffer();
    buffer.appendBuffer(bytes);
    await new Promise((resolve, reject) => {
      buffer.onupdateend = resolve;
      buffer.onerror = () => reject(new Error(`${name} cannot be played`));
    });
  };
  let appended = -1; // the first is the initialisation segment
  let ended: Promise<unknown> | undefined;
  for (;;) {
    const playlist = await (await fetch(url)).text();
    const names = playlist.split('\n').filter((line) => line.endsWith('.m4s'));
    for (; appended < names.length; appended++) {
      await append(names[appended] ?? 'init.mp4');
    }
    ended ??= new Promise((resolve, reject) => {
      video.onended = resolve;
      video.onerror = () => reject(new Error(video.error?.message));
      void video.play();
    });
    if (playlist.includes('#EXT-X-ENDLIST')) {
      break;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
  }
  source.endOfStream();
  await ended;
  const counters = video as unknown as { webkitAudioDecodedByteCount: number };
  return {
    seconds: video.duration,
    frames: video.getVideoPlaybackQuality().totalVideoFrames,
    starts: buffer.buffered.start(0),
    audibleBytes: counters.webkitAudioDecodedByteCount,
    width: video.videoWidth,
    height: video.videoHeight,
  };
}

async function playFile(url: string): Promise<Played> {
  const video = document.createElement('video');
  document.body.append(video);
  await new Promise((resolve, reject) => {
    video.onended = resolve;
    video.onerror = () => reject(new Error(video.error?.message));
    video.src = url;
    void video.play();
  });
  const counters = video as unknown as { webkitAudioDecodedByteCount: number };
  return {
    seconds: video.duration,
    frames: video.getVideoPlaybackQuality().totalVideoFrames,
    starts: video.buffered.start(0),
    audibleBytes: counters.webkitAudioDecodedByteCount,
    width: video.videoWidth,
    height: video.videoHeight,
  };
}
