// Redis stopped and started under a running front: quick refusals meanwhile, everything as before
// afterwards.
import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, test } from 'vitest';
import { patience } from '../harness/machine.ts';
import { sleep } from '../../src/base/time.ts';
import { startTestFront, type TestFront } from './harness.ts';
import { startRedis, type TestRedis } from './redis-servers.ts';

let redis: TestRedis;
let server: TestFront;
const refused: string[] = [];
beforeAll(async () => {
  redis = await startRedis();
  server = await startTestFront({
    onTokenRefused: (code) => {
      refused.push(code);
    },
    redisUrl: redis.url,
  });
});
afterAll(async () => {
  await server.close();
  await redis.close();
});

test('while Redis is unreachable requests are refused quickly, in the format of each route', async () => {
  const { session_token: token } = (await (
    await server.call('/compose/token', { json: { faceId: 'ava' } })
  ).json()) as { session_token: string };
  await redis.stop();
  await sleep(20);
  for (const [target, init] of [
    ['/compose/token', { json: { faceId: 'ava' } }],
    ['/history/sessions', {}],
    ['/faces', {}],
    ['/auto/agents', {}],
  ] as const) {
    const startMs = performance.now();
    const reply = await server.call(target, init);
    assert.ok(
      performance.now() - startMs < 2500 * patience(),
      `${target} took ${performance.now() - startMs} ms`,
    );
    assert.equal(
      reply.status,
      target === '/compose/token' ? 429 : 500,
      'known clients crash on a 5xx of /compose/token',
    );
    const body = (await reply.json()) as Record<string, unknown>;
    assert.equal(body['code'], 'STORE_UNAVAILABLE');
    if (target !== '/compose/token') {
      continue;
    }
    assert.deepEqual([body['session_token'], body['detail']], ['FAIL TOKEN', 'UNKNOWN_ERROR']);
    assert.match(reply.headers.get('retry-after') ?? 'none', /^[1-9]\d*$/, 'when to come back');
    assert.deepEqual(refused, ['STORE_UNAVAILABLE'], 'counted under its own code, for the alert');
  }
  assert.equal((await server.call('/healthz', { key: undefined })).status, 200);
  const ready = await server.call('/readyz', { key: undefined });
  assert.equal(ready.status, 503);
  assert.equal(((await ready.json()) as { checks: { redis: boolean } }).checks.redis, false);

  const back = new Promise<void>((resolve) => {
    server.store.store.onReady(resolve);
  });
  await redis.start();
  await back;
  assert.equal((await server.call('/compose/token', { json: { faceId: 'ava' } })).status, 200);
  assert.ok(await server.services.tokens.find(token), 'tokens of before still work');
  assert.equal((await server.call('/readyz', { key: undefined })).status, 200);
});

test('a Redis that hangs with its connections open is not ready, and is again when it answers', async () => {
  const { store } = server.store;
  const becomes = async (isReady: boolean): Promise<void> => {
    for (let i = 0; i < 200 && store.ready !== isReady; i++) {
      await sleep(50);
    }
    assert.equal(store.ready, isReady, 'without a request, as at a scrape');
  };
  const operator = new Redis(redis.url, { disableClientInfo: true });
  try {
    await becomes(true);
    await operator.call('CLIENT', 'PAUSE', '6000', 'ALL');
    await becomes(false);
    assert.equal(store.client.status, 'ready');
    await becomes(true);
  } finally {
    operator.disconnect();
  }
});
