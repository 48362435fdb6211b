// Sessions in rooms of a real livekit-server: the avatar publishes there, livekit-client watches in a
// real browser.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import type { TestBrowser } from '../harness/browser.ts';
import { findMouth, meanMotion, soundBehindLips } from '../harness/lipsync.ts';
import { LIVEKIT_PROGRAM, LiveKitTestServer } from '../harness/livekit-server.ts';
import { patience } from '../harness/machine.ts';
import { framesBetween, Probe } from '../harness/probe.ts';
import { createToken, startServer, type TestServer } from '../harness/server.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { synthesize } from '../harness/speech.ts';
import { WsClient } from '../harness/ws-client.ts';
import { sleep } from '../../src/base/time.ts';

const SENTENCE = 'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa.';

if (LIVEKIT_PROGRAM === undefined) {
  console.warn(
    'no livekit-server: its tests are skipped (npm run setup -- --livekit, or LIVEKIT_SERVER)',
  );
}

describe.skipIf(LIVEKIT_PROGRAM === undefined)('in rooms of a real livekit-server', () => {
  let livekit: LiveKitTestServer;
  let server: TestServer;
  let browser: TestBrowser;
  beforeAll(async () => {
    [livekit, browser] = await Promise.all([LiveKitTestServer.start(), openBrowser()]);
    server = await startServer({
      env: {
        ...livekit.settings,
        LOG_LEVEL: 'info',
        WORKERS: '1',
      },
    });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await livekit?.stop();
  });

  async function openSession(
    t: TestContext,
    options = {},
  ): Promise<{
    client: WsClient;
    url: string;
    token: string;
    room: string;
  }> {
    const sessionToken = await createToken(server, options);
    const client = await WsClient.open(server, sessionToken, '/compose/webrtc/livekit');
    t.onTestFinished(async () => {
      await client.close();
    });
    const { livekit_url: url, livekit_token: token } = JSON.parse(
      (await client.waitFor('{"livekit_url"')).text,
    );
    const { session_id: id } = JSON.parse((await client.waitFor('{"destination"')).text);
    return { client, url, token, room: `mouthpiece-${id}` };
  }

  async function openViewer(t: TestContext): Promise<Probe> {
    const viewer = await Probe.open(browser, server);
    t.onTestFinished(async () => {
      await viewer.page.close();
    });
    return viewer;
  }

  test('the avatar publishes, is seen and heard, and its mouth moves to speech and only then', async (t) => {
    const { client, url, token, room } = await openSession(t);
    assert.equal(url, livekit.url);
    await client.waitFor('START');
    const viewer = await openViewer(t);
    const speech = await synthesize(SENTENCE);
    const { firstFrameMs } = await viewer.joinRoom(url, token);
    assert.ok(firstFrameMs < 1000 * patience(), `the first frame came after ${firstFrameMs} ms`);
    await sleep(1000);
    const flowing = await viewer.now();
    await sleep(2000);
    const sent = await viewer.now();
    client.speak(speech.pcm);
    await client.waitFor('SPEAK');
    const speak = await viewer.now();
    await client.waitFor('SILENT', { limitMs: 30_000 });
    const silent = await viewer.now();
    await sleep(2000);
    const recording = await viewer.take();
    const end = recording.nowMs;
    const all = framesBetween(recording, flowing, end);
    const seconds = (all.at(-1)!.shownMs - all[0]!.shownMs) / 1000;
    const fps = (all.at(-1)!.presented - all[0]!.presented) / seconds;
    assert.ok(fps >= 28 && fps <= 31, `${fps.toFixed(1)} frames a second`);
    const mouth = findMouth(
      recording,
      { fromMs: speak, toMs: silent },
      { fromMs: flowing, toMs: sent },
    );
    const speaking = meanMotion(recording, mouth, speak, silent);
    const before = meanMotion(recording, mouth, flowing, sent);
    const afterwards = meanMotion(recording, mouth, silent + 500, end);
    assert.ok(speaking > 4 * Math.max(before, afterwards), `${speaking} ${before} ${afterwards}`);
    const lag = soundBehindLips(recording, mouth, speak + 300, silent - 300);
    console.info(`sound behind lips: ${lag.lagMs.toFixed(1)} ms`);
    assert.ok(lag.correlation > 0.5, `mouth and sound hardly go together: ${lag.correlation}`);
    assert.ok(
      lag.lagMs > -15 * patience() && lag.lagMs < 45 * patience(),
      `the sound is ${lag.lagMs.toFixed(1)} ms behind the lips`,
    );
    assert.ok(
      recording.sound.some((sample) => Math.abs(sample) > 3000),
      'the speech is heard',
    );

    client.send('DONE');
    await client.waitFor('STOP');
    await viewer.waitFor('disconnected');
    const { rooms = [] } = await livekit.api('ListRooms', { names: [room] });
    assert.deepEqual(rooms, [], 'the room is deleted');
  });

  test('sessions of one worker are kept apart, though the server has one port for all', async (t) => {
    const sessions = [await openSession(t), await openSession(t), await openSession(t)];
    const viewers: Probe[] = [];
    for (const { client, url, token } of sessions.slice(0, 2)) {
      await client.waitFor('START');
      const viewer = await openViewer(t);
      await viewer.joinRoom(url, token);
      viewers.push(viewer);
    }
    const speech = await synthesize('Papa, pop a puppy up.');
    const [{ client }] = sessions as [(typeof sessions)[0]];
    client.speak(speech.pcm);
    await client.waitFor('SILENT', { limitMs: 30_000 });
    const recordings = await Promise.all(viewers.map((viewer) => viewer.take()));
    const loudest = recordings.map(({ sound }) =>
      sound.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0),
    );
    assert.ok(loudest[0]! > 3000 && loudest[1]! < 300, `loudest samples: ${loudest.join(', ')}`);
    const words = sessions.flatMap((session) => session.client.words);
    assert.ok(!words.includes('ERROR') && !words.includes('STOP'), words.join(' '));
  });

  test('the server is killed and comes back: so does the avatar, with the same session', async (t) => {
    const { client, token, room } = await openSession(t);
    await client.waitFor('START');
    await livekit.kill();
    await sleep(1000);
    await livekit.run();
    const startMs = performance.now();
    for (;;) {
      const { participants = [] } = await livekit.api('ListParticipants', { room });
      if (participants.some(({ tracks = [] }: { tracks?: unknown[] }) => tracks.length === 2)) {
        break;
      }
      assert.ok(performance.now() - startMs < 15_000, 'the avatar is back');
      await sleep(100);
    }
    const viewer = await openViewer(t);
    await viewer.joinRoom(livekit.url, token);
    assert.deepEqual(
      client.words.filter((word) => word === 'STOP' || word === 'ERROR'),
      [],
    );
  });
});
