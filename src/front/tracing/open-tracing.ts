// Traces by OpenTelemetry: spans in batches to a collector (OTLP over HTTP, in JSON). The packages
// are loaded only when a collector is configured.
import type * as OpenTelemetry from '@opentelemetry/api';
import type { Context, Span, Tracer } from '@opentelemetry/api';
import type { ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { after } from '../../base/guard.ts';
import { maskUserInfo } from '../../base/hosts.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { LipsTimes } from '../../link/messages.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { RequestSpan, SessionSpan, TracedSession, TraceHeaders, Tracing } from './tracing.ts';

/** What the tracing is built from. */
export interface TracingOptions {
  /** Where OTLP requests go, the path included. */
  readonly url: string;
  readonly serverId: string;
  readonly version: string;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Tracing that can be closed. */
export interface OpenTracing extends Tracing {
  /** Sends what waits, for CLOSE_MS at most. */
  close(): Promise<void>;
}

const CLOSE_MS = 2000;
/** Before a failing collector is mentioned in the log again. */
const QUIET_MS = 60_000;

type Api = typeof OpenTelemetry;

/**
 * Loads the SDK. It reads its other variables itself: OTEL_EXPORTER_OTLP_HEADERS and _TIMEOUT,
 * OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
 */
export async function openTracing(options: TracingOptions): Promise<OpenTracing> {
  const [api, core, resources, sdk, otlp] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
  ]);
  const { url, version, serverId } = options;
  const exporter = new otlp.OTLPTraceExporter({ url });
  const counted = countExports(exporter, core.ExportResultCode.SUCCESS, options);
  const provider = new sdk.BasicTracerProvider({
    resource: resources
      .resourceFromAttributes({
        'service.name': 'mouthpiece',
        'service.version': version,
        'service.instance.id': serverId,
      })
      .merge(resources.detectResources({ detectors: [resources.envDetector] })),
    spanProcessors: [new sdk.BatchSpanProcessor(counted)],
  });
  const propagator = new core.W3CTraceContextPropagator();
  const contexts: Contexts = {
    parse: (read) =>
      propagator.extract(api.ROOT_CONTEXT, read, {
        keys: () => ['traceparent', 'tracestate'],
        get: (from, name) => from(name) || undefined,
      }),
    write: (context) => {
      const headers: Record<string, string> = {};
      propagator.inject(context, headers, api.defaultTextMapSetter);
      return headers;
    },
  };
  const tracer = provider.getTracer('mouthpiece', version);
  return {
    request: (method, route, parent) => {
      const name = `${method} ${route}`;
      return openRequest(api, tracer, contexts, { name, method, route, parent });
    },
    session: (session, parent, requestedMs) => {
      const context = contexts.parse((name) => parent?.[name] ?? '');
      return new TracedSessionSpan(api, tracer, context, session, requestedMs);
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        const timer = after(CLOSE_MS, 'the last traces', resolve);
        void provider
          .shutdown()
          .catch(() => {})
          .then(() => {
            clearTimeout(timer);
            resolve();
          });
      });
    },
  };
}

/** W3C Trace Context, in and out. */
interface Contexts {
  parse(read: (name: string) => string): Context;
  write(context: Context): TraceHeaders;
}

/** Counts the spans, and writes one line when the collector fails. */
function countExports(
  exporter: SpanExporter,
  success: ExportResultCode,
  { metrics, log, url }: TracingOptions,
): SpanExporter {
  const exported = metrics.counter('mouthpiece_trace_spans_total', { outcome: 'exported' });
  const failed = metrics.counter('mouthpiece_trace_spans_total', { outcome: 'failed' });
  let toldMs = -Infinity;
  return {
    export: (spans: ReadableSpan[], done) => {
      exporter.export(spans, (result) => {
        if (result.code === success) {
          exported.add(spans.length);
        } else {
          failed.add(spans.length);
          if (monotonicMs() - toldMs > QUIET_MS) {
            toldMs = monotonicMs();
            log.warn(
              { err: result.error, url: maskUserInfo(url) },
              'the OpenTelemetry collector takes no traces',
            );
          }
        }
        done(result);
      });
    },
    forceFlush: async () => {
      await exporter.forceFlush?.();
    },
    shutdown: () => exporter.shutdown(),
  };
}

