// Exemplars of the request metrics: they lead from a slow bucket to the log lines of one request.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { systemRoutes } from '../../../src/front/api/system.ts';
import { observeHttp } from '../../../src/front/front-metrics.ts';
import { empty } from '../../../src/front/http/reply.ts';
import { route } from '../../../src/front/http/route.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { serve } from './server.ts';

const OPEN_METRICS = { accept: 'application/openmetrics-text; version=1.0.0' };

test('an OpenMetrics scrape names the request id beside the duration of a request', async () => {
  const metrics = new Metrics();
  const probe = route({
    method: 'GET',
    path: '/probe',
    tag: 'T',
    auth: 'none',
    summary: '',
    responses: {},
    handler: () => empty(204),
  });
  const system = systemRoutes({
    readiness: {},
    storage: () => true,
    room: () => 1,
    metrics: (accept) => metrics.render(accept),
  });
  const server = await serve([probe, ...system], [], {}, { onRequest: observeHttp(metrics) });
  try {
    await fetch(`${server.url}/probe`, { headers: { 'x-request-id': 'call-7' } });
    const generated = (await fetch(`${server.url}/nowhere`)).headers.get('x-request-id')!;
    const scraped = await (await fetch(`${server.url}/metrics`, { headers: OPEN_METRICS })).text();
    const buckets = scraped
      .split('\n')
      .filter((line) => line.startsWith('mouthpiece_http_request_duration_seconds_bucket'));
    const exemplars = buckets.filter((line) => line.includes(' # {'));
    assert.equal(exemplars.filter((line) => line.includes('route="/probe"')).length, 1);
    assert.match(exemplars.join('\n'), /route="\/probe".* # \{request_id="call-7"\} [\d.e-]+ \d+/);
    assert.match(
      exemplars.join('\n'),
      new RegExp(`route="none".* # \\{request_id="${generated}"\\}`),
    );
    const plain = await (await fetch(`${server.url}/metrics`)).text();
    assert.doesNotMatch(plain, / # \{/, 'the text format 0.0.4 has no exemplars');
  } finally {
    await server.close();
  }
});
