// An avatar in somebody else's room: LiveKit's Python SDK is the agent that streams speech and
// interrupts, on a real livekit-server.
import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import { LIVEKIT_PROGRAM, LiveKitTestServer } from '../harness/livekit-server.ts';
import { call, createToken, ROOT, startServer, type TestServer } from '../harness/server.ts';
import { findMouth, soundBehindLips } from '../harness/lipsync.ts';
import { patience } from '../harness/machine.ts';
import { Probe } from '../harness/probe.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { synthesize } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
import { sleep } from '../../src/base/time.ts';

/** A Python with LiveKit's SDK; LIVEKIT_PYTHON names another one than python3. */
const PYTHON = process.env['LIVEKIT_PYTHON'] ?? 'python3';

function hasSdk(): boolean {
  try {
    execFileSync(PYTHON, ['-c', 'from livekit import rtc'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const canRun = LIVEKIT_PROGRAM !== undefined && hasSdk();
if (!canRun) {
  console.warn(
    'no livekit-server, or no Python with the package livekit (LIVEKIT_PYTHON): the tests with an ' +
      'agent are skipped',
  );
}

const SENTENCE = 'Papa, pop a puppy up. Pepper, puppet, popper, paper, happy papa.';
const AGENT = 'agent-1';
const AVATAR = 'avatar-1';
const QUIT_LIMIT_MS = 5000;

interface AgentEvent {
  readonly event: string;
  readonly atMs: number;
  readonly [field: string]: any;
}

/** The Python program. */
class Agent {
  readonly events: AgentEvent[] = [];
  readonly #child: ChildProcess;

  constructor(url: string, token: string) {
    const program = path.join(ROOT, 'test/harness/livekit_agent.py');
    this.#child = spawn(PYTHON, [program, url, token, AVATAR], {
      stdio: ['pipe', 'pipe', process.env['TEST_VERBOSE'] ? 'inherit' : 'ignore'],
    });
    createInterface({ input: this.#child.stdout! }).on('line', (line) => {
      this.events.push(JSON.parse(line) as AgentEvent);
    });
  }

  of(event: string): AgentEvent[] {
    return this.events.filter((one) => one.event === event);
  }
  async have(event: string, count: number, limitMs = 20_000): Promise<AgentEvent[]> {
    await until(() => this.of(event).length >= count, limitMs, `${count} ${event}`);
    return this.of(event);
  }
  tell(command: string): void {
    this.#child.stdin!.write(`${command}\n`);
  }
  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const gone = new Promise((resolve) => {
        this.#child.once('exit', resolve);
      });
      // With a goodbye its avatar leaves at once; else when the server misses it.
      this.tell('quit');
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), QUIT_LIMIT_MS);
      await gone;
      clearTimeout(timer);
    }
  }
}

describe.skipIf(!canRun)('an avatar for an agent', () => {
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

  const tokenOf = (identity: string, room: string, attributes = {}): string =>
    livekit.token({
      identity,
      kind: 'agent',
      attributes,
      video: { room, roomJoin: true, canPublish: true, canSubscribe: true, canPublishData: true },
    });

  async function send(room: string, attributes = {}): ReturnType<typeof call> {
    return await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: tokenOf(AVATAR, room, attributes),
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
    const agent = new Agent(livekit.url, tokenOf(AGENT, room));
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

  test('ten segments and interruptions anywhere: each is told of once, with what was heard', async (t) => {
    const { agent } = await start(t, 'room-many');
    const SEGMENTS = 10;
    let told = 0;
    for (let segment = 1; segment <= SEGMENTS; segment++) {
      agent.tell(`say ${segment % 3 === 0 ? 13 : 1.2} 24000 1`);
      const sent = (await agent.have('sent', segment)).at(-1)!;
      // Every other one is interrupted: at once, amid it, and after its end.
      const waitsMs = [undefined, 0, undefined, 700, undefined, 1100][segment % 6];
      if (waitsMs === undefined && segment % 3 !== 0) {
        continue; // the next one queues behind it
      }
      await sleep(waitsMs ?? 300);
      agent.tell('clear');
      const answered = (await agent.have('answered', ++told)).at(-1)!;
      assert.equal(answered['answer'], 'ok', JSON.stringify(answered));
      const finished = (await agent.have('finished', segment)).at(-1)!;
      assert.ok(finished.atMs - answered.atMs < 2000 * patience(), 'told within 2 s');
      const heardMs = finished['playback_position'] * 1000;
      const mostMs = finished.atMs - sent['beganMs'];
      assert.ok(heardMs <= mostMs, `${heardMs} ms heard, ${mostMs} ms after the first byte left`);
    }
    await agent.have('finished', SEGMENTS);
    await sleep(500);
    assert.equal(agent.of('finished').length, SEGMENTS);
  });

  test('13 s of speech arrive at once, and playback is told as it begins', async (t) => {
    const { agent } = await start(t, 'room-fast');
    agent.tell('say 13 16000 1');
    const [began] = (await agent.have('started', 1)) as [AgentEvent];
    const [sent] = (await agent.have('sent', 1)) as [AgentEvent];
    const takenMs = sent.atMs - sent['beganMs'];
    console.info(`13 s of speech were sent in ${takenMs.toFixed(0)} ms`);
    assert.ok(takenMs < 1000 * patience(), `${takenMs} ms to send 13 s of speech`);
    await sleep(1500);
    agent.tell('clear');
    const [finished] = (await agent.have('finished', 1)) as [AgentEvent];
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
