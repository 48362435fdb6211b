// What the body of a reply holds is closed, however the reply ends.
import assert from 'node:assert/strict';
import http from 'node:http';
import { afterAll, beforeAll, test } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import { stream } from '../../../src/front/http/reply.ts';
import { route } from '../../../src/front/http/route.ts';
import { serve, type TestHttp } from './server.ts';

let server: TestHttp;
const state = { opened: 0, closed: 0 };

async function* chunks(): AsyncGenerator<string> {
  state.opened++;
  try {
    for (let i = 0; i < 100; i++) {
      yield await Promise.resolve('x'.repeat(100_000));
    }
  } finally {
    state.closed++;
  }
}

beforeAll(async () => {
  const base = { tag: 't', summary: 's', responses: {}, auth: 'none', method: 'GET' } as const;
  const reply = () => stream('text/plain', chunks());
  server = await serve([
    route({ ...base, path: '/stream', handler: reply }),
    route({ ...base, path: '/late', timeoutMs: 30, handler: () => sleep(100).then(reply) }),
  ]);
});
afterAll(() => server.close());

const closed = async (): Promise<void> => {
  for (let i = 0; i < 200 && state.closed < state.opened; i++) {
    await sleep(5);
  }
  assert.ok(state.opened > 0);
  assert.equal(state.closed, state.opened);
};

test('a stream whose reader leaves is closed', async () => {
  const reading = await new Promise<http.IncomingMessage>((resolve) => {
    http.get(`${server.url}/stream`, resolve);
  });
  reading.destroy();
  await closed();
});

test('a stream that was requested with HEAD is closed', async () => {
  assert.equal((await fetch(`${server.url}/stream`, { method: 'HEAD' })).status, 200);
  await closed();
});

test('a stream that is returned after the timeout of its handler is closed', async () => {
  const before = state.opened;
  assert.equal((await fetch(`${server.url}/late`)).status, 500);
  for (let i = 0; i < 100 && state.opened === before; i++) {
    await sleep(5);
  }
  await closed();
});
