// Two real servers on one Redis and one S3: sessions are seen and ended from either, a full server passes
// clients on to the other one, files are shared, and the sessions and jobs of a server that is killed
// are taken by the other.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { WebSocket } from 'ws';
import { LightPeer, type PeerKind } from '../../bench/peers/light-peer.ts';
import { startRedis, type TestRedis } from '../front/redis-servers.ts';
import { patience } from '../harness/machine.ts';
import { call, createToken, startServer, type TestServer } from '../harness/server.ts';
import { InterruptedJobs } from '../harness/interrupted-jobs.ts';
import { makeFace } from '../harness/make-face.ts';
import { OtlpCollector, checkTrace } from '../harness/otlp-collector.ts';
import { S3TestServer } from '../harness/s3-server.ts';
import { until as untilHolds } from '../harness/until.ts';
import { sleep } from '../../src/base/time.ts';
import { WeriftPeer } from '../harness/werift-peer.ts';
import { WsClient } from '../harness/ws-client.ts';

const KEY = 'the key of the cluster test';
const SHARED = {
  BOOTSTRAP_API_KEY: KEY,
  SECRETS_KEY: 'c1'.repeat(32),
  REGION: 'here',
  RATE_LIMIT_RPS: '10000',
  LIVEKIT_HOSTS: '127.0.0.1',
};

let redis: TestRedis;
let s3: S3TestServer;
let collector: OtlpCollector;
let first: TestServer;
let second: TestServer;
/** The port of the second one for operators. */
let admin: Pick<TestServer, 'url' | 'apiKey'>;
beforeAll(async () => {
  [redis, s3, collector] = await Promise.all([
    startRedis(),
    S3TestServer.start(),
    OtlpCollector.start(),
  ]);
  const tracing = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '200' };
  const env = { ...SHARED, ...tracing, ...s3.env, S3_PREFIX: 'mouthpiece/', REDIS_URL: redis.url };
  [first, second] = await Promise.all([
    startServer({ env: { ...env, MAX_SESSIONS_PER_WORKER: '1', S3_DOWNLOADS: 'redirect' } }),
    startServer({ env: { ...env, ADMIN_PORT: '0', LOG_LEVEL: 'info' } }),
  ]);
  admin = { url: logged(second, 'url')['url'], apiKey: second.apiKey };
});
afterAll(async () => {
  await Promise.all([first.stop(), second.stop()]);
  await Promise.all([redis.close(), s3.stop(), collector.stop()]);
});