function openRequest(
  api: Api,
  tracer: Tracer,
  contexts: Contexts,
  request: {
    readonly name: string;
    readonly method: string;
    readonly route: string;
    readonly parent: (name: string) => string;
  },
): RequestSpan {
  const { name, method, route, parent } = request;
  const attributes = { 'http.request.method': method, 'http.route': route };
  const context = contexts.parse(parent);
  const span = tracer.startSpan(name, { kind: api.SpanKind.SERVER, attributes }, context);
  return {
    headers: contexts.write(api.trace.setSpan(context, span)),
    end: (status) => {
      span.setAttribute('http.response.status_code', status);
      if (status >= 500) {
        span.setStatus({ code: api.SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}

/** The span of a session, with one below it for its set-up and one for each utterance. */
class TracedSessionSpan implements SessionSpan {
  readonly #api: Api;
  readonly #tracer: Tracer;
  /** One for all spans of the session: their times fit together. */
  readonly #wallOffsetMs = wallMs() - monotonicMs();
  readonly #session: Span;
  readonly #context: Context;
  #setup: Span | undefined;
  readonly #setupContext: Context;

  constructor(
    api: Api,
    tracer: Tracer,
    parent: Context,
    session: TracedSession,
    requestedMs: number,
  ) {
    this.#api = api;
    this.#tracer = tracer;
    const startTime = this.#wallOf(requestedMs);
    this.#session = tracer.startSpan(
      'session',
      {
        startTime,
        attributes: {
          'session.id': session.id,
          'mouthpiece.session.kind': session.kind,
          'mouthpiece.face.id': session.faceId,
          'mouthpiece.worker': session.worker,
        },
      },
      parent,
    );
    this.#context = api.trace.setSpan(parent, this.#session);
    this.#setup = tracer.startSpan('session set-up', { startTime }, this.#context);
    this.#setupContext = api.trace.setSpan(this.#context, this.#setup);
  }

  step(name: string, fromMs: number, toMs: number): void {
    // Later peers of the session have steps too.
    this.#add(name, this.#setup === undefined ? this.#context : this.#setupContext, fromMs, toMs);
    if (name === 'first_frame') {
      this.#setup?.end(this.#wallOf(toMs));
      this.#setup = undefined;
    }
  }

  spoke({ arrivedMs, startMs, drawnMs, codedMs, sentMs }: LipsTimes): void {
    const utterance = this.#tracer.startSpan(
      'speech to lips',
      { startTime: this.#wallOf(arrivedMs) },
      this.#context,
    );
    const context = this.#api.trace.setSpan(this.#context, utterance);
    this.#add('wait and model', context, arrivedMs, startMs);
    this.#add('render', context, startMs, drawnMs);
    this.#add('encode', context, drawnMs, codedMs);
    this.#add('packetize and send', context, codedMs, sentMs);
    utterance.end(this.#wallOf(sentMs));
  }

  end(reason: string): void {
    const error = { code: this.#api.SpanStatusCode.ERROR, message: reason };
    this.#setup?.setStatus(error);
    this.#setup?.end();
    this.#session.setAttribute('mouthpiece.session.end_reason', reason);
    this.#session.end();
  }

  #wallOf(atMs: number): number {
    return this.#wallOffsetMs + atMs;
  }

  #add(name: string, context: Context, fromMs: number, toMs: number): void {
    const span = this.#tracer.startSpan(name, { startTime: this.#wallOf(fromMs) }, context);
    span.end(this.#wallOf(Math.max(fromMs, toMs)));
  }
}
