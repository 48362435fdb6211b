// Sessions in rooms of a real livekit-server: the avatar publishes there, livekit-client watches in a
// real browser.
import assert from 'node:assert/strict';
import { readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import type { TestBrowser } from '../harness/browser.ts';
import { findMouth, lastMotion, soundBehindLips } from '../harness/lipsync.ts';
import { LIVEKIT_PROGRAM, LiveKitTestServer } from '../harness/livekit-server.ts';
import { patience } from '../harness/machine.ts';
import type { Probe } from '../harness/probe.ts';
import { call, startServer, type TestServer } from '../harness/server.ts';
import {
  LABIAL_SENTENCE,
  openRoomSession,
  openViewer,
  type RoomSession,
  watchSpeech,
} from '../harness/room-session.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { synthesize } from '../harness/speech.ts';
import type { WsClient } from '../harness/ws-client.ts';
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
    server = await startServer({ env: settings() });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await livekit?.stop();
  });

  // A head that moves hides the lips from what measures them.
  const settings = (): Record<string, string> => ({ ...livekit.settings, MOTION: 'none' });
  const openSession = (t: TestContext): Promise<RoomSession> => openRoomSession(t, server);
  const openPage = (t: TestContext): Promise<Probe> => openViewer(t, browser, server);

  /** How long the mouth moves after SKIP, of three: a browser may show any one frame late. */
  async function stillAfterSkip(viewer: Probe, client: WsClient): Promise<readonly number[]> {
    const { pcm } = await synthesize(`${LABIAL_SENTENCE} ${LABIAL_SENTENCE}`);
    const still: number[] = [];
    for (let round = 0; round < 3; round++) {
      const from = client.messages.length;
      const quietMs = await viewer.now();
      await sleep(1200);
      const sentMs = await viewer.now();
      client.speak(pcm);
      await client.waitFor('SPEAK', { from });
      await sleep(1700 + 270 * round);
      const skipMs = await viewer.now();
      client.send('SKIP');
      await client.waitFor('SILENT', { from });
      await sleep(1000);
      const recording = await viewer.take();
      const speech = { fromMs: sentMs + 300, toMs: skipMs };
      const mouth = findMouth(recording, speech, { fromMs: quietMs, toMs: sentMs });
      still.push(lastMotion(recording, mouth, speech) - skipMs);
    }
    return still.toSorted((one, other) => one - other);
  }

  test.for(['vp8', 'h264'])('the avatar is seen and heard in %s', async (codec, t) => {
    const publisher =
      codec === 'vp8'
        ? server
        : await startServer({ env: { ...settings(), LIVEKIT_VIDEO_CODEC: codec } });
    t.onTestFinished(async () => {
      await (publisher === server ? undefined : publisher.stop());
    });
    const { client, url, token, sessionId } = await openRoomSession(t, publisher);
    assert.equal(url, livekit.url);
    await client.waitFor('START');
    const viewer = await openPage(t);
    const { firstFrameMs } = await viewer.joinRoom(url, token);
    console.info(`${codec}: first frame ${firstFrameMs.toFixed(0)} ms after the room is joined`);
    assert.ok(firstFrameMs < 500 * patience(), `the first frame came after ${firstFrameMs} ms`);
    assert.ok((await viewer.stats()).codecs.includes(`video/${codec.toUpperCase()}`));
    await sleep(1000);
    let watched = await watchSpeech(viewer, client);
    for (let again = 0; again < 2 && !watched.isSteady; again++) {
      watched = await watchSpeech(viewer, client);
    }
    const { recording, mouth, speakMs, silentMs, isSteady } = watched;
    const lag = soundBehindLips(recording, mouth, speakMs + 300, silentMs - 300);
    const speakers = recording.events.filter(({ name }) => name === 'speakers');
    assert.deepEqual(
      [speakers[0]?.detail, speakers.at(-1)?.detail],
      [['avatar'], []],
      'the server hears from the packets who speaks',
    );
    const still = await stillAfterSkip(viewer, client);
    console.info(
      `${codec}: sound behind lips ${lag.lagMs.toFixed(1)} ms` +
        `${isSteady ? '' : ' (never steady)'}; mouth still ` +
        `${still.map((ms) => ms.toFixed(0)).join(', ')} ms after SKIP`,
    );
    assert.ok(lag.correlation > 0.5, `mouth and sound hardly go together: ${lag.correlation}`);
    assert.ok(
      lag.lagMs > -15 * patience() && lag.lagMs < 45 * patience(),
      `the sound is ${lag.lagMs.toFixed(1)} ms behind the lips`,
    );
    assert.ok(still[1]! < 150 * patience(), `the mouth moves for ${still[1]} ms after SKIP`);

    client.send('DONE');
    await client.waitFor('STOP');
    await viewer.waitFor('disconnected');
    const { rooms = [] } = await livekit.api('ListRooms', { names: [`mouthpiece-${sessionId}`] });
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

  /** Sockets that the server has open. */
  const openSockets = async (): Promise<number> => {
    const folder = `/proc/${server.process.pid}/fd`;
    const links = await Promise.all(
      (await readdir(folder)).map((name) => readlink(path.join(folder, name)).catch(() => '')),
    );
    return links.filter((link) => link.startsWith('socket:')).length;
  };

  test('however a session ends, no slot, no socket and no room is left', async (t) => {
    const before = await openSockets();
    const ways: readonly [string, Record<string, number>, (one: RoomSession) => unknown][] = [
      ['DONE', {}, ({ client }) => client.send('DONE')],
      ['the client closes', {}, ({ client }) => client.close()],
      ['idle limit', { maxIdleTime: 1 }, () => {}],
      ['length limit', { maxSessionLength: 1 }, () => {}],
      [
        'the avatar is removed',
        {},
        ({ sessionId }) =>
          livekit.api('RemoveParticipant', {
            room: `mouthpiece-${sessionId}`,
            identity: 'avatar',
          }),
      ],
      [
        'the room is deleted',
        {},
        ({ sessionId }) => livekit.api('DeleteRoom', { room: `mouthpiece-${sessionId}` }),
      ],
    ];
    await Promise.all(
      ways.map(async ([, limits, end]) => {
        const session = await openRoomSession(t, server, limits);
        await session.client.waitFor('START');
        await end(session);
        await session.client.closed;
      }),
    );
    let left: unknown = undefined;
    for (const startMs = performance.now(); performance.now() - startMs < 10_000 * patience();) {
      const { currentUsage: slots } = (await call(server, '/ratelimiter/sessions')).body;
      const { rooms = [] } = await livekit.api('ListRooms', {});
      left = { slots, rooms: rooms.length, sockets: Math.max(0, (await openSockets()) - before) };
      if (JSON.stringify(left) === '{"slots":0,"rooms":0,"sockets":0}') {
        return;
      }
      await sleep(200);
    }
    assert.fail(`left after all ends: ${JSON.stringify(left)}`);
  });
});