const until = (what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> =>
  untilHolds(isTrue, 10_000 * patience(), what);

/** The first line of a server's log with this field. */
function logged(server: TestServer, field: string): any {
  const found = server.logs
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .find((line) => field in line && !('ready' in line));
  assert.ok(found, server.logs.join('\n'));
  return found;
}

interface Listed {
  readonly id: string;
  readonly node: string;
}
const sessionsSeenBy = async (
  server: Pick<TestServer, 'url' | 'apiKey'>,
  filter = '',
): Promise<Listed[]> => (await call(server, `/cluster/sessions${filter}`)).body.sessions;

/** The id of the server that listens on this port. */
async function nodeIdOf(server: TestServer): Promise<string> {
  const { body } = await call(first, '/cluster/nodes');
  const found = body.nodes.find(({ url }: { url: string }) => url === server.url);
  assert.ok(found, JSON.stringify(body));
  return found.id;
}

test('ADMIN_PORT takes what is for operators from PORT; the settings are logged, masked', async () => {
  for (const route of ['/metrics', '/cluster/nodes']) {
    assert.equal((await call(second, route)).status, 404, route);
    assert.equal((await call(admin, route)).status, 200, route);
  }
  assert.equal((await call(admin, '/readyz')).status, 200);
  assert.equal((await call(admin, '/compose/ice')).status, 404);
  const profile = await call(admin, '/debug/cpu-profile?thread=worker-0&seconds=0.2');
  assert.ok(profile.body.nodes.length > 0);
  const snapshot = await call(admin, '/debug/heap-snapshot?thread=worker-0');
  assert.ok(snapshot.body.strings.includes('FrameScheduler'));
  const { config } = logged(second, 'config');
  assert.equal(config.ADMIN_PORT, 0);
  assert.deepEqual([config.SECRETS_KEY, config.REDIS_URL], ['[secret]', '[secret]']);
  assert.ok(!second.logs.slice(0, 50).join('').includes(SHARED.SECRETS_KEY));
});

test('every server lists all servers, and sees and ends the sessions of all', async () => {
  const { status, body } = await call(admin, '/cluster/nodes');
  assert.equal(status, 200);
  assert.equal(body.nodes.length, 2);
  for (const node of body.nodes) {
    assert.equal(node.region, 'here');
    assert.equal(node.draining, false);
    assert.ok(node.room > 0 && node.workers === 1 && node.models.includes('rig'), node);
  }
  const client = await WsClient.open(first, await createToken(second));
  let listed: Listed[] = [];
  await until('it is listed', async () => (listed = await sessionsSeenBy(admin)).length === 1);
  const [{ id, node }] = listed as [Listed];
  assert.equal(node, await nodeIdOf(first));
  assert.equal((await sessionsSeenBy(admin, `?node=${await nodeIdOf(second)}`)).length, 0);

  const stats = await call(second, `/sessions/${id}/stats`);
  assert.equal(stats.status, 200, JSON.stringify(stats.body));
  assert.equal(stats.body.sessionId, id);
  assert.equal((await call(second, `/sessions/${id}x/stats`)).status, 404);

  const ended = await call(second, `/sessions/${id}`, undefined, { method: 'DELETE' });
  assert.equal(ended.status, 204);
  await client.waitFor('STOP deleted');
  await client.closed;
  assert.equal(
    (await call(second, `/sessions/${id}`, undefined, { method: 'DELETE' })).status,
    404,
  );
  assert.deepEqual(await sessionsSeenBy(admin), []);
  assert.match(second.logs.join(''), /"audit":"session\.delete"/);
});

/** A second of sound. */
const sine = Int16Array.from({ length: 16_000 }, (_sample, i) => 8000 * Math.sin(i / 10));
const connect = (kind: PeerKind = 'p2p'): Promise<LightPeer> =>
  LightPeer.connect({ target: first, codec: 'vp8', faceId: 'ava', kind });

test('a full server passes a client on, whose media comes from the other one', async () => {
  const local = await connect();
  const ready = await call(first, '/readyz');
  assert.deepEqual([ready.status, ready.body.full], [200, true]);
  assert.equal((await call(first, '/readyz?full=503')).status, 503);
  await until('the other one announced its room', async () =>
    (await call(first, '/cluster/nodes')).body.nodes.every(
      ({ url, room }: { url: string; room: number }) => (room === 0) === (url === first.url),
    ),
  );
  const relayed = await connect();
  const listed = await sessionsSeenBy(first);
  const nodeOf = (id: string): string | undefined => listed.find((found) => found.id === id)?.node;
  assert.equal(nodeOf(local.sessionId), await nodeIdOf(first));
  assert.equal(nodeOf(relayed.sessionId), await nodeIdOf(second));
  const { frames } = relayed.figures;
  await until('its pictures come', () => relayed.figures.frames > frames + 30);
  const utterance = await relayed.speak(sine, 'burst');
  await until('it speaks', () => utterance.speakMs !== undefined);
  assert.match(
    (await call(first, '/metrics')).body,
    /mouthpiece_relayed_sessions 1\b[^]*outcome="opened"} 1\b/,
  );
  // A LiveKit client too: its room is at the other one, and it joins through this one.
  const inRoom = await connect('livekit');
  await until('its pictures come', () => inRoom.figures.frames > 30);
  const inside = (await sessionsSeenBy(first)).find(({ id }) => id === inRoom.sessionId);
  assert.equal(inside?.node, await nodeIdOf(second));
  assert.match((await call(first, '/metrics')).body, /mouthpiece_relayed_sessions 3\b/);
  const spoken = await inRoom.speak(sine, 'burst');
  await until('it speaks', () => spoken.speakMs !== undefined);
  await inRoom.close();
  await relayed.close();
  await until('the other server ends it', async () => (await sessionsSeenBy(first)).length === 1);
  assert.match((await call(first, '/metrics')).body, /mouthpiece_relayed_sessions 0\b/);
  await local.close();
  await until('none is left', async () => (await sessionsSeenBy(first)).length === 0);
});

