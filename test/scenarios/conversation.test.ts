// A person talks with a face in the room's page: Chromium with a microphone that plays flite's speech,
// the real server, and local servers that speak the providers' protocols. Six turns, two of them
// interruptions.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type TestBrowser, startBrowser } from '../harness/browser.ts';
import { closestLips, findMouth, locate } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { Probe } from '../harness/probe.ts';
import { ROOT, type TestServer, call, startServer } from '../harness/server.ts';
import { synthesize, toWav } from '../harness/speech.ts';
import { type ProviderServer, startProviders } from '../talk/provider-server.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';

const isInstalled = existsSync(path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'));

/** One clause: the voice says it in one piece. */
const WELCOME = 'Welcome to my home and please tell me what you would like to know about it.';
const LONG =
  'It is a fine day in the mountains, with a little wind from the west. Later there may be clouds ' +
  'over the lake, and towards the evening perhaps some rain. Take a coat with you when you go out.';
/** When the person says what, in seconds of the microphone, and what the model answers. */
const TURNS = [
  { atS: 9, said: 'what is the time in the city', answer: 'It is four.' },
  { atS: 15, said: 'tell me about the weather', answer: LONG },
  { atS: 20, said: 'please stop that now', answer: 'I have stopped.', interrupts: true },
  { atS: 26, said: 'say it all over again', answer: LONG },
  { atS: 31, said: 'this is enough for me', answer: 'As you like.', interrupts: true },
  { atS: 37, said: 'thank you and good bye', answer: 'Goodbye then.' },
] as const;

describe.skipIf(!isInstalled)('a room (needs scripts/talk: npm run setup)', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let providers: ProviderServer;
  let folder: string;

  beforeAll(async () => {
    providers = await startProviders();
    const { behaviour, baseUrl } = providers;
    const microphone = new Int16Array(SPEECH_RATE * 60);
    for (const { atS, said, answer } of TURNS) {
      const { pcm } = await synthesize(said);
      microphone.set(pcm, SPEECH_RATE * atS);
      behaviour.phrases.push({ text: said, pcm });
      behaviour.answers.set(said, answer);
    }
    folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-microphone-'));
    const microphoneWav = path.join(folder, 'microphone.wav');
    await writeFile(microphoneWav, toWav(microphone));
    server = await startServer({
      env: {
        LLM_BASE_URL: baseUrl,
        LLM_MODEL: 'm',
        TTS_BASE_URL: baseUrl,
        STT_PROVIDER: 'openai',
        STT_BASE_URL: baseUrl,
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
    await page.goto(roomUrl);
    await page.click('#start');
    const caption = async (text: string): Promise<void> => {
      await page.waitForFunction(
        (wanted) => document.getElementById('agent-caption')?.textContent?.includes(wanted),
        { timeout: 50_000 },
        text,
      );
    };
    await page.waitForFunction(
      () =>
        (document.getElementById('video') as { videoWidth?: number } | null)?.videoWidth === 512,
      { timeout: 30_000 },
    );
    const probe = await Probe.attach(page, server, '#video');

    // Lips and sound of the first message are in step.
    await caption(WELCOME);
    await setTimeout(1500);
    const recording = await probe.take();
    const speech = await synthesize(WELCOME, 'rms');
    const { sample, likeness } = locate(recording.sound, speech.pcm);
    assert.ok(likeness > 0.6, `the first message is heard: ${likeness}`);
    const fromMs = recording.soundStartMs + sample / 16;
    const spoken = { fromMs, toMs: fromMs + speech.durationMs };
    const quiet = { fromMs: spoken.toMs + 400, toMs: recording.nowMs };
    const mouth = findMouth(recording, spoken, quiet);
    const sync = closestLips(recording, mouth, speech, fromMs);
    assert.ok(
      Math.abs(sync.lagMs) < 90 * patience(),
      `sound ${Math.round(sync.lagMs)} ms behind the lips`,
    );
    assert.ok(sync.correlation > 0.3, `correlation ${sync.correlation}`);
    console.info(`lips ${Math.round(sync.lagMs)} ms, correlation ${sync.correlation.toFixed(2)}`);

    await caption(TURNS.at(-1)!.answer);
    await page.waitForFunction(
      () => document.getElementById('room')?.dataset['state'] === 'listening',
      { timeout: 30_000 },
    );
    // The person reloads the page, and is back in the same conversation.
    await page.reload();
    await page.click('#start');
    await page.waitForFunction(
      () => document.getElementById('room')?.dataset['state'] === 'listening',
      { timeout: 30_000 },
    );
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
    // Of the two long answers what was heard before the interruption: whole words, about four
    // seconds of ten.
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
});
