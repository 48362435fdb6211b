// What is traced: requests, the set-up of sessions, and utterances. Without a collector there is no
// Tracing, and nothing here runs.
import type { LipsTimes } from '../../link/messages.ts';

/** The context of a span as W3C Trace Context headers: `traceparent`, and `tracestate` if any. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** The context that a client sent with its WebSocket; undefined: none. */
export function traceOf(request: { header(name: string): string }): TraceHeaders | undefined {
  const traceparent = request.header('traceparent');
  return traceparent === '' ? undefined : { traceparent, tracestate: request.header('tracestate') };
}

/** What a trace says of a session from its beginning. */
export interface TracedSession {
  readonly id: string;
  readonly kind: string;
  readonly faceId: string;
  readonly worker: number;
}

/** The span of one HTTP request. */
export interface RequestSpan {
  /** For spans that the request causes, here or on another server. */
  readonly headers: TraceHeaders;
  /** @param status that was sent; 499: the client left first */
  end(status: number): void;
}

/** The spans of one session. All times are monotonic. */
export interface SessionSpan {
  /** A step of its set-up. The step `first_frame` ends the set-up. */
  step(name: string, fromMs: number, toMs: number): void;
  /** Another utterance moved the lips. */
  spoke(times: LipsTimes): void;
  /** It is over. @param reason of EndReason */
  end(reason: string): void;
}

/** Writes spans. Never throws, and never waits. */
export interface Tracing {
  /**
   * @param parent headers of the request
   * @param route path template
   */
  request(method: string, route: string, parent: (name: string) => string): RequestSpan;
  /**
   * @param parent of the request for the token; undefined: it was not traced
   * @param requestedMs when the token was made, or the session was asked for; monotonic
   */
  session(
    session: TracedSession,
    parent: TraceHeaders | undefined,
    requestedMs: number,
  ): SessionSpan;
}
