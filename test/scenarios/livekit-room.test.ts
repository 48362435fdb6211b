// A session in a LiveKit room that the server serves itself: the viewer is livekit-client, as it is
// published, in a real browser.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test, type TestContext } from 'vitest';
import type { TestBrowser } from '../harness/browser.ts';
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
import { until } from '../harness/until.ts';
import { sleep } from '../../src/base/time.ts';
import { Random } from '../../src/pipeline/render/motion/random.ts';

let server: TestServer;
let browser: TestBrowser;
beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const openSession = (t: TestContext): Promise<RoomSession> => openRoomSession(t, server);
const openPage = (t: TestContext): Promise<Probe> => openViewer(t, browser, server);

test('the client is told where to join before it has said anything', async (t) => {
  const { client, url } = await openSession(t);
  assert.deepEqual(
    client.words,
    ['{"destination":', '{"video_metadata":', '{"livekit_url":'],
    'the order of the specification',
  );
  assert.equal(url, server.url.replace('http', 'ws'));
});

test('livekit-client joins, sees the face, and its mouth moves to speech and only then', async (t) => {
  const { client, url, token } = await openSession(t);
  const viewer = await openPage(t);
  const { joinMs, firstFrameMs } = await viewer.joinRoom(url, token);
  await client.waitFor('START');
  assert.ok(firstFrameMs < 500 * patience(), `the first frame came after ${firstFrameMs} ms`);
  assert.ok(joinMs < 2000 * patience(), `joining took ${joinMs} ms`);
  await sleep(700); // the first second's picture is still being refined by the encoder
  const { recording } = await watchSpeech(viewer, client);
  const stats = await viewer.stats();
  assert.deepEqual([stats.video.frameWidth, stats.video.frameHeight], [512, 512]);
  const subscribed = recording.events.filter(({ name }) => name === 'subscribed');
  assert.deepEqual(
    subscribed.map(({ detail }) => `${detail.kind} ${detail.source} ${detail.identity}`).sort(),
    ['audio microphone avatar', 'video camera avatar'],
  );
  const speakers = recording.events.filter(({ name }) => name === 'speakers');
  assert.deepEqual(
    speakers.map(({ detail }) => detail),
    [['avatar'], []],
    'LiveKit shows who speaks',
  );
});

test('a viewer that leaves and comes back finds the same session, and the rest of the speech', async (t) => {
  const { client, url, token, sessionId } = await openSession(t);
  const first = await openPage(t);
  await first.joinRoom(url, token);
  client.speak((await synthesize(LABIAL_SENTENCE)).pcm);
  await client.waitFor('SPEAK');
  await first.leaveRoom();
  const second = await openPage(t);
  await second.joinRoom(url, token);
  assert.equal(client.words.filter((word) => word === 'START').length, 1);
  await client.waitFor('SILENT', { limitMs: 30_000 });
  await sleep(300);
  const { sound } = await second.take();
  assert.ok(
    sound.some((sample) => Math.abs(sample) > 3000),
    'the speech goes on',
  );
  const { status, body } = await call(server, `/sessions/${sessionId}/stats`);
  assert.deepEqual([status, body.state], [200, 'idle']);
});

test('SKIP and DONE work as in any session; at the end the viewer is sent away', async (t) => {
  const { client, url, token } = await openSession(t);
  const viewer = await openPage(t);
  await viewer.joinRoom(url, token);
  client.speak((await synthesize(LABIAL_SENTENCE)).pcm);
  await client.waitFor('SPEAK');
  client.send('SKIP');
  await client.waitFor('SILENT');
  client.send('DONE');
  await client.waitFor('STOP');
  const { detail } = await viewer.waitFor('disconnected');
  assert.equal(detail, 5, 'ROOM_DELETED');
  assert.equal((await fetch(`${server.url}/rtc/v1/validate?access_token=${token}`)).status, 401);
  const { body } = await call(server, '/history/sessions');
  assert.ok(
    body.sessions.every(({ kind }: { kind: string }) => kind === 'livekit'),
    JSON.stringify(body),
  );
});

test('a connection that breaks is restored by the client, and the session goes on', async (t) => {
  const { client, url, token } = await openSession(t);
  const viewer = await openPage(t);
  await viewer.joinRoom(url, token);
  // What livekit-client's own tests do: it drops its signal socket, and then all of its transports.
  for (const scenario of ['signal-reconnect', 'full-reconnect']) {
    const from = await viewer.now();
    await viewer.page.evaluate(`void probe.room.simulateScenario('${scenario}')`);
    await viewer.waitFor('reconnected', from, 30_000);
    const before = await viewer.stats();
    await sleep(1000);
    const { video } = await viewer.stats();
    assert.ok(
      video.framesDecoded > before.video.framesDecoded + 15,
      `${scenario}: ${before.video.framesDecoded} -> ${video.framesDecoded}`,
    );
  }
  assert.deepEqual(
    client.words.filter((word) => word === 'STOP' || word === 'ERROR'),
    [],
  );
});

test('interruptions of speech and of connections in any order leave a session that speaks', async (t) => {
  const { client, url, token } = await openSession(t);
  const viewer = await openPage(t);
  await viewer.joinRoom(url, token);
  await client.waitFor('START');
  const { pcm } = await synthesize(LABIAL_SENTENCE);
  const random = new Random(15);
  const { page } = viewer;
  const actions: readonly (() => unknown)[] = [
    () => {
      client.speak(pcm);
    },
    () => {
      client.send('SKIP');
    },
    () => {
      const speech = Buffer.from(pcm.buffer, pcm.byteOffset, 64_000);
      client.send(new Uint8Array(Buffer.concat([Buffer.from('PLAY_IMMEDIATE'), speech])));
    },
    () => page.evaluate("void probe.room.simulateScenario('signal-reconnect').catch(() => {})"),
    () => page.evaluate("void probe.room.simulateScenario('full-reconnect').catch(() => {})"),
  ];
  const done: number[] = [];
  for (let step = 0; step < 16; step++) {
    const action = Math.floor(random.next() * actions.length);
    done.push(action);
    await actions[action]!();
    await sleep(600 * random.next());
  }
  await until(() => page.evaluate("probe.room.state === 'connected'") as Promise<boolean>, 30_000);
  client.send('SKIP');
  await until(async () => {
    const words = client.words.filter((word) => word === 'SPEAK' || word === 'SILENT');
    return words.at(-1) !== 'SPEAK';
  }, 10_000);
  const events = client.words.filter((word) => word === 'SPEAK' || word === 'SILENT');
  assert.ok(
    events.every((word, index) => (word === 'SPEAK') === (index % 2 === 0)),
    `${events.join(' ')} after ${done.join(' ')}`,
  );
  await viewer.take();
  const from = client.messages.length;
  client.speak(pcm);
  await client.waitFor('SILENT', { from, limitMs: 30_000 });
  const { sound } = await viewer.take();
  assert.ok(
    sound.some((sample) => Math.abs(sample) > 3000),
    `nothing is heard after ${done.join(' ')}`,
  );
  assert.deepEqual(
    client.words.filter((word) => word === 'STOP' || word === 'ERROR'),
    [],
  );
});
