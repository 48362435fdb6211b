// A person talks with a face in the room's page: Chromium with a microphone that flite speaks into,
// the real server, and local servers that speak the providers' protocols. Six turns, two of them
// interruptions.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Frame } from 'puppeteer-core';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type TestBrowser, startBrowser } from '../harness/browser.ts';
import { closestLips, findMouth, locate } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { speakInto } from '../harness/page-microphone.ts';
import { Probe } from '../harness/probe.ts';
import { ROOT, type TestServer, call, startServer } from '../harness/server.ts';
import { synthesize, toWav } from '../harness/speech.ts';
import { type ProviderServer, startProviders } from '../talk/provider-server.ts';
import { until } from '../harness/until.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';

const isInstalled = existsSync(path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'));

const WELCOME = 'Welcome to my home.';
/**
 * One clause, which the voice says in one piece. Closed lips and open vowels in turn, so that what
 * is seen of the mouth is how far it is open.
 */
const PUPPETS = 'Papa popped a paper puppet up and a puppy popped up for happy papa.';
const LONG =
  'It is a fine day in the mountains, with a little wind from the west. Later there may be clouds ' +
  'over the lake, and towards the evening perhaps some rain. Take a coat with you when you go out.';
/** What the person says, and what the model answers. After LONG the person interrupts. */
const TURNS = [
  { said: 'what is the time in the city', answer: PUPPETS },
  { said: 'tell me about the weather', answer: LONG },
  { said: 'please stop that now', answer: 'I have stopped.' },
  { said: 'say it all over again', answer: LONG },
  { said: 'this is enough for me', answer: 'As you like.' },
  { said: 'thank you and good bye', answer: 'Goodbye then.' },
] as const;

describe.skipIf(!isInstalled)('a room (needs scripts/talk: npm run setup)', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let providers: ProviderServer;
  let folder: string;

  beforeAll(async () => {
    providers = await startProviders();
    const { behaviour, baseUrl } = providers;
    for (const { said, answer } of TURNS) {
      const { pcm } = await synthesize(said);
      behaviour.phrases.push({ text: said, pcm });
      behaviour.answers.set(said, answer);
    }
    folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-microphone-'));
    const microphoneWav = path.join(folder, 'microphone.wav');
    await writeFile(microphoneWav, toWav(new Int16Array(SPEECH_RATE)));
    server = await startServer({
      env: {
        // The lips are measured in the picture, so the head stays still.
        MOTION: 'none',
        LLM_BASE_URL: baseUrl,
        LLM_MODEL: 'm',
        TTS_BASE_URL: baseUrl,
        STT_PROVIDER: 'openai',
        STT_BASE_URL: baseUrl,
        ELEVENLABS_BASE_URL: new URL(baseUrl).origin,
        CARTESIA_BASE_URL: new URL(baseUrl).origin,
      },
    });
    browser = await startBrowser({ microphoneWav });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await providers?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('six turns and two interruptions: words, lips and transcript are right', async () => {
    const started = await call(server, '/auto/start/configurable', {
      faceId: 'ava',
      firstMessage: WELCOME,
      createTranscript: true,
    });
    assert.equal(started.status, 200, JSON.stringify(started.body));
    const { roomUrl, sessionId } = started.body;
    const page = await browser.newPage();
    await page.setBypassCSP(true);
    const say = await speakInto(page);
    await page.goto(roomUrl);
    await page.click('#start');
    const caption = async (text: string): Promise<void> => {
      await page.waitForFunction(
        (wanted) => document.getElementById('agent-caption')?.textContent?.includes(wanted),
        { timeout: 50_000 },
        text,
      );
    };
    const listening = async (): Promise<void> => {
      await page.waitForFunction(
        () => document.getElementById('room')?.dataset['state'] === 'listening',
        { timeout: 30_000 },
      );
    };
    await page.waitForFunction(
      () =>
        (document.getElementById('video') as { videoWidth?: number } | null)?.videoWidth === 512,
      { timeout: 30_000 },
    );
    const probe = await Probe.attach(page, server, '#video');

    await caption(WELCOME);
    await listening();

    // Lips and sound of the first answer are in step. (Of the first message a busy browser loses the
    // first words: it has only just begun to play.)
    const [first, ...others] = TURNS;
    await say((await synthesize(first.said)).pcm);
    await caption(first.answer);
    await listening();
    await setTimeout(1500);
    const recording = await probe.take();
    const speech = await synthesize(first.answer, 'rms');
    const { sample, likeness } = locate(recording.sound, speech.pcm);
    assert.ok(likeness > 0.6, `the first answer is heard: ${likeness}`);
    const fromMs = recording.soundStartMs + sample / 16;
    const spoken = { fromMs, toMs: fromMs + speech.durationMs };
    const quiet = { fromMs: spoken.toMs + 400, toMs: recording.nowMs };
    const mouth = findMouth(recording, spoken, quiet);
    const sync = closestLips(recording, mouth, speech, fromMs);
    assert.ok(
      Math.abs(sync.lagMs) < 45 * patience(),
      `sound ${Math.round(sync.lagMs)} ms behind the lips`,
    );
    assert.ok(sync.correlation > 0.5, `correlation ${sync.correlation}`);
    console.info(`lips ${Math.round(sync.lagMs)} ms, correlation ${sync.correlation.toFixed(2)}`);

    for (const { said, answer } of others) {
      await say((await synthesize(said)).pcm);
      if (answer === LONG) {
        await caption('mountains'); // a third of it was heard, or is just being said
      } else {
        await caption(answer);
        await listening();
      }
    }
    // The person reloads the page, and is back in the same conversation.
    await page.reload();
    await page.click('#start');
    await listening();
    await page.click('#hang-up');
    await page.waitForFunction(() => document.getElementById('room')?.dataset['state'] === 'ended');

    let transcript: Awaited<ReturnType<typeof call>> | undefined;
    for (let tries = 0; transcript?.status !== 200 && tries < 200; tries++) {
      transcript = await call(server, `/auto/transcript/${sessionId}`);
      await setTimeout(100);
    }
    assert.equal(transcript!.status, 200);
    const { items, endReason } = transcript!.body as {
      items: { role: string; text: string; interrupted: boolean }[];
      endReason: string;
    };
    const [welcome, ...rest] = items;
    assert.deepEqual([welcome!.role, welcome!.text], ['assistant', WELCOME]);
    assert.deepEqual(
      rest.filter(({ role }) => role === 'user').map(({ text }) => text),
      TURNS.map(({ said }) => said),
    );
    // Of the two long answers what was heard before the interruption, in whole words.
    const answers = rest.filter(({ role }) => role === 'assistant');
    assert.equal(answers.length, TURNS.length, JSON.stringify(answers));
    for (const [index, { answer }] of TURNS.entries()) {
      const { text, interrupted } = answers[index]!;
      assert.equal(interrupted, answer === LONG, text);
      if (answer === LONG) {
        assert.ok(LONG.startsWith(text), text);
        assert.ok(text.length > 15 && text.length < LONG.length * 0.7, text);
      } else {
        assert.equal(text, answer);
      }
    }
    assert.equal(endReason, 'done');
    // The model knew the same words, in their order.
    assert.deepEqual(
      providers.chats
        .at(-1)!
        .messages.filter(({ role }) => role !== 'system')
        .map(({ content }) => content),
      items.slice(0, -1).map(({ text }) => text),
    );
    const history = await call(server, '/history/sessions');
    assert.deepEqual(
      [...new Set(history.body.sessions.map(({ kind }: { kind: string }) => kind))],
      ['auto'],
    );
    assert.deepEqual(browser.problems, []);
  });

  test('in a frame on an allowed origin, and on no other', async () => {
    const outer = await Promise.all([startOuterPage(), startOuterPage()]);
    try {
      const [allowed, refused] = outer.map(({ origin }) => origin) as [string, string];
      const { body: agent } = await call(server, '/auto/agent', {
        face_id: 'ava',
        name: 'Guide',
        llm_provider: 'local',
        first_message: 'Welcome.',
      });
      const { body: grant } = await call(server, '/auto/token', { originAllowList: [allowed] });
      const framed = async (origin: string): Promise<Frame> => {
        const link = `${server.url}/auto/start/${agent.id}/${grant.token}?redirect=true`;
        const page = await browser.newPage();
        await page.goto(`${origin}/?${encodeURIComponent(link)}`);
        const handle = await page.waitForSelector('iframe');
        return await handle!.contentFrame();
      };
      const room = await framed(allowed);
      await room.waitForSelector('#start');
      await room.click('#start');
      await room.waitForFunction(
        () =>
          ['listening', 'speaking'].includes(document.getElementById('room')!.dataset['state']!),
        { timeout: 30_000 },
      );
      await room.click('#hang-up');
      const stranger = await framed(refused);
      await until(() => browser.problems.some((text) => /frame-ancestors/.test(text)), 10_000);
      assert.equal(await stranger.$('#start'), null);
    } finally {
      await Promise.all(outer.map(({ close }) => close()));
    }
  });

  test('what fails is told in the page, in the log and in the metrics', async () => {
    const { behaviour } = providers;
    const remote = { ttsAPIKey: 'k', voiceId: 'v' };
    behaviour.status.set('elevenlabs', 429).set('cartesia', 401).set('/v1/audio/speech', 500);
    for (const [more, state, words] of [
      [{}, 'listening', 'The voice failed (HTTP 500).'],
      [
        { ...remote, ttsProvider: 'ElevenLabs' },
        'listening',
        'The voice refused: too many requests, or no credit left.',
      ],
      [
        { ...remote, ttsProvider: 'Cartesia' },
        'ended',
        'The conversation ended. The voice refused the API key (HTTP 401).',
      ],
    ] as const) {
      const { status, body } = await call(server, '/auto/start/configurable', {
        faceId: 'ava',
        firstMessage: 'Welcome.',
        ...more,
      });
      assert.equal(status, 200, JSON.stringify(body));
      const page = await browser.newPage();
      await page.goto(body.roomUrl);
      await page.click('#start');
      await page.waitForFunction(
        (text) => document.getElementById('notice-text')!.textContent === text,
        { timeout: 30_000 },
        words,
      );
      assert.equal(
        await page.$eval('#room', (room) => (room as HTMLElement).dataset['state']),
        state,
      );
      await page.close();
    }
    const metrics = (await call(server, '/metrics')).body as string;
    const log = server.logs.join('\n');
    for (const [kind, reason] of [
      ['openai', 'server_error'],
      ['elevenlabs', 'rate_limited'],
      ['cartesia', 'unauthorised'],
    ] as const) {
      const counted = `faults_total{role="voice",kind="${kind}",reason="${reason}"} 1`;
      assert.ok(metrics.includes(counted), counted);
      const line = `"provider":"${kind}","role":"voice","fault":"${reason}"`;
      assert.ok(log.includes(line), line);
    }
    assert.doesNotMatch(log, /Welcome/, 'the log holds no words');
  });
});

/** A page of another origin that shows in a frame what its query names. */
async function startOuterPage(): Promise<{ origin: string; close: () => Promise<void> }> {
  const outer = createServer((request, response) => {
    const src = decodeURIComponent(new URL(request.url!, 'http://outer').search.slice(1));
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<!doctype html><title>Shop</title>
      <iframe src="${src}" allow="microphone; autoplay" width="400" height="700"></iframe>`);
  });
  await new Promise<void>((resolve) => {
    outer.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${(outer.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        outer.closeAllConnections();
        outer.close(() => {
          resolve();
        });
      }),
  };
}