test('one trace from the request for a token to the lips, over both servers', async () => {
  const occupant = await connect();
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const ours = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: 'us=1' };
  const body = { faceId: 'ava' };
  const granted = await call(first, '/compose/token', body, { headers: ours });
  const peer = await WeriftPeer.connect(first, granted.body.session_token);
  const sentMs = Date.now();
  peer.socket.speak(sine);
  await peer.socket.waitFor('SPEAK');
  await peer.socket.waitFor('SILENT');
  await peer.close();
  await until('the session is traced', () => collector.hasTraced('session', traceId));
  checkTrace(collector.traced(traceId), '00f067aa0ba902b7', sentMs);
  assert.match((await call(admin, '/metrics')).body, /trace_spans_total{outcome="exported"} [1-9]/);
  await occupant.close();
  await until('none is left', async () => (await sessionsSeenBy(first)).length === 0);
});

test('POST /sessions at a full server: the other opens it, both sides come through this one', async () => {
  const occupant = await connect();
  await until('the others know that it is full', async () =>
    (await call(first, '/cluster/nodes')).body.nodes.every(
      ({ url, room }: { url: string; room: number }) => (room === 0) === (url === first.url),
    ),
  );
  const opened = await call(first, '/sessions', { faceId: 'ava' });
  assert.equal(opened.status, 201, JSON.stringify(opened.body));
  const { sessionId, agentUrl, viewerUrl, tokens } = opened.body;
  assert.ok(agentUrl.startsWith(first.url.replace('http', 'ws')), agentUrl);
  assert.ok(viewerUrl.startsWith(first.url), viewerUrl);
  const listed = await sessionsSeenBy(first);
  assert.equal(listed.find(({ id }) => id === sessionId)?.node, await nodeIdOf(second));

  const agent = await WsClient.open(first, tokens.agent, '/sessions/agent');
  await agent.waitFor('{"type":"session"');
  const viewer = await WeriftPeer.connect(first, tokens.viewer);
  await agent.waitFor('{"type":"viewer","connected":true');
  await until('its pictures come', () => viewer.video.packets.length > 100);
  agent.speak(sine);
  await viewer.socket.waitFor('SPEAK');
  await agent.waitFor('{"type":"speaking"');

  // Over HTTP: the offer of another viewer, its candidates, and its end.
  const sdp = { 'content-type': 'application/sdp' };
  const offer = viewer.offerSdp;
  const watched = await fetch(viewerUrl, { method: 'POST', headers: sdp, body: offer });
  assert.equal(watched.status, 201, await watched.clone().text());
  assert.match(await watched.text(), /^v=0[^]*a=fingerprint/);
  await viewer.socket.waitFor('STOP taken_over');
  const peer = new URL(watched.headers.get('location')!, first.url);
  const fragment = { 'content-type': 'application/trickle-ice-sdpfrag' };
  const patched = await fetch(peer, {
    method: 'PATCH',
    headers: { ...fragment, 'if-match': '"9"' },
    body: 'a=end-of-candidates\r\n',
  });
  assert.equal(patched.status, 412, 'If-Match is passed on');
  assert.equal((await fetch(peer, { method: 'DELETE' })).status, 200);
  const wrong = viewerUrl.replace(tokens.viewer, tokens.agent);
  assert.equal((await fetch(wrong, { method: 'POST', headers: sdp, body: offer })).status, 401);
  for (const side of [tokens.viewer, `${sessionId}.${'a'.repeat(43)}`]) {
    const stranger = await WsClient.open(first, side, '/sessions/agent');
    await stranger.waitFor('{"type":"error","code":"INVALID_SESSION_TOKEN"');
  }

  // An avatar in a room of LiveKit is sent by the other one, too: it finds nobody at this address.
  const join = await call(first, '/integrations/livekit/agents', {
    session_token: await createToken(first),
    livekit_token: 'none',
    livekit_url: 'ws://127.0.0.1:1',
  });
  assert.deepEqual([join.status, join.body.code], [400, 'ROOM_JOIN_FAILED']);

  agent.send('DONE');
  await agent.waitFor('{"type":"stopped"');
  assert.equal((await fetch(viewerUrl, { method: 'POST', headers: sdp, body: offer })).status, 404);
  await viewer.connection.close();
  await occupant.close();
  await until('none is left', async () => (await sessionsSeenBy(first)).length === 0);
});

