// Sessions whose agent and viewer have a connection each, on the real server: WHEP with a foreign
// client in Chromium, a second WebRTC stack on the socket, our own clients on both sides, and each
// side cut while the other goes on.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, test } from 'vitest';
import { sleep } from '../../src/base/time.ts';
import { FIREFOX, startFirefox, type TestBrowser } from '../harness/browser.ts';
import { patience } from '../harness/machine.ts';
import { statsOf } from '../harness/page-connection.ts';
import { connectAgent, createSession } from '../../clients/js/src/agent.ts';
import { ROOT, call, firstFace, startServer, type TestServer } from '../harness/server.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { until } from '../harness/until.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';
import { WsClient } from '../harness/ws-client.ts';

/** The client of the draft's author, as the registry has it. */
const FOREIGN_CLIENT = readFileSync(path.join(ROOT, 'node_modules/whip-whep/whep.js'), 'utf8');
const AGENT_PATH = '/sessions/agent';
const SDP = { 'content-type': 'application/sdp' };
const FRAGMENT = { 'content-type': 'application/trickle-ice-sdpfrag' };

interface Session {
  readonly sessionId: string;
  readonly agentUrl: string;
  readonly viewerUrl: string;
  readonly tokens: { readonly agent: string; readonly viewer: string };
}

