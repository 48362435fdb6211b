// Sessions in LiveKit rooms, with livekit-client in a browser as the viewer.
import assert from 'node:assert/strict';
import type { TestContext } from 'vitest';
import { sleep } from '../../src/base/time.ts';
import type { TestBrowser } from './browser.ts';
import { findMouth, meanMotion, type MouthRegion } from './lipsync.ts';
import { patience } from './machine.ts';
import { framesBetween, isSoundSteady, Probe, type Recording } from './probe.ts';
import { createToken, type TestServer } from './server.ts';
import { synthesize } from './speech.ts';
import { WsClient } from './ws-client.ts';

/** Many closures of the lips, which a picture shows best. */
export const LABIAL_SENTENCE = 'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa.';

export interface RoomSession {
  readonly client: WsClient;
  /** Where the viewer joins, and with what. */
  readonly url: string;
  readonly token: string;
  readonly sessionId: string;
}

/** Opens a session in a room. It is closed with the test. */
export async function openRoomSession(
  t: TestContext,
  server: TestServer,
  tokenOptions: Record<string, unknown> = {},
): Promise<RoomSession> {
  const sessionToken = await createToken(server, tokenOptions);
  const client = await WsClient.open(server, sessionToken, '/compose/webrtc/livekit');
  t.onTestFinished(async () => {
    await client.close();
  });
  const { livekit_url: url, livekit_token: token } = JSON.parse(
    (await client.waitFor('{"livekit_url"')).text,
  );
  const { session_id: sessionId } = JSON.parse((await client.waitFor('{"destination"')).text);
  return { client, url, token, sessionId };
}

/** Opens a page for a viewer. It is closed with the test. */
export async function openViewer(
  t: TestContext,
  browser: TestBrowser,
  server: TestServer,
): Promise<Probe> {
  const viewer = await Probe.open(browser, server);
  t.onTestFinished(async () => {
    await viewer.page.close();
  });
  return viewer;
}

/** What a viewer saw and heard of one sentence; times on the page's clock. */
export interface WatchedSpeech {
  readonly recording: Recording;
  readonly mouth: MouthRegion;
  readonly speakMs: number;
  readonly silentMs: number;
  /** Whether the browser left the sound alone (`isSoundSteady`). */
  readonly isSteady: boolean;
}

/**
 * Two seconds of silence, a sentence, two seconds of silence. Asserts that the picture flows at 30
 * frames a second, that the mouth moves to the speech and only then, and that it is heard.
 */
export async function watchSpeech(viewer: Probe, client: WsClient): Promise<WatchedSpeech> {
  const speech = await synthesize(LABIAL_SENTENCE);
  const flowing = await viewer.now();
  await sleep(2000);
  const statsBefore = await viewer.stats();
  const from = client.messages.length;
  const sent = await viewer.now();
  client.speak(speech.pcm);
  await client.waitFor('SPEAK', { from });
  const speakMs = await viewer.now();
  await client.waitFor('SILENT', { from, limitMs: 30_000 });
  const silentMs = await viewer.now();
  const isSteady = isSoundSteady(statsBefore, await viewer.stats());
  await sleep(2000);
  const recording = await viewer.take();
  const end = recording.nowMs;

  const all = framesBetween(recording, flowing, end);
  const seconds = (all.at(-1)!.shownMs - all[0]!.shownMs) / 1000;
  const fps = (all.at(-1)!.presented - all[0]!.presented) / seconds;
  assert.ok(fps >= 30 - 2 * patience() && fps <= 31, `${fps.toFixed(1)} frames a second`);
  const mouth = findMouth(
    recording,
    { fromMs: speakMs, toMs: silentMs },
    { fromMs: flowing, toMs: sent },
  );
  const speaking = meanMotion(recording, mouth, speakMs, silentMs);
  const before = meanMotion(recording, mouth, flowing, sent);
  const afterwards = meanMotion(recording, mouth, silentMs + 500, end);
  assert.ok(speaking > 4 * Math.max(before, afterwards), `${speaking} ${before} ${afterwards}`);
  assert.ok(
    recording.sound.some((sample) => Math.abs(sample) > 3000),
    'the speech is heard',
  );
  return { recording, mouth, speakMs, silentMs, isSteady };
}
