// A person talks with a face in the room's page: Chromium with a microphone that plays flite's speech,
// the real server, and local servers that speak the providers' protocols.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type TestBrowser, startBrowser } from '../harness/browser.ts';
import { ROOT, type TestServer, call, startServer } from '../harness/server.ts';
import { synthesize, toWav } from '../harness/speech.ts';
import { type ProviderServer, startProviders } from '../talk/provider-server.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';

const isInstalled = existsSync(path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'));
/** When the person speaks, after the microphone was opened. */
const SPEECH_AT_S = 6;

describe.skipIf(!isInstalled)('a room (needs scripts/talk: npm run setup)', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let providers: ProviderServer;
  let folder: string;

  beforeAll(async () => {
    const { pcm } = await synthesize('what is the weather like today');
    const microphone = new Int16Array(SPEECH_RATE * 40);
    microphone.set(pcm, SPEECH_RATE * SPEECH_AT_S);
    folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-microphone-'));
    const microphoneWav = path.join(folder, 'microphone.wav');
    await writeFile(microphoneWav, toWav(microphone));
    providers = await startProviders();
    providers.behaviour.replies = ['It is a fine day in the mountains.'];
    providers.behaviour.transcripts = ['what is the weather like today'];
    const { baseUrl } = providers;
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

  test('a person asks, the face answers, and the transcript says what was heard', async () => {
    const started = await call(server, '/auto/start/configurable', {
      faceId: 'ava',
      firstMessage: 'Welcome.',
      createTranscript: true,
    });
    assert.equal(started.status, 200, JSON.stringify(started.body));
    const { roomUrl, sessionId } = started.body;
    const page = await browser.newPage();
    await page.goto(roomUrl);
    await page.click('#start');
    const heard = async (text: string): Promise<void> => {
      await page.waitForFunction(
        (wanted) => document.getElementById('agent-caption')?.textContent?.includes(wanted),
        { timeout: 30_000 },
        text,
      );
    };
    await heard('Welcome.');
    await heard('It is a fine day in the mountains.');
    assert.match(
      await page.$eval('#user-caption', (line) => line.textContent ?? ''),
      /what is the weather like today/,
    );
    const [width, time] = await page.$eval('#video', (video) => {
      const { videoWidth, currentTime } = video as unknown as {
        videoWidth: number;
        currentTime: number;
      };
      return [videoWidth, currentTime];
    });
    assert.ok(width === 512 && time! > SPEECH_AT_S, `the face moves: ${width}, ${time}`);

    // The person reloads the page, and is back in the same conversation.
    await page.reload();
    await page.click('#start');
    await page.waitForFunction(
      () => document.getElementById('room')?.dataset['state'] === 'listening',
      { timeout: 30_000 },
    );
    await page.click('#hang-up');
    await page.waitForFunction(() => document.getElementById('room')?.dataset['state'] === 'ended');

    let transcript = await call(server, `/auto/transcript/${sessionId}`);
    for (let tries = 0; transcript.status === 404 && tries < 100; tries++) {
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
      transcript = await call(server, `/auto/transcript/${sessionId}`);
    }
    assert.deepEqual(
      transcript.body.items.map(({ role, text }: { role: string; text: string }) => [role, text]),
      [
        ['assistant', 'Welcome.'],
        ['user', 'what is the weather like today'],
        ['assistant', 'It is a fine day in the mountains.'],
      ],
    );
    assert.equal(transcript.body.endReason, 'done');
    const history = await call(server, '/history/sessions');
    assert.deepEqual(
      [...new Set(history.body.sessions.map(({ kind }: { kind: string }) => kind))],
      ['auto'],
    );
    assert.deepEqual(browser.problems, []);
  });
});
