// Two real servers on one Redis: sessions are seen and ended from either, and those of a server that
// is killed are free at once.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { startRedis, type TestRedis } from '../front/redis-servers.ts';
import { patience } from '../harness/machine.ts';
import { call, createToken, startServer, type TestServer } from '../harness/server.ts';
import { sleep } from '../../src/base/time.ts';
import { WsClient } from '../harness/ws-client.ts';

const KEY = 'the key of the cluster test';
const SHARED = { BOOTSTRAP_API_KEY: KEY, SECRETS_KEY: 'c1'.repeat(32), REGION: 'here' };

let redis: TestRedis;
let first: TestServer;
let second: TestServer;
beforeAll(async () => {
  redis = await startRedis();
  const env = { ...SHARED, REDIS_URL: redis.url };
  [first, second] = await Promise.all([startServer({ env }), startServer({ env })]);
});
afterAll(async () => {
  await Promise.all([first.stop(), second.stop()]);
  await redis.close();
});

interface Listed {
  readonly id: string;
  readonly node: string;
}
const sessionsSeenBy = async (server: TestServer, filter = ''): Promise<Listed[]> =>
  (await call(server, `/cluster/sessions${filter}`)).body.sessions;

/** The id of the server that listens on this port. */
async function nodeIdOf(server: TestServer): Promise<string> {
  const { body } = await call(first, '/cluster/nodes');
  const found = body.nodes.find(({ url }: { url: string }) => url === server.url);
  assert.ok(found, JSON.stringify(body));
  return found.id;
}

test('every server lists all servers, and sees and ends the sessions of all', async () => {
  const { status, body } = await call(second, '/cluster/nodes');
  assert.equal(status, 200);
  assert.equal(body.nodes.length, 2);
  for (const node of body.nodes) {
    assert.equal(node.region, 'here');
    assert.equal(node.draining, false);
    assert.ok(node.room > 0 && node.workers === 1 && node.models.includes('rig'), node);
  }
  const client = await WsClient.open(first, await createToken(second));
  let listed: Listed[] = [];
  for (let tries = 0; tries < 200 && listed.length === 0; tries++) {
    await sleep(20);
    listed = await sessionsSeenBy(second);
  }
  assert.equal(listed.length, 1);
  const [{ id, node }] = listed as [Listed];
  assert.equal(node, await nodeIdOf(first));
  assert.equal((await sessionsSeenBy(second, `?node=${await nodeIdOf(second)}`)).length, 0);

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
  assert.deepEqual(await sessionsSeenBy(second), []);
});

test('the token of a session whose server is killed is taken by another within 8 seconds', async () => {
  const token = await createToken(first);
  const lost = await WsClient.open(second, token);
  for (let tries = 0; tries < 200 && (await sessionsSeenBy(first)).length === 0; tries++) {
    await sleep(20);
  }
  await sleep(6000); // a server must have lived for a while before it finds others dead
  const killedMs = performance.now();
  second.process.kill('SIGKILL');
  await lost.closed;
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
  console.info(`taken over ${Math.round(performance.now() - killedMs)} ms after the kill`);
  assert.equal((await call(first, '/cluster/nodes')).body.nodes.length, 1);
});
