// The JavaScript client in a real browser against the real server: each kind of speech, events,
// interruption, reconnection, figures, and the browser's rules for sound.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { sleep } from '../../src/base/time.ts';
import type { TestBrowser } from '../harness/browser.ts';
import { patience } from '../harness/machine.ts';
import { createToken, ROOT, startServer, type TestServer } from '../harness/server.ts';
import { accessProblems } from '../harness/page-checks.ts';
import { OUT } from '../harness/speech.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { until } from '../harness/until.ts';

let server: TestServer;
let browser: TestBrowser;
let page: Page;
beforeAll(async () => {
  await mkdir(OUT, { recursive: true });
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

/** Runs in the page: keeps its WebSockets, and makes `open` and `until` for the tests. */
function prepare(): void {
  const scope = globalThis as any;
  scope.sockets = [];
  scope.WebSocket = class extends WebSocket {
    constructor(url: string) {
      super(url);
      scope.sockets.push(this);
    }
  };
  scope.open = async (token: string, options: object = {}) => {
    const address = '/client/index.js';
    const client = await import(address);
    const video = document.body.appendChild(document.createElement('video'));
    const session = new client.Session({ sessionToken: token, video, ...options });
    const events: { name: string; detail: any }[] = [];
    const names = ['started', 'speaking', 'silent', 'interrupted', 'flushed', 'rejected'];
    for (const name of [...names, 'reconnecting', 'autoplay', 'end']) {
      session.on(name, (detail: any) => events.push({ name, detail }));
    }
    await session.started();
    return Object.assign(scope, { client, session, video, events });
  };
  /** Resolves with the `count`-th event of a name. */
  scope.until = async (name: string, count = 1) => {
    for (;;) {
      const found = scope.events.filter((event: any) => event.name === name);
      if (found.length >= count) {
        return found[count - 1].detail;
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    }
  };
}

beforeEach(async () => {
  page = await browser.newPage({ width: 600, height: 600 });
  await page.goto(`${server.url}/auto/room/none`);
  await page.evaluate(prepare);
  return async () => {
    await page.evaluate(() => (globalThis as any).session?.close());
    await page.close();
  };
});

const opened = async (options: object = {}): Promise<void> => {
  await page.evaluate(
    async (token, given) => {
      await (globalThis as any).open(token, given);
    },
    await createToken(server),
    options,
  );
};

test('chunks, iterables, streams, fetched bodies, files and tracks are spoken', async () => {
  await opened();
  const told = await page.evaluate(async () => {
    const { session, until } = globalThis as any;
    const tone = (seconds: number) =>
      Int16Array.from({ length: seconds * 16_000 }, (_, at) => 9000 * Math.sin(at / 12));
    const results: unknown[] = [];
    let spoken = 0;
    const speak = async (source: unknown) => {
      results.push(await session.speak(source));
      await until('silent', ++spoken);
    };
    await speak(tone(0.3));
    await speak([tone(0.2), new Uint8Array(tone(0.2).buffer)]);
    await speak(
      new ReadableStream({
        start(controller) {
          controller.enqueue(Float32Array.from(tone(0.3), (value) => value / 32_768));
          controller.close();
        },
      }),
    );
    const headers = { 'content-type': 'audio/pcm' };
    await speak(new Response(tone(0.3), { headers }));
    await speak(await fetch('/samples/vowels.mp3'));
    const context = new AudioContext();
    const oscillator = new OscillatorNode(context, { frequency: 220 });
    const output = context.createMediaStreamDestination();
    oscillator.connect(output);
    oscillator.start();
    setTimeout(() => {
      for (const track of output.stream.getTracks()) {
        track.stop();
        track.dispatchEvent(new Event('ended'));
      }
    }, 700);
    await speak(output.stream);
    const failed = await session
      .speak(new Response('', { status: 404 }))
      .catch((error: Error) => error.message);
    return { results, failed };
  });
  assert.deepEqual(told.results, [true, true, true, true, true, true]);
  assert.match(told.failed, /404/);
  assert.deepEqual(browser.problems, []);
});

test('an interruption ends what is being sent; a new speech may take its place', async () => {
  await opened();
  const told = await page.evaluate(async () => {
    const { session, until, events } = globalThis as any;
    const second = new Int16Array(16_000)
      .fill(5000)
      .map((value, at) => (at % 90 < 45 ? value : -value));
    async function* forever() {
      for (;;) {
        yield second;
        await new Promise((resolve) => {
          setTimeout(resolve, 100);
        });
      }
    }
    const endless = session.speak(forever());
    await until('speaking');
    session.interrupt();
    const wasWhole = await endless;
    const { droppedMs } = await until('interrupted');
    await until('silent');
    session.command({ type: 'gesture', gesture: 'wave' });
    const { command } = await until('rejected');
    const replaced = session.speak(forever());
    await until('speaking', 2);
    const isWhole = await session.speak(second, { interrupt: true });
    const old = await replaced;
    await session.flush('last');
    await session.finish();
    const { id } = await until('flushed');
    const { reason } = await until('end');
    const spoken = events.filter(({ name }: any) => name === 'speaking');
    const last = spoken.at(-1).detail;
    return { wasWhole, old, isWhole, reason, command, id, dropped: droppedMs > 0, last };
  });
  assert.deepEqual(
    { ...told, last: undefined },
    {
      wasWhole: false,
      old: false,
      isWhole: true,
      reason: 'stop',
      command: 'gesture',
      id: 'last',
      dropped: true,
      last: undefined,
    },
  );
  assert.ok(told.last.utterance >= 2 && Math.abs(told.last.at - Date.now()) < 60_000);
});

test('a lost connection comes back with the same token, in the same video element', async () => {
  await opened();
  const told = await page.evaluate(async () => {
    const { session, until, video, sockets } = globalThis as any;
    const { stream, id } = session;
    sockets.at(-1).close();
    const { error } = await until('reconnecting');
    await until('started', 2);
    await session.started();
    const beganAt = video.currentTime;
    while (video.currentTime < beganAt + 0.3) {
      await new Promise((resolve) => {
        setTimeout(resolve, 50);
      });
    }
    return {
      code: error.code,
      isSameStream: stream === session.stream && video.srcObject === stream,
      tracks: stream.getTracks().length,
      isNew: id !== session.id,
      spoke: await session.speak(new Int16Array(8000)),
    };
  });
  assert.deepEqual(told, {
    code: 'CONNECTION_LOST',
    isSameStream: true,
    tracks: 2,
    isNew: true,
    spoke: true,
  });
});

test('the motion of the face is known when its frame is shown, to those who ask', async () => {
  await opened({ motion: 'all' });
  const told = await page.evaluate(async () => {
    const { session, until, video, client } = globalThis as any;
    const jaw = client.ARKIT_BLEND_SHAPES.indexOf('jawOpen');
    const speech = await (await fetch('/samples/vowels.mp3')).arrayBuffer();
    const shown: (number[] | undefined)[] = [];
    const show = (_nowMs: number, { rtpTimestamp }: { rtpTimestamp: number }) => {
      shown.push(session.weightsAt(rtpTimestamp));
      video.requestVideoFrameCallback(show);
    };
    video.requestVideoFrameCallback(show);
    const visemes = new Set<string>();
    session.on('viseme', ({ viseme }: { viseme: string }) => visemes.add(viseme));
    const words: string[] = [];
    session.on('word', ({ text }: { text: string }) => words.push(text));
    session.command({
      type: 'words',
      words: [
        { text: 'a', startMs: 0 },
        { text: 'e', startMs: 400 },
        { text: 'never', startMs: 600_000 },
      ],
    });
    await session.speak(await client.decodeSpeech(speech));
    await until('silent');
    const known = shown.filter((weights) => weights !== undefined);
    return {
      frames: shown.length,
      known: known.length,
      visemes: [...visemes],
      words,
      sizes: [...new Set(known.map((weights) => weights.length))],
      jaw: Math.max(...known.map((weights) => weights[jaw]!)),
    };
  });
  console.info(told);
  assert.ok(told.frames > 10 && told.known > told.frames / 2, JSON.stringify(told));
  assert.deepEqual(told.sizes, [52]);
  assert.ok(told.visemes.length > 3 && told.visemes.includes('sil'), told.visemes.join(' '));
  assert.deepEqual(told.words, ['a', 'e']);
  assert.ok(told.jaw > 0.1, `jawOpen is ${told.jaw} at most`);
});

test('a face made for 1280x720 is seen in that size, and only faces of its size may follow', async () => {
  const form = new FormData();
  const portrait = await readFile(path.join(ROOT, 'models/faces/noah.webp'));
  form.set('image', new File([portrait], 'me.webp'));
  form.set('size', '1280x720');
  const headers = { 'x-service-api-key': server.apiKey };
  const made = await fetch(`${server.url}/faces`, { method: 'POST', headers, body: form });
  const { id } = (await made.json()) as { id: string };
  const isMade = async () => {
    await sleep(300); // requests of a key are limited
    const reply = await fetch(`${server.url}/faces/${id}`, { headers });
    return ((await reply.json()) as { status: string }).status === 'completed';
  };
  await until(isMade, 60_000 * patience());
  await page.evaluate(
    async (token) => {
      await (globalThis as any).open(token);
    },
    await createToken(server, { faceId: id }),
  );
  const told = await page.evaluate(async () => {
    const { session, until: event, video } = globalThis as any;
    await session.speak(Int16Array.from({ length: 8000 }, (_, at) => 9000 * Math.sin(at / 12)));
    await event('silent');
    while (video.videoWidth === 0) {
      await new Promise((resolve) => {
        setTimeout(resolve, 50);
      });
    }
    session.command({ type: 'face', faceId: 'ava' });
    const { message } = await event('rejected');
    const { width, height } = session.videoMetadata;
    const seen = [video.videoWidth, video.videoHeight];
    return { seen, told: [width, height], message, sessionId: session.id };
  });
  assert.deepEqual(told.seen, [1280, 720]);
  assert.deepEqual(told.told, [1280, 720]);
  assert.match(told.message, /512x512.*1280x720/);
  const stats = await fetch(`${server.url}/sessions/${told.sessionId}/stats`, { headers });
  const { targetBitrateKbps } = (await stats.json()) as { targetBitrateKbps: number };
  assert.ok(targetBitrateKbps > 600, `${targetBitrateKbps} kbit/s`);
  await page.screenshot({ path: `${OUT}/face-1280x720.png` });
  // The other tests take the first face of the list.
  await fetch(`${server.url}/faces/${id}`, { method: 'DELETE', headers });
});

test('the element, in a page of another origin: one script tag, a token from its own server', async () => {
  const token = await createToken(server);
  const site = http.createServer((request, response) => {
    const isToken = request.method === 'POST';
    response.setHeader('content-type', isToken ? 'application/json' : 'text/html');
    response.end(
      isToken
        ? JSON.stringify({ session_token: token })
        : `<!doctype html><html lang="en"><title>Site</title><link rel="icon" href="data:,">
          <script type="module" src="${server.url}/client/element.js"></script>
          <main><h1>Site</h1>
          <mouthpiece-avatar token-url="/session" style="width: 300px"></mouthpiece-avatar></main>`,
    );
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  const { port } = site.address() as AddressInfo;
  try {
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForSelector('mouthpiece-avatar[state=idle]');
    const told = await page.evaluate(async () => {
      const element = document.querySelector<any>('mouthpiece-avatar');
      const video = element.shadowRoot.querySelector('video');
      const spoke = new Promise((resolve) => {
        element.addEventListener('silent', ({ detail }: CustomEvent) => resolve(detail.utterance));
      });
      const tone = Float32Array.from({ length: 8000 }, (_, at) => Math.sin(at / 12) / 3);
      const isWhole = await element.speak(tone);
      const utterance = await spoke;
      while (video.videoWidth === 0) {
        await new Promise((resolve) => {
          setTimeout(resolve, 50);
        });
      }
      return { isWhole, utterance, width: element.getBoundingClientRect().width };
    });
    assert.deepEqual(told, { isWhole: true, utterance: 1, width: 300 });
    assert.deepEqual(await accessProblems(page), []);
    await page.screenshot({ path: `${OUT}/element.png` });
    const isOver = await page.evaluate(() => {
      const element = document.querySelector<any>('mouthpiece-avatar');
      element.remove();
      return element.session === null;
    });
    assert.equal(isOver, true);
  } finally {
    site.closeAllConnections();
    site.close();
  }
});

test('what cannot be connected is told with its code', async () => {
  const code = await page.evaluate(async () =>
    (globalThis as any).open('nonsense').catch((error: { code: string }) => error.code),
  );
  assert.equal(code, 'INVALID_SESSION_TOKEN');
});

test('figures; sound waits for a click where the browser wants one', async () => {
  await page.evaluate(() => {
    const original = Object.getOwnPropertyDescriptor(HTMLMediaElement.prototype, 'play')!
      .value as () => Promise<void>;
    let isRefused = true;
    HTMLMediaElement.prototype.play = async function play() {
      if (isRefused && !this.muted) {
        isRefused = false;
        throw new DOMException('no gesture yet', 'NotAllowedError');
      }
      await original.call(this);
    };
  });
  await opened();
  const isMuted = await page.evaluate(async () => {
    const { until, video } = globalThis as any;
    const { muted } = await until('autoplay');
    return muted && video.muted;
  });
  assert.equal(isMuted, true);
  await page.mouse.click(300, 300);
  const { muted, stats } = await page.evaluate(async () => {
    const { until, video, session } = globalThis as any;
    await until('autoplay', 2);
    let stats = await session.stats();
    while (!stats.framesPerSecond || !stats.kbps || stats.socketRoundTripMs === null) {
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
      stats = await session.stats();
    }
    return { muted: video.muted, stats };
  });
  assert.equal(muted, false);
  assert.equal(stats.width, 512);
  assert.match(stats.codec, /^video\//);
});
