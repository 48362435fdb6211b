// Connections between an avatar and a livekit-server that are lost in every way that was seen: what
// the avatar does, and what a viewer notices of it.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test, type TestContext } from 'vitest';
import { LeaveRequest, LeaveRequest_Action, SimulateScenario } from '@livekit/protocol';
import type { TestBrowser } from '../harness/browser.ts';
import { LiveKitPath } from '../harness/livekit-path.ts';
import { LIVEKIT_PROGRAM, LiveKitTestServer } from '../harness/livekit-server.ts';
import { patience } from '../harness/machine.ts';
import { Probe } from '../harness/probe.ts';
import { call, createToken, startServer, type TestServer } from '../harness/server.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { sleep } from '../../src/base/time.ts';

if (LIVEKIT_PROGRAM === undefined) {
  console.warn(
    'no livekit-server: its outages are skipped (npm run setup -- --livekit, or LIVEKIT_SERVER)',
  );
}

const AVATAR = 'avatar-1';
const AGENT = 'agent-1';

/** An avatar in a room of its own, with what lies between it and its server. */
interface Avatar {
  readonly path: LiveKitPath;
  readonly id: string;
  readonly room: string;
}

describe.skipIf(LIVEKIT_PROGRAM === undefined)('outages of a real livekit-server', () => {
  let livekit: LiveKitTestServer;
  let server: TestServer;
  let browser: TestBrowser;
  beforeAll(async () => {
    [livekit, server, browser] = await Promise.all([
      LiveKitTestServer.start(),
      startServer({ env: { LOG_LEVEL: 'info' } }),
      openBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await livekit?.stop();
  });

  let rooms = 0;
  async function send(t: TestContext, ttlSeconds = 3600): Promise<Avatar> {
    const path = await LiveKitPath.open(livekit);
    t.onTestFinished(async () => {
      await livekit.api('DeleteRoom', { room });
      await path.close();
    });
    const room = `outage-${++rooms}`;
    const { status, body } = await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: livekit.agentToken(
        AVATAR,
        room,
        { 'lk.publish_on_behalf': AGENT },
        ttlSeconds,
      ),
      livekit_url: path.url,
    });
    assert.equal(status, 200, JSON.stringify(body));
    await isPublishing(room);
    return { path, id: body.session_id, room };
  }

  /** Resolves when the avatar is in the room with both tracks. @returns its sid */
  async function isPublishing(room: string, limitMs = 20_000): Promise<string> {
    const startMs = performance.now();
    for (;;) {
      const { participants = [] } = await livekit.api('ListParticipants', { room });
      const avatar = participants.find(
        ({ identity, tracks = [] }: { identity: string; tracks?: unknown[] }) =>
          identity === AVATAR && tracks.length === 2,
      );
      if (avatar !== undefined) {
        return avatar.sid;
      }
      assert.ok(performance.now() - startMs < limitMs, `the avatar is back within ${limitMs} ms`);
      await sleep(20);
    }
  }

  async function watch(t: TestContext, room: string): Promise<Probe> {
    const viewer = await Probe.open(browser, server);
    t.onTestFinished(async () => {
      if (!viewer.page.isClosed()) {
        await viewer.page.close();
      }
    });
    const video = { room, roomJoin: true, canSubscribe: true };
    await viewer.joinRoom(livekit.url, livekit.token({ identity: 'v', kind: 'standard', video }));
    await sleep(500);
    return viewer;
  }

  /** Frames a second that a viewer sees during `work`. */
  async function framesDuring(viewer: Probe, work: () => Promise<unknown>): Promise<number> {
    const { video: before } = await viewer.stats();
    const fromMs = await viewer.now();
    await work();
    const { video: after } = await viewer.stats();
    const seconds = ((await viewer.now()) - fromMs) / 1000;
    return (after.framesDecoded - before.framesDecoded) / seconds;
  }

  /** How long it takes until the viewer sees a further frame. */
  async function nextFrame(viewer: Probe): Promise<number> {
    await viewer.take();
    const fromMs = await viewer.now();
    for (;;) {
      const { frames } = await viewer.take();
      const frame = frames.find(({ shownMs }) => shownMs > fromMs + 50);
      if (frame !== undefined) {
        return frame.shownMs - fromMs;
      }
      assert.ok((await viewer.now()) - fromMs < 20_000, 'the viewer sees frames again');
      await sleep(50);
    }
  }

  /** Resolves when the connection was restored for the `times`th time. */
  async function restored({ id }: Avatar, times = 1, limitMs = 10_000): Promise<void> {
    const count = (): number =>
      server.logs.filter((line) => line.includes(id) && line.includes('is restored')).length;
    for (const startMs = performance.now(); count() < times; await sleep(20)) {
      assert.ok(performance.now() - startMs < limitMs, 'the connection is restored');
    }
  }

  async function isOver({ id }: Avatar, reason: string): Promise<void> {
    for (const startMs = performance.now(); ; await sleep(50)) {
      const { status } = await call(server, `/sessions/${id}/stats`);
      if (status === 404) {
        break;
      }
      assert.ok(performance.now() - startMs < 5000 * patience(), 'the session is over');
    }
    const line = server.logs.find((one) => one.includes(id) && one.includes('session ended'));
    assert.match(line ?? '', new RegExp(`"${reason}"`));
  }
  const goesOn = async ({ id }: Avatar): Promise<void> => {
    assert.equal((await call(server, `/sessions/${id}/stats`)).status, 200);
  };

  test('the signal connection is lost for three seconds: it resumes, and media runs on', async (t) => {
    const avatar = await send(t);
    const { path, room } = avatar;
    const viewer = await watch(t, room);
    const sid = await isPublishing(room);
    const fps = await framesDuring(viewer, async () => {
      path.isDown = true;
      path.cutSignal();
      await sleep(3000);
      path.isDown = false;
      await restored(avatar);
      await sleep(500);
    });
    assert.ok(fps > 30 - 5 * patience(), `${fps} frames a second without signal`);
    assert.deepEqual(
      path.joins.map(({ isResume }) => isResume),
      [false, true],
    );
    assert.equal(await isPublishing(room), sid, 'it never left');
    console.info(`signal lost: ${fps.toFixed(1)} frames/s`);
  });

  test('a token that has expired does not end the session: the newest one is kept', async (t) => {
    const avatar = await send(t, 2);
    const { path } = avatar;
    await sleep(3000);
    const newest = path.refreshedToken;
    path.cutSignal();
    await restored(avatar);
    const [join, resume] = path.joins;
    assert.ok(resume!.isResume && resume!.token === newest && newest !== join!.token);
    await goesOn(avatar);
  });

  test('the server says goodbye in each way: the avatar resumes, or joins again', async (t) => {
    const avatar = await send(t);
    const { path, room } = avatar;
    const viewer = await watch(t, room);
    const leave = (action: LeaveRequest_Action) => (): void => {
      path.say({ case: 'leave', value: new LeaveRequest({ action }) });
    };
    const simulate = (name: 'serverLeave' | 'nodeFailure') => (): void => {
      const scenario = { case: name, value: true } as const;
      path.tell({ case: 'simulate', value: new SimulateScenario({ scenario }) });
    };
    const cases = [
      ['asks to resume', leave(LeaveRequest_Action.RESUME), true],
      ['asks to join again', leave(LeaveRequest_Action.RECONNECT), false],
      ['shuts down', simulate('serverLeave'), false],
      ['fails', simulate('nodeFailure'), false],
    ] as const;
    for (const [index, [what, act, resumes]] of cases.entries()) {
      act();
      await restored(avatar, index + 1);
      const backMs = await nextFrame(viewer);
      console.info(`the server ${what}: frames after ${backMs.toFixed(0)} ms`);
      assert.ok(backMs < 2000 * patience(), `the server ${what}: frames after ${backMs} ms`);
      assert.equal(path.joins.at(-1)!.isResume, resumes, what);
    }
  });

  test.concurrent('media is lost for 3 and for 8 s: it goes on at once, and ICE restarts once', async (t) => {
    const avatar = await send(t);
    const { path, room } = avatar;
    const viewer = await watch(t, room);
    for (const [seconds, restarts] of [
      [3, 0],
      [8, 1],
    ] as const) {
      path.losesMedia = true;
      await sleep(seconds * 1000);
      path.losesMedia = false;
      const backMs = await nextFrame(viewer);
      console.info(`media lost for ${seconds} s: back after ${backMs.toFixed(0)} ms`);
      assert.ok(backMs < 2500 * patience(), `frames again after ${backMs} ms`);
      assert.equal(path.restarts, restarts);
    }
    assert.equal(path.joins.length, 1, 'it never joined again');
  });

  test.concurrent('signal messages arrive no longer: a missed ping is a loss, and it resumes', async (t) => {
    const avatar = await send(t);
    avatar.path.isFrozen = true;
    const startMs = performance.now();
    while (avatar.path.joins.length === 1) {
      assert.ok(performance.now() - startMs < 40_000, 'it is noticed');
      await sleep(50);
    }
    avatar.path.isFrozen = false;
    await restored(avatar, 1, 20_000);
    await goesOn(avatar);
  });

  test.concurrent('nothing arrives for 25 s: it is forgotten, and joins again', async (t) => {
    const avatar = await send(t);
    const { path, room } = avatar;
    path.losesMedia = path.isDown = true;
    path.cutSignal();
    await sleep(25_000);
    path.losesMedia = path.isDown = false;
    const startMs = performance.now();
    const joins = path.joins.length;
    while (path.joins.length === joins) {
      assert.ok(performance.now() - startMs < 3000 * patience(), 'it comes back');
      await sleep(20);
    }
    await restored(avatar);
    console.info(`nothing for 25 s: back after ${(performance.now() - startMs).toFixed(0)} ms`);
    assert.ok((await nextFrame(await watch(t, room))) < 1000 * patience());
    await goesOn(avatar);
  });

  test('somebody joins with its identity: the session ends, and does not fight', async (t) => {
    const avatar = await send(t);
    const twin = await LiveKitPath.open(livekit);
    t.onTestFinished(async () => {
      await twin.close();
    });
    const { status } = await call(server, '/integrations/livekit/agents', {
      session_token: await createToken(server),
      livekit_token: livekit.agentToken(AVATAR, avatar.room, { 'lk.publish_on_behalf': AGENT }),
      livekit_url: twin.url,
    });
    assert.equal(status, 200);
    await isOver(avatar, 'room_closed');
    await sleep(1500);
    assert.deepEqual([avatar.path.joins.length, twin.joins.length], [1, 1]);
  });

  test('the avatar is removed, or the room deleted: the session ends, and stays away', async (t) => {
    const [removed, deleted] = [await send(t), await send(t)];
    await livekit.api('RemoveParticipant', { room: removed.room, identity: AVATAR });
    await livekit.api('DeleteRoom', { room: deleted.room });
    for (const avatar of [removed, deleted]) {
      await isOver(avatar, 'room_closed');
    }
    await sleep(1500);
    assert.deepEqual([removed.path.joins.length, deleted.path.joins.length], [1, 1]);
  });

  test('the server is killed and started again: the avatar is back within 3 s', async (t) => {
    const avatar = await send(t);
    for (const downMs of [0, 5700]) {
      await livekit.kill();
      await sleep(downMs);
      await livekit.run();
      const startMs = performance.now();
      await isPublishing(avatar.room);
      const backMs = performance.now() - startMs;
      console.info(`killed for ${downMs} ms: the avatar is back after ${backMs.toFixed(0)} ms`);
      assert.ok(backMs < 3000 * patience(), `the avatar is back after ${backMs} ms`);
      const viewer = await watch(t, avatar.room);
      assert.ok((await nextFrame(viewer)) < 1000 * patience());
      await viewer.page.close();
    }
    await goesOn(avatar);
  });
});
