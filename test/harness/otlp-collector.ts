// The receiving end of OpenTelemetry: takes traces as OTLP over HTTP in JSON, as collectors do.
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** A span as it arrived. Times in ms since the Unix epoch. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** `service.instance.id` of its server. */
  readonly instance: string;
}

const valueOf = (value: Record<string, unknown>): unknown => Object.values(value)[0];
const recordOf = (attributes: readonly { key: string; value: any }[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

/** Listens on a free port of loopback. */
export class OtlpCollector {
  readonly spans: ReceivedSpan[] = [];
  readonly #server: http.Server;

  private constructor() {
    this.#server = http.createServer((request, response) => {
      void json(request).then((body) => {
        this.#take(body);
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
  }

  static async start(): Promise<OtlpCollector> {
    const collector = new OtlpCollector();
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  traced(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  hasTraced(name: string, traceId: string): boolean {
    return this.traced(traceId).some((span) => span.name === name);
  }

  #take(body: any): void {
    for (const { resource, scopeSpans } of body.resourceSpans) {
      const instance = String(recordOf(resource.attributes)['service.instance.id']);
      for (const span of scopeSpans.flatMap(({ spans }: { spans: any[] }) => spans)) {
        this.spans.push({
          name: span.name,
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId ?? '',
          startMs: Number(span.startTimeUnixNano) / 1e6,
          endMs: Number(span.endTimeUnixNano) / 1e6,
          attributes: recordOf(span.attributes),
          instance,
        });
      }
    }
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/**
 * Checks the trace of a session that another server ran than the one that gave the token.
 * @param callerId the span of the client
 * @param sentMs when its one utterance was sent
 */
export function checkTrace(spans: readonly ReceivedSpan[], callerId: string, sentMs: number): void {
  const named = (name: string): ReceivedSpan => {
    const found = spans.filter((span) => span.name === name);
    assert.equal(found.length, 1, `${name}: ${spans.map((span) => span.name).join(', ')}`);
    return found[0]!;
  };
  const request = named('POST /compose/token');
  assert.equal(request.parentSpanId, callerId);
  assert.equal(request.attributes['http.response.status_code'], 200);
  const session = named('session');
  assert.equal(session.parentSpanId, request.spanId);
  assert.notEqual(session.instance, request.instance, 'the other server ran it');
  assert.equal(session.attributes['mouthpiece.session.end_reason'], 'client_closed');

  const setup = named('session set-up');
  assert.equal(setup.parentSpanId, session.spanId);
  const steps = ['socket', 'offer', 'answer', 'ice', 'dtls', 'first_frame'].map(named);
  for (const [index, step] of steps.entries()) {
    assert.equal(step.parentSpanId, setup.spanId, step.name);
    assert.ok(step.startMs >= (steps[index - 1]?.startMs ?? setup.startMs) - 2, step.name);
  }
  assert.ok(Math.abs(steps.at(-1)!.endMs - setup.endMs) < 2);

  const lips = named('speech to lips');
  assert.equal(lips.parentSpanId, session.spanId);
  assert.ok(lips.startMs >= sentMs - 2 && lips.endMs > lips.startMs);
  const parts = ['wait and model', 'render', 'encode', 'packetize and send'].map(named);
  assert.ok(parts.every(({ parentSpanId }) => parentSpanId === lips.spanId));
  const wholeMs = parts.reduce((sum, part) => sum + part.endMs - part.startMs, 0);
  assert.ok(Math.abs(wholeMs - (lips.endMs - lips.startMs)) < 1, 'the parts are the whole');
}
