// An avatar in somebody else's room: LiveKit's Python SDK is the agent that streams speech and
// interrupts, on a real livekit-server.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import { AGENT, Agent, type AgentEvent, AVATAR, canRunAgents } from '../harness/livekit-agent.ts';
import { LiveKitTestServer } from '../harness/livekit-server.ts';
import { call, createToken, startServer, type TestServer } from '../harness/server.ts';
import { findMouth, soundBehindLips } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { Probe } from '../harness/probe.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { synthesize } from '../harness/speech.ts';
import { sleep } from '../../src/base/time.ts';

const SENTENCE = 'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa.';

describe.skipIf(!canRunAgents)('an avatar for an agent', () => {
  let livekit: LiveKitTestServer;
  let server: TestServer;
  beforeAll(async () => {
    // A head that moves hides the lips from what measures them.
    [livekit, server] = await Promise.all([
      LiveKitTestServer.start(),
      startServer({ env: { MOTION: 'none' } }),
    ]);
  });
  afterAll(async () => {
    await server?.stop();
    await livekit?.stop();
  });

  async function send(room: string, attributes = {}): ReturnType<typeof call> {
    return await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: livekit.agentToken(AVATAR, room, attributes),
      livekit_url: livekit.url,
    });
  }

  let rooms = 0;
  /** @param name a retried test gets another room: the avatar of the first try may still be there */
  async function start(
    t: TestContext,
    name: string,
  ): Promise<{ agent: Agent; id: string; room: string }> {
    rooms++;
    const room = `${name}-${rooms}`;
    const agent = new Agent(livekit.url, livekit.agentToken(AGENT, room));
    t.onTestFinished(async () => {
      await agent.stop();
    });
    await agent.have('connected', 1);
    const { status, body } = await send(room, { 'lk.publish_on_behalf': AGENT });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.status, 'joined');
    await agent.have('subscribed', 2);
    return { agent, id: body.session_id, room };
  }

  const isOver = async (id: string): Promise<boolean> =>
    (await call(server, `/sessions/${id}/stats`)).status === 404;

  test('segments are played in turn, whatever their rate, and each is told of exactly once', async (t) => {
    const { agent } = await start(t, 'room-segments');
    agent.tell('say 1.5 16000 1');
    agent.tell('say 1 48000 2');
    agent.tell('say 0.5 24000 1');
    const finished = await agent.have('finished', 3);
    assert.deepEqual(
      finished.map(({ interrupted, caller }) => [interrupted, caller]),
      Array.from({ length: 3 }, () => [false, AVATAR]),
    );
    for (const [index, seconds] of [1.5, 1, 0.5].entries()) {
      const { playback_position: position } = finished[index]!;
      assert.ok(Math.abs(position - seconds) < 0.1, `${position} s of ${seconds}`);
    }
    agent.tell('frames');
    const [{ video, audio }] = (await agent.have('frames', 1)) as [AgentEvent];
    assert.ok(video > 40 && audio > 40, `${video} pictures, ${audio} pieces of sound`);
  });

  test('an interruption ends every segment, at the position that was heard', async (t) => {
    const { agent } = await start(t, 'room-interrupted');
    agent.tell('say 13 16000 1');
    agent.tell('say 2 16000 1');
    const sent = await agent.have('sent', 2);
    const beganMs = sent[0]!.atMs;
    await sleep(1500);
    agent.tell('clear');
    const [answered] = (await agent.have('answered', 1)) as [AgentEvent];
    assert.equal(answered['answer'], 'ok', JSON.stringify(answered));
    const finished = await agent.have('finished', 2);
    const [first, second] = finished as [AgentEvent, AgentEvent];
    assert.deepEqual([first['interrupted'], second['interrupted']], [true, true]);
    const heardMs = first.atMs - beganMs;
    const position = first['playback_position'] * 1000;
    assert.ok(Math.abs(position - heardMs) < 1000, `${position} ms of ${heardMs}`);
    assert.equal(second['playback_position'], 0);
    agent.tell('clear');
    agent.tell('unknown');
    const answers = await agent.have('answered', 3);
    assert.deepEqual([answers[1]!['answer'], answers[2]!['code']], ['ok', 1400]);
    agent.tell('say 0.5 16000 1');
    assert.equal((await agent.have('finished', 3))[2]!['interrupted'], false);
    assert.equal(agent.of('finished').length, 3);
  });

  test('13 s of speech arrive at once, and playback is told as it begins', async (t) => {
    const { agent } = await start(t, 'room-fast');
    const takenMs: number[] = [];
    for (let round = 1; round <= 3; round++) {
      agent.tell('say 13 16000 1');
      const sent = (await agent.have('sent', round)).at(-1)!;
      takenMs.push(sent.atMs - sent['beganMs']);
      await agent.have('started', round);
      if (round < 3) {
        agent.tell('clear');
        await agent.have('finished', round);
      }
    }
    const began = agent.of('started').at(-1)!;
    const least = Math.min(...takenMs);
    console.info(`13 s of speech were sent in ${takenMs.map((ms) => ms.toFixed(0)).join(', ')} ms`);
    assert.ok(least < 300 * patience(), `${least} ms to send 13 s of speech`);
    await sleep(1500);
    agent.tell('clear');
    const finished = (await agent.have('finished', 3))[2]!;
    const heardMs = finished.atMs - began.atMs;
    const position = finished['playback_position'] * 1000;
    // Both calls take the same way; what differs is when this process and its machine got to them.
    assert.ok(
      Math.abs(position - heardMs) < 100 * patience(),
      `told ${position.toFixed(0)} ms, heard ${heardMs.toFixed(0)} ms`,
    );
  });

  test('a viewer sees the lips in step with the sound', async (t) => {
    const { agent, room } = await start(t, 'room-lips');
    const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-agent-'));
    const browser = await openBrowser();
    t.onTestFinished(async () => {
      await browser.close();
      await rm(folder, { recursive: true });
    });
    const viewer = await Probe.open(browser, server);
    const video = { room, roomJoin: true, canSubscribe: true };
    await viewer.joinRoom(livekit.url, livekit.token({ identity: 'v', kind: 'standard', video }));
    await sleep(3000);
    const quiet = await viewer.now();
    await sleep(1500);
    const { pcm } = await synthesize(SENTENCE);
    const file = path.join(folder, 'speech.raw');
    await writeFile(file, new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength));
    const sent = await viewer.now();
    agent.tell(`file ${file} 16000 1`);
    await agent.have('started', 1);
    const speak = await viewer.now();
    await agent.have('finished', 1);
    const silent = await viewer.now();
    const recording = await viewer.take();
    const mouth = findMouth(
      recording,
      { fromMs: speak, toMs: silent },
      { fromMs: quiet, toMs: sent },
    );
    const lag = soundBehindLips(recording, mouth, speak + 300, silent - 300);
    console.info(`agent's room: sound behind lips ${lag.lagMs.toFixed(1)} ms`);
    assert.ok(lag.correlation > 0.5, `mouth and sound hardly go together: ${lag.correlation}`);
    assert.ok(
      lag.lagMs > -15 * patience() && lag.lagMs < 45 * patience(),
      `the sound is ${lag.lagMs.toFixed(1)} ms behind the lips`,
    );
  });

  test('the session ends when the agent leaves, or the avatar is removed', async (t) => {
    const left = await start(t, 'room-left');
    left.agent.tell('quit');
    const removed = await start(t, 'room-removed');
    await livekit.api('RemoveParticipant', { room: removed.room, identity: AVATAR });
    for (const { id } of [left, removed]) {
      for (let i = 0; i < 200 && !(await isOver(id)); i++) {
        await sleep(50);
      }
      assert.ok(await isOver(id));
    }
    let used = Number.NaN;
    for (let i = 0; i < 400 && used !== 0; i++) {
      ({ currentUsage: used } = (await call(server, '/ratelimiter/sessions')).body);
      await sleep(50);
    }
    assert.equal(used, 0, 'every slot is free');
    const { body: history } = await call(server, '/history/sessions');
    assert.ok(history.sessions.some(({ kind }: { kind: string }) => kind === 'agent'));
    const { participants = [] } = await livekit.api('ListParticipants', { room: removed.room });
    assert.ok(participants.every(({ identity }: { identity: string }) => identity !== AVATAR));
  });

  test('what cannot be joined is refused in words, and leaves nothing', async () => {
    const noAgent = await send('room-refused');
    assert.equal(noAgent.status, 400);
    assert.match(noAgent.body.error, /lk\.publish_on_behalf/);
    const wrong = await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: 'not a token',
      livekit_url: livekit.url,
    });
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'ROOM_JOIN_FAILED']);
    const url = await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: 'x',
      livekit_url: 'ws://10.0.0.1:7880',
    });
    assert.deepEqual([url.status, url.body.code], [400, 'LIVEKIT_URL_REFUSED']);
    const token = await call(server, '/integrations/livekit/agents', {
      session_token: 'x',
      livekit_token: 'x',
      livekit_url: livekit.url,
    });
    assert.deepEqual([token.status, token.body.code], [401, 'INVALID_SESSION_TOKEN']);
  });
});
