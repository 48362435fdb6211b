// The port for operators: profiles and snapshots of threads, and audit lines.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, test } from 'vitest';
import type { Logger } from '../../../src/base/log.ts';
import { loadConfig } from '../../../src/config.ts';
import { debugRoutes } from '../../../src/front/api/debug.ts';
import { type HttpServer, startAdminServer } from '../../../src/front/http-server.ts';
import type { NamedThread } from '../../../src/jobs/job-pool.ts';
import { startTestFront, type TestFront } from '../harness.ts';

let front: TestFront;
let admin: Pick<HttpServer, 'url' | 'close'>;
let impatient: typeof admin;
let operatorKey: string;
const lines: Record<string, unknown>[] = [];
const workers: Worker[] = [];
const threads = (): NamedThread[] => [
  ...workers.map((worker) => ({ name: worker.threadName, worker })),
  ...front.services.jobThreads,
];
const keep = (fields: Record<string, unknown>): void => {
  lines.push(fields);
};
const log = { info: keep, warn: keep, error: keep, child: () => log } as unknown as Logger;
const start = (answerLimitMs?: number, port = 0) =>
  startAdminServer({
    config: loadConfig({}),
    port,
    routes: [...front.routes, ...debugRoutes(threads, answerLimitMs)],
    apiKeys: front.services.apiKeys,
    bodyBudget: front.bodyBudget,
    onRequest: () => {},
    onRefused: () => {},
    log,
  });
beforeAll(async () => {
  front = await startTestFront();
  admin = await start();
  impatient = await start(300);
  ({ key: operatorKey } = await front.services.apiKeys.create('op', 'operator', true));
});
afterAll(async () => {
  await Promise.all([admin.close(), impatient.close()]);
  await front.close();
});

const get = (path: string, key = operatorKey, method = 'GET', server = admin): Promise<Response> =>
  fetch(`${server.url}${path}`, { method, headers: { 'x-service-api-key': key } });

test('a port that is taken is refused with the names of its settings', async () => {
  await assert.rejects(
    start(undefined, Number(new URL(admin.url).port)),
    /^Error: Cannot listen on 127\.0\.0\.1:\d+: .* Set ADMIN_HOST and ADMIN_PORT\.$/,
  );
});

test('only operators get a profile', async () => {
  assert.equal((await get('/debug/cpu-profile', 'wrong')).status, 401);
  const refused = await get('/debug/cpu-profile', front.key);
  assert.equal(refused.status, 403);
  assert.equal(((await refused.json()) as { code: string }).code, 'OPERATOR_REQUIRED');
  assert.equal((await get('/cluster/nodes', front.key)).status, 403);
});

