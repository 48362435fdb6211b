// How many REST requests a second, and how long each takes, with a given number in flight;
// optionally with a long history to page through.
import http from 'node:http';
import https from 'node:https';
import { quantile, tailQuantile } from '../report/stats.ts';
import {
  type Bound,
  type Context,
  type Outcome,
  type Scenario,
  type Target,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import { spansOf } from '../course.ts';
import { firstFace } from './setup.ts';

/** Answers are told over time in spans of this length. */
const SPAN_MS = 500;

interface Call {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
  readonly expect: number;
}
interface Result {
  readonly name: string;
  readonly perSecond: number;
  readonly times: readonly number[];
  /** When each answer came, as performance.now(). */
  readonly atMs: readonly number[];
  readonly wrong: number;
}

/** One request over a kept connection. @returns its status and duration. */
function request(
  target: Target,
  agent: http.Agent,
  { method, path, body }: Call,
): Promise<{ status: number; ms: number }> {
  const startMs = performance.now();
  const { request: send } = target.url.startsWith('https') ? https : http;
  return new Promise((resolve, reject) => {
    const sent = send(
      target.url + path,
      {
        method,
        agent,
        timeout: 10_000,
        headers: {
          'x-service-api-key': target.apiKey,
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      },
      (response) => {
        response.resume();
        response.once('end', () => {
          resolve({ status: response.statusCode ?? 0, ms: performance.now() - startMs });
        });
      },
    );
    sent.once('timeout', () => {
      sent.destroy(new Error('no answer within 10 s'));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

async function measure(
  target: Target,
  call: Call,
  seconds: number,
  connections: number,
): Promise<Result> {
  const agent = new (target.url.startsWith('https') ? https : http).Agent({
    keepAlive: true,
    maxSockets: connections,
  });
  const times: number[] = [];
  const atMs: number[] = [];
  let wrong = 0;
  const startMs = performance.now();
  const connection = async (): Promise<void> => {
    while (performance.now() - startMs < seconds * 1000) {
      const { status, ms } = await request(target, agent, call).catch(() => ({
        status: 0,
        ms: Number.NaN,
      }));
      if (status === call.expect) {
        times.push(ms);
        atMs.push(performance.now());
      } else {
        wrong++;
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  agent.destroy();
  return {
    name: call.name,
    perSecond: times.length / ((performance.now() - startMs) / 1000),
    times,
    atMs,
    wrong,
  };
}

/** Answers and their times in each half second. */
function recordOverTime(context: Context, { name, times, atMs }: Result): void {
  const spans = spansOf(atMs, times, SPAN_MS);
  for (const [index, { at, values }] of spans.entries()) {
    if (index > 0 && index < spans.length - 1) {
      context.record(`${name}: answers`, (values.length * 1000) / SPAN_MS, '/s', at);
    }
    context.record(`${name}: p50`, quantile(values, 0.5), 'ms', at);
    context.record(`${name}: p99`, quantile(values, 0.99), 'ms', at);
  }
}

async function run(context: Context): Promise<Outcome> {
  const server = await context.server({ WORKERS: '1' });
  const faceId = await firstFace(server);
  const calls: Call[] = [
    {
      name: 'POST /compose/token',
      method: 'POST',
      path: '/compose/token',
      body: JSON.stringify({ faceId }),
      expect: 200,
    },
    { name: 'GET /compose/ice', method: 'GET', path: '/compose/ice', expect: 200 },
    { name: 'GET /history/sessions', method: 'GET', path: '/history/sessions', expect: 200 },
    { name: 'GET /faces', method: 'GET', path: '/faces', expect: 200 },
    { name: 'GET /healthz', method: 'GET', path: '/healthz', expect: 200 },
    {
      name: 'POST /compose/token, refused',
      method: 'POST',
      path: '/compose/token',
      body: '{"faceId":5}',
      expect: 422,
    },
  ];
  const results: Result[] = [];
  for (const call of calls) {
    const result = await measure(
      server,
      call,
      number(context.options, 'seconds'),
      number(context.options, 'connections'),
    );
    results.push(result);
    recordOverTime(context, result);
    context.progress(
      `${call.name.padEnd(30)} ${result.perSecond.toFixed(0)} /s  ` +
        `p50 ${quantile(result.times, 0.5).toFixed(1)} ms  ` +
        `p99 ${tailQuantile(result.times, 0.99).toFixed(1)} ` +
        `ms  ${result.wrong === 0 ? '' : `${result.wrong} wrong answers`}`,
    );
  }
  const token = results[0]!;
  const bounds: Bound[] = [
    ...results.map(({ name, wrong }) => atMost(`${name}: wrong answers`, wrong, 0)),
    atMost(
      'POST /compose/token, p99',
      tailQuantile(token.times, 0.99),
      number(context.options, 'p99'),
      'ms',
    ),
    atLeast('POST /compose/token', token.perSecond, number(context.options, 'rate'), '/s'),
  ];
  return {
    bounds,
    figures: Object.fromEntries(
      results.flatMap(({ name, perSecond, times }) => [
        [`${name} per second`, perSecond],
        [`${name} p50 ms`, quantile(times, 0.5)],
        [`${name} p99 ms`, tailQuantile(times, 0.99)],
      ]),
    ),
    tables: [
      {
        title: `${context.options['connections']} connections`,
        columns: ['', 'per second', 'p50 ms', 'p90 ms', 'p99 ms', 'wrong'],
        rows: results.map(({ name, perSecond, times, wrong }) => [
          name,
          perSecond,
          quantile(times, 0.5),
          tailQuantile(times, 0.9),
          tailQuantile(times, 0.99),
          wrong,
        ]),
      },
    ],
    plots: [
      {
        kind: 'distribution',
        title: 'Time to answer',
        x: 'ms',
        samples: results.map(({ name, times }) => ({ name, values: thinned(times) })),
      },
    ],
    notes: [
      "The load comes from the bench's own process over kept connections: on a small " +
        'machine it competes with the server.',
    ],
  };
}

/** At most 400 values of the distribution: enough to draw. */
function thinned(values: readonly number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length <= 400
    ? sorted
    : Array.from(
        { length: 400 },
        (_, index) => sorted[Math.floor((index * (sorted.length - 1)) / 399)]!,
      );
}

export const rest: Scenario = {
  name: 'rest',
  about: 'Throughput and latency of the REST routes.',
  options: { seconds: 10, connections: 16, p99: 50, rate: 500 },
  small: { seconds: 0.5, connections: 4, p99: 1000, rate: 10 },
  run,
};
