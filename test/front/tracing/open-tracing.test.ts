// Tracing with a collector that is away, and of clients that do not want their requests sampled.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { openTracing } from '../../../src/front/tracing/open-tracing.ts';
import type { Logger } from '../../../src/base/log.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { monotonicMs } from '../../../src/base/time.ts';
import { until } from '../../harness/until.ts';
import { OtlpCollector } from '../../harness/otlp-collector.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentOf = (flags: string) => (name: string) =>
  name === 'traceparent' ? `00-${TRACE}-00f067aa0ba902b7-${flags}` : '';

async function open(url: string) {
  const lines: string[] = [];
  const warn = (fields: { url: string }, line: string) => lines.push(`${fields.url} ${line}`);
  const log = { warn } as unknown as Logger;
  const metrics = new Metrics();
  const tracing = await openTracing({ url, serverId: 'here', version: '1', metrics, log });
  return { tracing, metrics, lines };
}

test('a collector that is away costs spans and one line of the log, nothing else', async () => {
  process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = '200';
  const { tracing, metrics, lines } = await open('http://user:hunter2@127.0.0.1:1/v1/traces');
  for (let i = 0; i < 5000; i++) {
    tracing.request('POST', '/compose/token', parentOf('01')).end(200);
  }
  const failed = async () => (await metrics.render()).body.match(/outcome="failed"} (\d+)/)?.[1];
  await until(async () => Number(await failed()) > 0, 10_000, 'spans are given up');
  const startMs = monotonicMs();
  await tracing.close();
  assert.ok(monotonicMs() - startMs < 10_000, 'the end of the server does not wait for it');
  const told = lines.filter((line) => line.includes('takes no traces'));
  assert.equal(told.length, 1);
  assert.match(told[0]!, /^http:\/\/\[secret\]@127\.0\.0\.1:1\/v1\/traces /);
});

test('what its client does not sample is not sent, and says so to others', async () => {
  const collector = await OtlpCollector.start();
  const { tracing } = await open(`${collector.url}/v1/traces`);
  const silent = tracing.request('GET', '/a', parentOf('00'));
  const traced = tracing.request('GET', '/b', parentOf('01'));
  const begun = tracing.request('GET', '/c', () => 'no header');
  for (const span of [silent, traced, begun]) {
    span.end(503);
  }
  await tracing.close();
  assert.deepEqual(collector.spans.map(({ name }) => name).sort(), ['GET /b', 'GET /c']);
  assert.match(silent.headers['traceparent']!, new RegExp(`^00-${TRACE}-.*-00$`));
  assert.match(traced.headers['traceparent']!, new RegExp(`^00-${TRACE}-.*-01$`));
  assert.doesNotMatch(begun.headers['traceparent']!, new RegExp(TRACE));
  await collector.stop();
});