test('a ticket that no server issued is refused', async () => {
  const socket = new WebSocket(
    `${second.url.replace('http', 'ws')}/compose/webrtc/p2p?session_token=${await createToken(first)}`,
    { headers: { 'x-mouthpiece-relay': `${Date.now()}.${'a'.repeat(16)}.${'b'.repeat(43)}` } },
  );
  const status = await new Promise((resolve) => {
    socket.once('unexpected-response', (_request, response) => {
      resolve(response.statusCode);
    });
    socket.on('error', () => {});
  });
  assert.equal(status, 401);
});

test('a static video is on all servers: one passes it on, the other redirects to S3', async () => {
  const made = await call(second, '/static/audio', {
    faceId: 'ava',
    audioBase64: Buffer.alloc(32_000).toString('base64'),
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const { id } = made.body;
  const statusSeen = async (): Promise<string> =>
    (await call(first, `/static/status?id=${id}`)).body.status;
  await until('it is rendered', async () => (await statusSeen()) === 'completed');
  const get = (server: TestServer, file: string, range = 'bytes=0-'): Promise<Response> =>
    fetch(`${server.url}/static/${file}`, { redirect: 'manual', headers: { range } });
  for (const file of [`mp4/${id}/output.mp4`, `hls/${id}/segment-0000.m4s`]) {
    const passed = await get(second, file);
    assert.equal(passed.status, 206, file);
    const redirected = await get(first, file);
    assert.equal(redirected.status, 302, file);
    const location = redirected.headers.get('location')!;
    assert.ok(location.startsWith(s3.url), location);
    const [bytes, linked] = await Promise.all([
      passed.bytes(),
      fetch(location).then((r) => r.bytes()),
    ]);
    assert.ok(bytes.length > 100 && Buffer.compare(bytes, linked) === 0, file);
  }
  // Players resolve the names in a playlist against its URL.
  assert.equal((await get(first, `hls/${id}/output.m3u8`)).status, 206);
});

/** Opens a session with a face, and hears it speak. */
async function speaks(server: TestServer, faceId: string): Promise<LightPeer> {
  const peer = await LightPeer.connect({ target: server, codec: 'vp8', faceId });
  const utterance = await peer.speak(sine, 'burst');
  await until('it speaks', () => utterance.speakMs !== undefined);
  return peer;
}

test('a face made on one server speaks on the other, and both bear that S3 is away', async () => {
  const made = await makeFace(second);
  assert.equal(made.status, 202, JSON.stringify(made.body));
  const { id } = made.body;
  const statusOf = async (faceId: string): Promise<string> =>
    (await call(first, `/faces/${faceId}`)).body.status;
  await until('it is made', async () => (await statusOf(id)) === 'completed');
  // The one that was asked begins at once; the other looks for jobs every two seconds.
  const madeMs = performance.now();
  const running = await speaks(first, id);
  const spokeMs = performance.now() - madeMs;
  console.info(`a new face speaks on the other server after ${Math.round(spokeMs)} ms`);
  assert.ok(spokeMs < 1000 * patience(), `${Math.round(spokeMs)} ms`);
  assert.ok(s3.requests.some((request) => request.includes(`/mouthpiece/faces/${id}/asset.face`)));
  const preview = `/faces/${id}/preview`;
  const whole = await call(first, preview);
  const etag = whole.headers.get('etag')!;
  const part = await call(first, preview, undefined, { headers: { range: 'bytes=0-1' } });
  const known = await call(first, preview, undefined, { headers: { 'if-none-match': etag } });
  assert.deepEqual([whole.status, part.status, known.status], [200, 206, 304]);
  assert.equal(part.headers.get('content-length'), '2');
  const token = await createToken(second, { faceId: id });

  await s3.goAway();
  const refused = await makeFace(second);
  assert.deepEqual([refused.status, refused.body.code], [503, 'STORAGE_UNAVAILABLE']);
  assert.ok(Number(refused.after) > 0);
  await until('the server knows', async () => {
    const { status, body } = await call(second, '/readyz');
    return status === 200 && body.ready && body.checks.storage === false;
  });
  assert.equal((await call(second, '/readyz?storage=503')).status, 503);
  const { body: metrics } = await call(admin, '/metrics');
  assert.match(metrics, /mouthpiece_storage_up 0\b/);
  assert.match(metrics, /mouthpiece_storage_errors_total{operation="put"} [1-9]/);
  assert.equal(await statusOf(id), 'completed');
  const unknownHere = await WsClient.open(second, token);
  await unknownHere.waitFor('ERROR STORAGE_UNAVAILABLE');
  const { frames } = running.figures;
  await until('a running session goes on', () => running.figures.frames > frames + 30);
  await running.close();
  await (await speaks(first, id)).close();

  await s3.comeBack();
  await until('both know', async () => {
    const all = await Promise.all([first, second].map((server) => call(server, '/readyz')));
    return all.every(({ body }) => body.checks.storage);
  });
  await (await speaks(second, id)).close();
  const copies = async (): Promise<number> =>
    Number(
      /^mouthpiece_storage_cache_bytes (\S+)$/m.exec((await call(admin, '/metrics')).body)?.[1],
    );
  const held = await copies();
  assert.ok(held > 100_000, 'a copy of the face');
  const gone = await call(first, `/faces/${id}`, undefined, { method: 'DELETE' });
  assert.equal(gone.status, 204);
  await until('the other has no copy', async () => (await copies()) < held - 100_000);
  const late = await call(second, '/compose/token', { faceId: id });
  assert.deepEqual([late.status, late.body.code], [400, 'INVALID_FACE_ID']);
  assert.equal((await call(first, preview)).status, 404);
  await until('none is left', async () => (await sessionsSeenBy(first)).length === 0);
});

test('the sessions and jobs of a server that is killed are taken by another', async () => {
  const token = await createToken(first);
  const lost = await WsClient.open(second, token);
  const local = await connect();
  const relayed = await connect();
  await until('all run', async () => (await sessionsSeenBy(first)).length === 3);
  await sleep(4000); // a server must have lived for a while before it finds others dead
  const dead = await nodeIdOf(second);
  const jobs = await InterruptedJobs.begin(second, dead, redis.url);
  const killedMs = performance.now();
  second.process.kill('SIGKILL');
  const jobsTaken = jobs.takenFrom(dead);
  await lost.closed;
  await until('the relayed session is told', () => relayed.figures.state === 'over');
  assert.match(relayed.figures.ending ?? '', /^ERROR WORKER_LOST/);
  await until('the other server is gone', async () => {
    const { body } = await call(first, '/cluster/nodes');
    return body.nodes.length === 1;
  });
  const knownMs = performance.now();
  const refused = await call(first, '/compose/token', { faceId: 'ava' });
  assert.deepEqual([refused.status, refused.body.code], [429, 'SERVER_OVERLOADED']);
  await local.close();
  for (;;) {
    const again = await WsClient.open(first, token);
    // What comes first: a refusal, or the pong of the session.
    again.send('ping mine');
    await Promise.race([again.waitFor('pong', { limitMs: 30_000 }), again.closed]).catch(() => {});
    if (again.messages.some(({ text }) => text.startsWith('pong'))) {
      await again.close();
      break;
    }
    assert.match(again.messages[0]!.text, /^ERROR SESSION_IN_USE/);
    assert.ok(performance.now() - killedMs < 8000 * patience(), 'not taken over in time');
    await sleep(100);
  }
  const sessionTakenMs = performance.now();
  const jobsTakenMs = await jobsTaken;
  for (const takenMs of [sessionTakenMs, jobsTakenMs]) {
    const lateMs = Math.round(takenMs - knownMs);
    assert.ok(lateMs < 2000 * patience(), `taken ${lateMs} ms after the death was known`);
  }
  const doneMs = await jobs.done(first);
  const since = (ms: number): string => `${((ms - killedMs) / 1000).toFixed(1)} s`;
  console.info(
    `killed; death known after ${since(knownMs)}, session taken after ${since(sessionTakenMs)}, ` +
      `video and face taken after ${since(jobsTakenMs)}, done after ${since(doneMs)}`,
  );
});
