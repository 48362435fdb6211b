// The scenarios of the bench that ask the front for more than the workers, small; and a server
// elsewhere.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { type TestContext, test } from 'vitest';
import { toHtml } from '../../bench/report/html.ts';
import { runScenario } from '../../bench/run.ts';
import { capacity } from '../../bench/scenarios/capacity.ts';
import { churn } from '../../bench/scenarios/churn.ts';
import { cluster } from '../../bench/scenarios/cluster.ts';
import { load } from '../../bench/scenarios/load.ts';
import { rest } from '../../bench/scenarios/rest.ts';
import type { Target } from '../../bench/scenario.ts';
import { type TestServer, startServer } from '../harness/server.ts';
import { broken, small } from './small.ts';

small(rest, { 'POST /compose/token per second': [10, 1e6] }, (run) => {
  assert.deepEqual(broken(run, /wrong answers/), []);
});
// Three sessions that speak; what a busy machine makes late is not lost.
small(
  load,
  { sessions: [1, 20], utterances: [1, 60], setUpP50Ms: [20, 20_000], framesPerSecond: [5, 40] },
  (run) => {
    assert.deepEqual(broken(run, /failed or lost/), []);
    assert.equal(run.outcome.load?.generators.length, 1);
  },
);
small(cluster, {
  relayedPingP50Ms: [0.05, 200],
  relayCpuPercent: [-20, 50],
  redisCores: [0.001, 50],
  commandsPerSecond: [500, 2500],
  noticeMs: [3900, 20_000],
  claimableMs: [3900, 30_000],
});

/** A proxy in front of the server that passes all on but /metrics, as operators do. */
async function elsewhere(t: TestContext, server: TestServer): Promise<Target> {
  const proxy = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    client.on('data', (data) => {
      if (data.toString('latin1', 0, 13) === 'GET /metrics ') {
        client.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
      } else {
        upstream.write(data);
      }
    });
    upstream.on('data', (data) => client.write(data));
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('close', () => other.destroy()).on('error', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.onTestFinished(() => {
    proxy.close();
  });
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    apiKey: server.apiKey,
  };
}

test('a server elsewhere: what can be seen from outside is measured, what cannot is named', async (t) => {
  const server = await startServer({ env: { MAX_WORKER_LOAD: '1', RATE_LIMIT_RPS: '10000' } });
  t.onTestFinished(async () => {
    await server.stop();
  });
  const target = await elsewhere(t, server);
  for (const [scenario, seen, unseen, options] of [
    [churn, 'setUpP50Ms', 'heapKbPerConnect', { connects: 4, warmUp: 1 }],
    [capacity, 'sessionsPerCore', 'ratioToBareEncode', {}],
  ] as const) {
    const run = await runScenario(scenario, {
      options: { ...scenario.small, ...options },
      target,
    });
    assert.ok(
      run.outcome.figures[seen]! > 0,
      `${scenario.name}: ${seen} is ${run.outcome.figures[seen]}`,
    );
    assert.ok(Number.isNaN(run.outcome.figures[unseen]));
    assert.match(
      run.outcome.notes.join('\n'),
      new RegExp(`Not to be known from outside: .*\\b${unseen}\\b`),
    );
    assert.deepEqual(
      run.outcome.bounds.filter(({ value }) => Number.isNaN(value)),
      [],
      'nothing is judged that was not seen',
    );
    const html = toHtml(run);
    assert.match(html, /server at http:\/\/127/);
    assert.doesNotMatch(html, /undefined|NaN/);
  }
});