test('a CPU profile and a heap snapshot can be opened; one at a time', async () => {
  const [profile, second] = await Promise.all([
    get('/debug/cpu-profile?seconds=0.3'),
    get('/debug/cpu-profile?seconds=0.3'),
  ]);
  assert.deepEqual(
    [profile.status, second.status].toSorted((a, b) => a - b),
    [200, 409],
  );
  const made = (await (profile.ok ? profile : second).json()) as { nodes: unknown[] };
  assert.ok(made.nodes.length > 1);
  const snapshot = await get('/debug/heap-snapshot');
  assert.equal(snapshot.status, 200);
  assert.match((await snapshot.text()).slice(0, 100), /^{"snapshot":{"meta"/);
});

test('profile and snapshot of another thread, with an audit line; an unknown name is told', async () => {
  // Calls itself, so that V8 cannot inline it, which would hide it from the profile.
  const busy = `function findMe(depth) {
      if (depth > 0) { return findMe(depth - 1); }
      for (let end = Date.now() + 20; Date.now() < end; );
    }
    setInterval(findMe, 25, 3); globalThis.kept = Array(1000).fill('keptInThisThread');
    require('node:worker_threads').parentPort.postMessage('up');`;
  const worker = new Worker(busy, { eval: true, name: 'worker-0' });
  workers.push(worker);
  try {
    await once(worker, 'message');
    lines.length = 0;
    const profile = await get('/debug/cpu-profile?thread=worker-0&seconds=0.3');
    assert.equal(profile.status, 200);
    const { nodes } = (await profile.json()) as { nodes: { callFrame: object }[] };
    assert.match(JSON.stringify(nodes), /findMe/);
    const snapshot = await get('/debug/heap-snapshot?thread=worker-0');
    assert.equal(snapshot.status, 200);
    assert.match(await snapshot.text(), /keptInThisThread/);
    assert.deepEqual(
      lines.map(({ audit, thread }) => [audit, thread]),
      [
        ['debug.cpu-profile', 'worker-0'],
        ['debug.heap-snapshot', 'worker-0'],
      ],
    );
    const unknown = await get('/debug/cpu-profile?thread=worker-7');
    assert.equal(unknown.status, 422);
    assert.match(await unknown.text(), /main, worker-0/);
    // Gone before, amid or after its snapshot: told, and the process lives.
    const [late] = await Promise.all([
      get('/debug/heap-snapshot?thread=worker-0'),
      worker.terminate(),
    ]);
    assert.ok([200, 422, 503].includes(late.status), `${late.status}`);
    await late.text();
  } finally {
    workers.length = 0;
    await worker.terminate();
  }
});

test('the thread of a job has a profile and a snapshot while it works', async () => {
  const { bodyPool } = front.services;
  const chunks = [Buffer.from(`{"audio":"${'keptInTheJob'.repeat(200_000)}"}`)];
  const parse = (): Promise<unknown> =>
    bodyPool.run('audioBody', { chunks, fields: ['audio'] }, { timeoutMs: 60_000 });
  await parse();
  const unknown = await get('/debug/cpu-profile?thread=body-job');
  const [name] = /body-job-\d+/.exec(await unknown.text()) as string[];
  let isOver = false;
  const profiled = get(`/debug/cpu-profile?thread=${name}&seconds=0.5`).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await parse();
  }
  const profile = await profiled;
  assert.equal(profile.status, 200);
  assert.match(await profile.text(), /jobs\/parse-audio-body\.ts/);
  const snapshot = await get(`/debug/heap-snapshot?thread=${name}`);
  assert.equal(snapshot.status, 200);
  assert.match(await snapshot.text(), /parse-audio-body/);
});

test('a thread that does not answer is told, and the next request is served', async () => {
  const hangs = `const { parentPort } = require('node:worker_threads');
    parentPort.postMessage('up');
    require('node:child_process').execFileSync('sleep', ['2']);`;
  const worker = new Worker(hangs, { eval: true, name: 'worker-1' });
  workers.push(worker);
  try {
    await once(worker, 'message');
    const path = '/debug/heap-snapshot?thread=worker-1';
    const silent = await get(path, operatorKey, 'GET', impatient);
    assert.equal(silent.status, 503);
    assert.match(await silent.text(), /does not answer/);
    assert.equal(
      (await get('/debug/cpu-profile?seconds=0.1', operatorKey, 'GET', impatient)).status,
      200,
    );
  } finally {
    workers.length = 0;
    await worker.terminate();
  }
});

test('whoever leaves ends the profile', async () => {
  const leaves = fetch(`${admin.url}/debug/cpu-profile?seconds=60`, {
    headers: { 'x-service-api-key': operatorKey },
    signal: AbortSignal.timeout(200),
  });
  await assert.rejects(leaves);
  let next: Response;
  do {
    next = await get('/debug/cpu-profile?seconds=0.1');
  } while (next.status === 409);
  assert.equal(next.status, 200);
});

test('changes and refused keys have audit lines, without the key', async () => {
  lines.length = 0;
  assert.equal((await get('/auto/agents', 'a wrong key that is not logged')).status, 401);
  assert.equal((await get('/auto/agents', 'another one')).status, 401);
  const made = await fetch(`${admin.url}/auto/agent`, {
    method: 'POST',
    headers: { 'x-service-api-key': front.key, 'content-type': 'application/json' },
    body: JSON.stringify({ face_id: 'ava', name: 'n', prompt: 'p' }),
  });
  const { id } = (await made.json()) as { id: string };
  assert.equal((await get(`/auto/agent/${id}`, front.key, 'DELETE')).status, 204);
  const token = await fetch(`${admin.url}/auto/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey: front.key }),
  });
  assert.equal(token.status, 200);
  const audited = lines.filter((line) => 'audit' in line);
  assert.deepEqual(
    audited.map(({ audit, id: target }) => [audit, target]),
    [
      ['key.refused', undefined],
      ['agent.create', id],
      ['agent.delete', id],
      ['auto-token.create', undefined],
    ],
  );
  assert.equal(audited[1]!['owner'], 'owner-1');
  assert.equal(audited[3]!['owner'], 'owner-1', 'the key may come in the body');
  assert.ok(!JSON.stringify(lines).includes(front.key));
  assert.ok(!JSON.stringify(lines).includes('not logged'));
});
