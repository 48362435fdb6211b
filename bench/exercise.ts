// Uses a server in every way there is, a little of each, so that every metric has something to
// show.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestServer } from '../test/harness/server.ts';
import type { Fleet } from './peers/fleet.ts';
import { PERFECT } from './peers/impaired-relay.ts';
import { benchSpeech, startFleet } from './scenarios/setup.ts';
import type { Context, Server } from './scenario.ts';

async function rest({ url, apiKey }: Server): Promise<void> {
  const headers = { 'x-service-api-key': apiKey, 'content-type': 'application/json' };
  const audio = readFileSync((await benchSpeech()).file)
    .subarray(0, 32_000 * 2)
    .toString('base64');
  const [face] = await fetch(`${url}/faces`, { headers }).then(
    (response) => response.json() as Promise<{ id: string }[]>,
  );
  const requests: [path: string, init: RequestInit][] = [
    ['/compose/ice', { headers }],
    ['/history/sessions', { headers }],
    ['/history/sessions', {}],
    ['/no/such/path', { headers }],
    ['/readyz', {}],
    ['/compose/token', { method: 'POST', headers, body: '{}' }],
    ['/compose/token', { method: 'POST', headers, body: JSON.stringify({ faceId: 'nobody' }) }],
    [
      '/static/audio',
      { method: 'POST', headers, body: JSON.stringify({ faceId: face?.id, audioBase64: audio }) },
    ],
  ];
  for (const [path, init] of requests) {
    await fetch(url + path, init).then((response) => response.arrayBuffer());
  }
}

/** Sends an avatar to a LiveKit server that is not there. */
async function failToJoin({ url, apiKey }: Server): Promise<void> {
  const headers = { 'x-service-api-key': apiKey, 'content-type': 'application/json' };
  const post = async (path: string, body: unknown): Promise<Record<string, string>> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, string>;
  };
  const faces = await fetch(`${url}/faces`, { headers });
  const [face] = (await faces.json()) as { id: string }[];
  const { session_token } = await post('/compose/token', { faceId: face?.id });
  await post('/integrations/livekit/agents', {
    session_token,
    livekit_token: 'token',
    livekit_url: 'ws://127.0.0.1:9',
  });
}

/**
 * Goes on until `seconds` are over: speaking, quiet and interrupted sessions, one over a bad line,
 * one in a LiveKit room, new ones every few seconds, REST calls good and bad.
 */
async function exercise(context: Context, server: Server, seconds: number): Promise<Fleet> {
  const fleet = await startFleet(context, server, { processes: 1 });
  const until = performance.now() + seconds * 1000;
  await fleet.openPatiently();
  const talker = (await fleet.openPatiently({ cycleSeconds: 3, speechSeconds: 2, pace: 'burst' }))
    .peer;
  await fleet.openPatiently(
    { cycleSeconds: 4, speechSeconds: 2, pace: 'realtime' },
    { ...PERFECT, lossPercent: 3, delayMs: 15, jitterMs: 10 },
  );
  const inRoom = await startFleet(context, server, { processes: 1, kind: 'livekit' });
  await inRoom.openPatiently({ cycleSeconds: 4, speechSeconds: 2, pace: 'burst' });
  await failToJoin(server);
  // Once at least: on a busy machine what comes before may take all the time.
  do {
    await rest(server);
    const { peer } = await fleet.openPatiently();
    await fleet.speak(peer, 'burst', 0, 1.5);
    await delay(700);
    await fleet.skip(talker);
    await fleet.close(peer);
    await delay(800);
  } while (performance.now() < until);
  return fleet;
}

/** As `exercise`, outside of the bench: `defer` gets what must be cleaned up afterwards. */
export async function exerciseServer(
  testServer: TestServer,
  seconds: number,
  defer: Context['defer'],
): Promise<void> {
  const server = {
    url: testServer.url,
    apiKey: testServer.apiKey,
    pid: testServer.process.pid ?? undefined,
    stop: () => testServer.stop(),
  };
  const context: Context = {
    options: {},
    target: undefined,
    server: () => Promise.resolve(server),
    record: () => {},
    progress: () => {},
    defer,
  };
  await exercise(context, server, seconds);
}
