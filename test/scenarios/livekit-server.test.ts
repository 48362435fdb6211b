// Sessions in rooms of a real livekit-server: the avatar publishes there, livekit-client watches in a
// real browser.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import type { TestBrowser } from '../harness/browser.ts';
import { soundBehindLips } from '../harness/lipsync.ts';
import { LIVEKIT_PROGRAM, LiveKitTestServer } from '../harness/livekit-server.ts';
import { patience } from '../harness/machine.ts';
import type { Probe } from '../harness/probe.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import {
  openRoomSession,
  openViewer,
  type RoomSession,
  watchSpeech,
} from '../harness/room-session.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { synthesize } from '../harness/speech.ts';
import { sleep } from '../../src/base/time.ts';

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

  const openSession = async (t: TestContext): Promise<RoomSession & { room: string }> => {
    const session = await openRoomSession(t, server);
    return { ...session, room: `mouthpiece-${session.sessionId}` };
  };
  const openPage = (t: TestContext): Promise<Probe> => openViewer(t, browser, server);

  test('the avatar publishes, is seen and heard, and its mouth moves to speech and only then', async (t) => {
    const { client, url, token, room } = await openSession(t);
    assert.equal(url, livekit.url);
    await client.waitFor('START');
    const viewer = await openPage(t);
    const { firstFrameMs } = await viewer.joinRoom(url, token);
    assert.ok(firstFrameMs < 1000 * patience(), `the first frame came after ${firstFrameMs} ms`);
    await sleep(1000);
    const { recording, mouth, speakMs, silentMs } = await watchSpeech(viewer, client);
    const lag = soundBehindLips(recording, mouth, speakMs + 300, silentMs - 300);
    const speakers = recording.events.filter(({ name }) => name === 'speakers');
    assert.deepEqual(
      [speakers[0]?.detail, speakers.at(-1)?.detail],
      [['avatar'], []],
      'the server hears from the packets who speaks',
    );
    console.info(`sound behind lips: ${lag.lagMs.toFixed(1)} ms`);
    assert.ok(lag.correlation > 0.5, `mouth and sound hardly go together: ${lag.correlation}`);
    assert.ok(
      lag.lagMs > -15 * patience() && lag.lagMs < 45 * patience(),
      `the sound is ${lag.lagMs.toFixed(1)} ms behind the lips`,
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
      const viewer = await openPage(t);
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
});
