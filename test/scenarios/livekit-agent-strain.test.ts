// An avatar in somebody else's room under strain: networks that lose packets, interruptions at random,
// and rooms full of strangers. LiveKit's Python SDK is the agent, on a real livekit-server.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import { PERFECT } from '../../bench/peers/impaired-relay.ts';
import { AGENT, Agent, type AgentEvent, AVATAR, canRunAgents } from '../harness/livekit-agent.ts';
import { LiveKitPath } from '../harness/livekit-path.ts';
import { LiveKitTestServer } from '../harness/livekit-server.ts';
import { patience } from '../harness/machine.ts';
import { call, createToken, startServer, type TestServer } from '../harness/server.ts';
import { sleep } from '../../src/base/time.ts';

/** Numbers from 0 to 1, the same in each run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** Frequencies of tones, which the agent tells apart. */
const hzOf = (segment: number): number => 400 + 200 * segment;

interface Started {
  readonly agent: Agent;
  readonly id: string;
  readonly room: string;
  readonly path: LiveKitPath;
}

describe.skipIf(!canRunAgents)('an avatar for an agent, under strain', () => {
  let livekit: LiveKitTestServer;
  let server: TestServer;
  beforeAll(async () => {
    [livekit, server] = await Promise.all([LiveKitTestServer.start(), startServer()]);
  });
  afterAll(async () => {
    await server?.stop();
    await livekit?.stop();
  });

  const join = async (t: TestContext, identity: string, room: string): Promise<Agent> => {
    const agent = new Agent(livekit.url, livekit.agentToken(identity, room));
    t.onTestFinished(async () => {
      await agent.stop();
    });
    await agent.have('connected', 1);
    return agent;
  };

  let rooms = 0;
  async function start(t: TestContext): Promise<Started> {
    const room = `strain-${++rooms}`;
    const path = await LiveKitPath.open(livekit);
    t.onTestFinished(async () => {
      await path.close();
    });
    const agent = await join(t, AGENT, room);
    const { status, body } = await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: livekit.agentToken(AVATAR, room, { 'lk.publish_on_behalf': AGENT }),
      livekit_url: path.url,
    });
    assert.equal(status, 200, JSON.stringify(body));
    await agent.have('subscribed', 2);
    return { agent, id: body.session_id, room, path };
  }

  /** Milliseconds of each tone that the agent has heard. */
  async function heard(agent: Agent): Promise<Readonly<Record<string, number>>> {
    const times = agent.of('heard').length;
    agent.tell('heard');
    return (await agent.have('heard', times + 1)).at(-1)!['ms'];
  }

  test.for([5, 20])('of all packets %i in a hundred are lost each way', async (percent, t) => {
    const { agent, path } = await start(t);
    await sleep(1000);
    path.impairment = { ...PERFECT, lossPercent: percent };
    agent.tell('frames');
    const [before] = (await agent.have('frames', 1)) as [AgentEvent];
    agent.tell(`say 3 16000 1 ${hzOf(0)}`);
    const [sent] = (await agent.have('sent', 1)) as [AgentEvent];
    const [began] = (await agent.have('started', 1, 40_000)) as [AgentEvent];
    const [whole] = (await agent.have('finished', 1, 40_000)) as [AgentEvent];
    agent.tell(`say 3 16000 1 ${hzOf(1)}`);
    await agent.have('started', 2, 40_000);
    await sleep(800);
    agent.tell('clear');
    const cleared = (await agent.have('finished', 2, 40_000))[1]!;
    agent.tell('frames');
    const after = (await agent.have('frames', 2))[1]!;
    await sleep(500);
    const ms = await heard(agent);
    const fps = ((after['video'] - before['video']) * 1000) / (after.atMs - before.atMs);
    const told = cleared['playback_position'] * 1000;
    console.info(
      `${percent} % loss: ${fps.toFixed(1)} frames/s; speech begins ` +
        `${(began.atMs - sent['beganMs']).toFixed(0)} ms after its first byte; told ` +
        `${whole['playback_position']} s of 3, heard ${ms[hzOf(0)]} ms; interrupted: told ` +
        `${told.toFixed(0)} ms, heard ${ms[hzOf(1)]}`,
    );
    assert.ok(fps > (percent === 5 ? 27 : 20) / patience(), `${fps} frames a second`);
    assert.equal(whole['interrupted'], false);
    assert.ok(Math.abs(whole['playback_position'] - 3) < 0.01, 'no byte of the stream was lost');
    assert.ok(Math.abs(ms[hzOf(0)]! - 3000) < (percent === 5 ? 150 : 900) * patience());
    // The call comes as late as what is lost of the stream before it.
    const isOver = !cleared['interrupted'] && Math.abs(told - 3000) < 10;
    const off = Math.abs(told - ms[hzOf(1)]!);
    assert.ok(isOver || off < (percent === 5 ? 150 : 600) * patience(), `${told}, off by ${off}`);
  });

  test('ten segments and interruptions at random: each told of once, with what was heard', async (t) => {
    const { agent } = await start(t);
    const random = randomFrom(20_261_123);
    const seconds: number[] = [];
    while (seconds.length < 10) {
      // Some are queued, and all of them interrupted somewhere, or after their end.
      let queued = 0;
      for (let more = 1 + Math.floor(random() * 3); more > 0 && seconds.length < 10; more--) {
        const length = 0.4 + 1.6 * random();
        queued += length;
        agent.tell(`say ${length} ${random() < 0.5 ? 24_000 : 16_000} 1 ${hzOf(seconds.length)}`);
        seconds.push(length);
      }
      await agent.have('sent', seconds.length);
      await sleep(random() * 1200 * queued);
      agent.tell('clear');
      await agent.have('finished', seconds.length);
      await sleep(300); // what is under way is still heard
    }
    const ms = await heard(agent);
    const finished = agent.of('finished');
    const rows = finished.map(({ playback_position: told, interrupted }, index) => ({
      length: seconds[index]! * 1000,
      told: told * 1000,
      heard: ms[hzOf(index)] ?? 0,
      interrupted,
    }));
    console.info(rows.map((row) => `${row.told.toFixed(0)}/${row.heard}`).join(' '));
    assert.equal(finished.length, 10);
    for (const { length, told, heard: wasHeard, interrupted } of rows) {
      assert.ok(interrupted ? told <= length + 1 : Math.abs(told - length) < 1);
      assert.ok(Math.abs(told - wasHeard) < 100 * patience(), `told ${told}, heard ${wasHeard}`);
    }
    assert.ok(rows.some((row) => row.told === 0) && rows.some((row) => !row.interrupted));
  });

  const memoryMb = async (): Promise<number> => {
    const status = await readFile(`/proc/${server.process.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
  };

  test('a room full of strangers that stream and call: none is heeded, memory stays', async (t) => {
    const { agent, room, id } = await start(t);
    const strangers: Agent[] = [];
    for (let i = 0; i < 3; i++) {
      strangers.push(await join(t, `stranger-${i}`, room));
    }
    agent.tell('say 1 16000 1');
    await agent.have('finished', 1);
    const before = await memoryMb();
    strangers[0]!.tell('endless 8');
    strangers[1]!.tell('flood 8');
    strangers[2]!.tell('flood 8');
    await sleep(1000);
    agent.tell('frames');
    agent.tell(`say 5 16000 1 ${hzOf(2)}`);
    const finished = (await agent.have('finished', 2, 40_000))[1]!;
    agent.tell('frames');
    const [first, last] = (await agent.have('frames', 2)) as [AgentEvent, AgentEvent];
    const fps = ((last['video'] - first['video']) * 1000) / (last.atMs - first.atMs);
    const floods: AgentEvent[] = [];
    for (const stranger of strangers) {
      floods.push((await stranger.have('flooded', 1, 30_000))[0]!);
    }
    const after = await memoryMb();
    console.info(
      `strangers: ${JSON.stringify(floods)}; ` +
        `${fps.toFixed(1)} frames/s; ${before.toFixed(0)} -> ${after.toFixed(0)} MB`,
    );
    assert.deepEqual([finished['interrupted'], finished['playback_position']], [false, 5]);
    assert.ok(fps > 26 / patience(), `${fps} frames a second`);
    assert.ok(after - before < 40, `${before} -> ${after} MB`);
    for (const { answers = {} } of floods as { answers?: object }[]) {
      assert.ok(!Object.hasOwn(answers, 'ok'), 'nobody else may interrupt');
    }
    assert.equal((await call(server, `/sessions/${id}/stats`)).status, 200);
  });

  test('an agent whose segment does not end, and who calls without end, harms itself only', async (t) => {
    const { agent, id } = await start(t);
    const before = await memoryMb();
    agent.tell('endless 6');
    agent.tell('flood 6');
    await agent.have('flooded', 2, 60_000);
    const after = await memoryMb();
    console.info(
      `agent: ${JSON.stringify(agent.of('flooded'))}; ` +
        `${before.toFixed(0)} -> ${after.toFixed(0)} MB`,
    );
    assert.ok(after - before < 60, `${before} -> ${after} MB`);
    agent.tell('clear');
    await agent.have('answered', 1);
    const told = agent.of('finished').length;
    agent.tell('say 1 16000 1');
    await agent.have('finished', told + 1, 40_000);
    assert.equal((await call(server, `/sessions/${id}/stats`)).status, 200);
  });
});