let server: TestServer;
let browser: TestBrowser;
beforeAll(async () => {
  [server, browser] = await Promise.all([
    startServer({ env: { MAX_SESSIONS_PER_WORKER: '8' } }),
    openBrowser(),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const tone = (seconds: number): Int16Array<ArrayBuffer> =>
  Int16Array.from({ length: seconds * 16_000 }, (_, at) => 9000 * Math.sin(at / 12));

async function newSession(options: object = {}): Promise<Session> {
  const { status, body } = await call(server, '/sessions', {
    faceId: await firstFace(server),
    ...options,
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body;
}

const openAgent = ({ tokens }: Session): Promise<WsClient> =>
  WsClient.open(server, tokens.agent, AGENT_PATH);

/** The next event of a type, from message `from` on. */
async function event(agent: WsClient, type: string, from = 0): Promise<any> {
  const limitMs = 10_000 * patience();
  const { text } = await agent.waitFor(`{"type":"${type}"`, { from, limitMs });
  return JSON.parse(text);
}

const order = (agent: WsClient, command: object): void => {
  agent.send(JSON.stringify(command));
};

/** A page of another origin that watches with the foreign client. */
async function watch({ viewerUrl, tokens }: Session, within = browser): Promise<Page> {
  const page = await within.newPage({ width: 300, height: 300 });
  const classic = FOREIGN_CLIENT.replaceAll('export class', 'class');
  await page.evaluate(`(() => { ${classic}; globalThis.WHEPClient = WHEPClient; })()`);
  await page.evaluate(
    async (url, token) => {
      const scope = globalThis as any;
      scope.pc = new RTCPeerConnection();
      scope.pc.addTransceiver('video', { direction: 'recvonly' });
      scope.pc.addTransceiver('audio', { direction: 'recvonly' });
      scope.whep = new scope.WHEPClient();
      await scope.whep.view(scope.pc, url, token);
    },
    viewerUrl.split('?')[0]!,
    tokens.viewer,
  );
  return page;
}

const frames = async (page: Page): Promise<number> =>
  (await statsOf(page)).video?.framesDecoded ?? 0;

/** Resolves when the page has decoded more frames than now. */
async function hasPicture(page: Page): Promise<void> {
  const before = await frames(page);
  await until(async () => (await frames(page)) > before + 10, 10_000 * patience(), 'picture');
}

test('a foreign WHEP client in Chromium watches; each side is cut, and the other goes on', async () => {
  const session = await newSession();
  const agent = await openAgent(session);
  assert.equal((await event(agent, 'session')).session_id, session.sessionId);
  assert.equal((await event(agent, 'viewer')).connected, false);

  const page = await watch(session);
  await event(agent, 'started');
  await agent.waitFor('{"type":"viewer","connected":true');
  await hasPicture(page);

  // An utterance to its end, and one that is cut off.
  agent.speak(tone(1));
  order(agent, { type: 'flush', id: 'first' });
  const { id, heardMs, interrupted } = await event(agent, 'flushed');
  assert.deepEqual([id, heardMs, interrupted], ['first', 1000, false]);
  await event(agent, 'silent');
  const from = agent.messages.length;
  agent.speak(tone(8));
  order(agent, { type: 'flush', id: 'second' });
  await event(agent, 'speaking', from);
  await sleep(500);
  order(agent, { type: 'interrupt' });
  const cut = await event(agent, 'interrupted', from);
  assert.ok(cut.heardMs >= 300 && cut.heardMs < 7000, `heard ${cut.heardMs} ms`);
  assert.equal(cut.heardMs + cut.droppedMs, 8000);
  const second = await event(agent, 'flushed', from);
  assert.deepEqual([second.id, second.heardMs, second.interrupted], ['second', cut.heardMs, true]);
  await event(agent, 'silent', from);

  // ICE restarts, and the picture goes on.
  await page.evaluate(() => (globalThis as any).whep.restart());
  await hasPicture(page);

  // The agent is cut off: the viewer sees on. It comes back, and speaks.
  await agent.close();
  await hasPicture(page);
  const again = await openAgent(session);
  assert.equal((await event(again, 'viewer')).connected, true);
  again.speak(tone(0.5));
  await event(again, 'speaking');

  // The viewer leaves, and comes back.
  await page.evaluate(() => (globalThis as any).whep.stop());
  await again.waitFor('{"type":"viewer","connected":false');
  await page.close();
  const before = again.messages.length;
  const back = await watch(session);
  await again.waitFor('{"type":"viewer","connected":true', { from: before });
  await hasPicture(back);
  await back.close();
  again.send('DONE');
  await event(again, 'stopped');
});

test('a page that is opened twice: the second one watches, and the first is told', async () => {
  const session = await newSession();
  const agent = await openAgent(session);
  const first = await watch(session);
  await hasPicture(first);
  const second = await watch(session);
  await hasPicture(second);
  const code = await first.evaluate(async (headers) => {
    const reply = await fetch((globalThis as any).whep.resourceURL, {
      method: 'PATCH',
      headers,
      body: 'a=end-of-candidates\r\n',
    });
    return `${reply.status} ${((await reply.json()) as { code: string }).code}`;
  }, FRAGMENT);
  assert.equal(code, '409 VIEWER_REPLACED');
  await Promise.all([first.close(), second.close()]);
  await agent.close();
});

test('Firefox: a foreign WHEP client, the element, and the page for OBS play', async (t) => {
  t.skip(FIREFOX === undefined, 'Firefox is not installed');
  // Firefox does not speak to loopback addresses: its media needs another one of the machine's.
  const address = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  t.skip(address === undefined, 'no network but loopback');
  const [firefox, near] = await Promise.all([
    startFirefox(),
    startServer({ env: { MEDIA_HOST: '0.0.0.0', ANNOUNCED_IPS: address! } }),
  ]);
  t.onTestFinished(async () => {
    await firefox.close();
    await near.stop();
  });
  const { body: session } = await call(near, '/sessions', { faceId: await firstFace(near) });
  const agent = await WsClient.open(near, session.tokens.agent, AGENT_PATH);
  const foreign = await watch(session, firefox);
  await hasPicture(foreign);
  // Each takes the place of the one before.
  const element = await firefox.newPage({ width: 600, height: 600 });
  await element.goto(`${near.url}/auto/room/none`);
  await element.evaluate(async (viewerUrl) => {
    const address = '/client/element.js';
    await import(address);
    const face = document.createElement('mouthpiece-avatar');
    face.setAttribute('viewer-url', viewerUrl);
    document.body.append(face);
  }, session.viewerUrl);
  const plays = `(video) => video.currentTime > 0.5 && video.videoWidth === 512 && !video.paused`;
  await element.waitForFunction(
    `(${plays})(document.querySelector('mouthpiece-avatar').shadowRoot.querySelector('video'))`,
  );
  const from = agent.messages.length;
  agent.speak(tone(0.5));
  order(agent, { type: 'flush', id: 'heard' });
  assert.equal((await event(agent, 'flushed', from)).heardMs, 500);
  const page = await firefox.newPage({ width: 600, height: 600 });
  await page.goto(`${near.url}/viewer#${session.tokens.viewer}`);
  await page.waitForFunction(`(${plays})(document.querySelector('video'))`);
  await element.waitForSelector('mouthpiece-avatar[state=ended]');
  agent.send('DONE');
  await event(agent, 'stopped', from);
  await page.waitForSelector('body[data-state=ended]');
});

test('a second WebRTC stack watches over the socket, hears of the speech, and cannot speak', async () => {
  const session = await newSession();
  const agent = await openAgent(session);
  let viewer = await WeriftPeer.connect(server, session.tokens.viewer);
  await agent.waitFor('{"type":"viewer","connected":true');
  viewer.socket.speak(tone(1));
  viewer.socket.send('SKIP');
  agent.speak(tone(0.4));
  await viewer.socket.waitFor('SPEAK');
  await viewer.socket.waitFor('SILENT');
  assert.equal(viewer.socket.words.filter((word) => word === 'SPEAK' || word === 'ACK').length, 1);

  // Its socket is lost, and it comes again with the same token.
  await viewer.socket.close();
  await viewer.connection.close();
  await agent.waitFor('{"type":"viewer","connected":false', { from: 3 });
  viewer = await WeriftPeer.connect(server, session.tokens.viewer);
  assert.ok(viewer.socket.words.includes('START'));

  // Commands: what the face shows, and what cannot be obeyed.
  const from = agent.messages.length;
  for (const command of [
    { type: 'emotion', emotion: 'happy' },
    { type: 'gaze', x: 0.5, y: 0 },
    { type: 'gesture', gesture: 'nod' },
    { type: 'mute', muted: true },
  ]) {
    order(agent, command);
  }
  order(agent, { type: 'gesture', gesture: 'wave' });
  assert.equal((await event(agent, 'rejected', from)).command, 'gesture');
  const faces = (await call(server, '/faces')).body as unknown as { id: string }[];
  const other = faces.at(-1)!.id;
  order(agent, { type: 'face', faceId: other });
  assert.equal((await event(agent, 'face', from)).faceId, other);
  order(agent, { type: 'face', faceId: 'nobody' });
  assert.equal((await event(agent, 'rejected', from + 2)).command, 'face');

  // The agent hangs up: the viewer is told.
  agent.send('DONE');
  await viewer.socket.waitFor('STOP');
  await viewer.connection.close();
});

test('an agent that connects twice stays; one that is away longer than its grace time ends it', async () => {
  const session = await newSession({ graceSeconds: 5 });
  const first = await openAgent(session);
  const agent = await openAgent(session);
  assert.equal((await event(first, 'stopped')).reason, 'taken_over');
  const viewer = await WeriftPeer.connect(server, session.tokens.viewer);
  await sleep(5500);
  agent.send('ping later');
  await event(agent, 'pong');
  await agent.close();
  await viewer.socket.waitFor('ERROR AGENT_LOST', { limitMs: 10_000 * patience() });
  await viewer.connection.close();
  const reply = await fetch(session.viewerUrl, { method: 'POST', headers: SDP, body: 'v=0' });
  assert.equal(reply.status, 404);
});

test('our own clients: an agent that is told what was heard, a viewer that comes back', async () => {
  const page = await browser.newPage({ width: 300, height: 300 });
  // Sockets that the test can cut: Node has them, the agent takes them from the global scope.
  const sockets: WebSocket[] = [];
  const Original = globalThis.WebSocket;
  globalThis.WebSocket = class extends Original {
    constructor(url: string | URL) {
      super(url);
      sockets.push(this);
    }
  };
  try {
    const session = await createSession({
      baseUrl: server.url,
      apiKey: server.apiKey,
      faceId: await firstFace(server),
    });
    const agent = await connectAgent(session);
    const events: string[] = [];
    for (const name of ['started', 'reconnecting', 'end'] as const) {
      agent.on(name, () => events.push(name));
    }
    const told = (name: string) => until(() => events.includes(name), 10_000 * patience(), name);
    assert.equal(agent.id, session.sessionId);
    assert.equal(agent.isWatched, false);

    // The element, with nothing but the URL of the viewer.
    await page.evaluate(
      async (url, script) => {
        await import(script);
        const element = document.createElement('mouthpiece-avatar') as any;
        const scope = globalThis as any;
        scope.ends = [];
        element.addEventListener('end', ({ detail }: any) => scope.ends.push(detail.reason));
        element.setAttribute('viewer-url', url);
        scope.element = document.body.appendChild(element);
      },
      session.viewerUrl,
      `${server.url}/client/element.js`,
    );
    await page.waitForSelector('mouthpiece-avatar[state=connected]');
    await told('started');
    await until(() => agent.isWatched, 10_000 * patience(), 'viewer');

    // 24 kHz, as voices give it; an utterance to its end, and one that is cut off.
    assert.equal(await agent.speak(tone(1.5), { rate: 24_000 }), true);
    const whole = await agent.flush();
    assert.ok(!whole.interrupted && Math.abs(whole.heardMs - 1000) <= 1, `${whole.heardMs} ms`);
    await until(() => agent.state === 'idle', 10_000 * patience(), 'silence');
    const isSpeaking = new Promise((resolve) => {
      agent.on('speaking', resolve);
    });
    void agent.speak(tone(8));
    await isSpeaking;
    const { heardMs, droppedMs } = await agent.interrupt();
    assert.ok(heardMs < 7000 && droppedMs > 0, `heard ${heardMs} ms, dropped ${droppedMs}`);

    // The network path of the viewer is lost: ICE restarts on the same peer connection.
    const restarted = await page.evaluate(async () => {
      const { viewer } = (globalThis as any).element;
      const { peer } = viewer;
      const ufrag = () => /ice-ufrag:(\S+)/.exec(peer.localDescription.sdp)![1];
      const before = ufrag();
      // What the browser would tell when nothing comes any more.
      Object.defineProperty(peer, 'connectionState', { value: 'failed', configurable: true });
      peer.onconnectionstatechange();
      delete peer.connectionState;
      while (viewer.state !== 'connected' || ufrag() === before) {
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
      return viewer.peer === peer;
    });
    assert.equal(restarted, true);

    // The agent's socket is lost: what waits for a reply is told, and it comes back by itself.
    const waiting = agent.flush('lost').catch(({ code }: { code: string }) => code);
    await agent.speak(tone(5));
    sockets.at(-1)!.close();
    assert.equal(await waiting, 'CONNECTION_LOST');
    await told('reconnecting');
    await agent.connected();
    assert.equal(await agent.speak(tone(0.2), { interrupt: true }), true);

    // Somebody else watches: the element is told, and does not come back.
    const other = await watch(session);
    await hasPicture(other);
    const endsWith = async (reason: string): Promise<void> => {
      const ends = async (): Promise<string[]> =>
        await page.evaluate(() => (globalThis as any).ends);
      await until(async () => (await ends()).includes(reason), 30_000 * patience(), reason);
    };
    await endsWith('taken_over');
    // The session ends: a viewer of ours is told so.
    await page.evaluate((url) => {
      (globalThis as any).element.setAttribute('viewer-url', `${url}&again`);
    }, session.viewerUrl);
    await page.waitForSelector('mouthpiece-avatar[state=connected]');
    await agent.finish();
    await told('end');
    await endsWith('over');
    await other.close();
    await page.close();
  } finally {
    globalThis.WebSocket = Original;
  }
});

test('what a viewer may not do is refused, and changes nothing', async () => {
  const session = await newSession();
  const agent = await openAgent(session);
  const page = await watch(session);
  await hasPicture(page);
  const post = (url: string, init: RequestInit) => fetch(url, { method: 'POST', ...init });
  const wrongToken = session.viewerUrl.replace(session.tokens.viewer, session.tokens.agent);
  const replies = await Promise.all([
    post(wrongToken, { headers: SDP, body: 'v=0' }),
    post(session.viewerUrl, { headers: SDP, body: 'v=0' }),
    post(session.viewerUrl, { body: '{}', headers: { 'content-type': 'application/json' } }),
    fetch(session.viewerUrl, { method: 'OPTIONS' }),
  ]);
  assert.deepEqual(
    replies.map(({ status }) => status),
    [401, 400, 415, 204],
  );
  const preflight = replies[3];
  assert.equal(preflight.headers.get('accept-post'), 'application/sdp');
  assert.match(preflight.headers.get('access-control-allow-headers')!, /authorization/);

  const { resource } = await page.evaluate(() => ({
    resource: String((globalThis as any).whep.resourceURL),
  }));
  const patch = (ifMatch: string | undefined, body: string) =>
    fetch(resource, {
      method: 'PATCH',
      headers: { ...FRAGMENT, ...(ifMatch !== undefined && { 'if-match': ifMatch }) },
      body,
    });
  const restart = 'a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n';
  const stale = await patch('"9"', 'a=end-of-candidates\r\n');
  assert.equal(stale.status, 412);
  assert.match(await stale.text(), /with the ETag of the last answer/);
  assert.equal((await patch(undefined, restart)).status, 428);
  assert.equal((await patch('"1"', restart)).status, 412);
  assert.equal((await fetch(`${resource}x`, { method: 'DELETE' })).status, 404);
  await hasPicture(page);

  // The agent's socket takes no other token.
  const stranger = await WsClient.open(server, session.tokens.viewer, AGENT_PATH);
  await stranger.waitFor('{"type":"error","code":"INVALID_SESSION_TOKEN"');
  await page.close();
  await agent.close();
});
