// The port for operators: profile and snapshot of the main thread, and audit lines.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import type { Logger } from '../../../src/base/log.ts';
import { loadConfig } from '../../../src/config.ts';
import { debugRoutes } from '../../../src/front/api/debug.ts';
import { type HttpServer, startAdminServer } from '../../../src/front/http-server.ts';
import { startTestFront, type TestFront } from '../harness.ts';

let front: TestFront;
let admin: Pick<HttpServer, 'url' | 'close'>;
let operatorKey: string;
const lines: Record<string, unknown>[] = [];
beforeAll(async () => {
  front = await startTestFront();
  const keep = (fields: Record<string, unknown>): void => {
    lines.push(fields);
  };
  const log = { info: keep, warn: keep, error: keep, child: () => log } as unknown as Logger;
  admin = await startAdminServer({
    config: loadConfig({}),
    port: 0,
    routes: [...front.routes, ...debugRoutes()],
    apiKeys: front.services.apiKeys,
    bodyBudget: front.bodyBudget,
    onRequest: () => {},
    onRefused: () => {},
    log,
  });
  ({ key: operatorKey } = await front.services.apiKeys.create('op', 'operator', true));
});
afterAll(async () => {
  await admin.close();
  await front.close();
});

const get = (path: string, key = operatorKey, method = 'GET'): Promise<Response> =>
  fetch(`${admin.url}${path}`, { method, headers: { 'x-service-api-key': key } });

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
  const audited = lines.filter((line) => 'audit' in line);
  assert.deepEqual(
    audited.map(({ audit, id: target }) => [audit, target]),
    [
      ['key.refused', undefined],
      ['agent.create', id],
      ['agent.delete', id],
    ],
  );
  assert.equal(audited[1]!['owner'], 'owner-1');
  assert.ok(!JSON.stringify(lines).includes(front.key));
  assert.ok(!JSON.stringify(lines).includes('not logged'));
});
