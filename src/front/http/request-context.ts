// One request while it is served: a copy of its head, its limits, its body reader and its response
// state.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { ServiceError } from '../../base/errors.ts';
import { hostOf } from '../../base/hosts.ts';
import { newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { peerOf } from './addresses.ts';
import { checkContentType } from './body.ts';
import { bodyTooLargeMessage, RequestBody } from './body-reader.ts';
import type { ClientLimits, Refusal } from './client-limits.ts';
import type { RequestSpan } from '../tracing/tracing.ts';
import type { HttpContext } from './http-context.ts';
import type { ResponseState } from './response-state.ts';
import { DEPRECATED_SINCE, type Route, takesToken } from './route.ts';
import type { Found } from './router.ts';

/** One request while it is served. */
export interface RequestContext {
  readonly res: HttpResponse;
  /** The client's X-Request-Id, or a new UUID. */
  readonly id: string;
  /** Upper case. */
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** Address of the client, or of its proxy when the client is unknown. */
  readonly ip: string;
  /** Address whose limits apply; undefined when none apply. */
  readonly client: string | undefined;
  /** The API key as sent; '' when absent. */
  readonly key: string;
  /** Ends the request for the limits of its address. */
  readonly leave: () => void;
  /**
   * Set when the client is over a limit, or its Host header is malformed: refuse the request and
   * read no body.
   */
  readonly refusal: ServiceError | undefined;
  readonly found: Found;
  /** The matched route; undefined when none matched. */
  readonly route: Route | undefined;
  readonly log: Logger;
  /** Undefined: the request is not traced. */
  readonly span: RequestSpan | undefined;
  readonly state: ResponseState;
  readonly abort: AbortController;
  /** Undefined when the route takes no body. */
  readonly body: RequestBody | undefined;
  /** Why the body is refused, when the headers alone show it. */
  readonly bodyRefusal: ServiceError | undefined;
  /** Headers of every reply to this request. */
  readonly baseHeaders: Record<string, string>;
  /** Scheme and authority under which the client reached this server; '' with a `refusal`. */
  readonly origin: string;
}

/**
 * Copies the request and attaches the reader of its body. Call it before anything is awaited: the
 * HttpRequest is valid only during the callback of uWebSockets.js, and body chunks go only to a
 * handler that is attached in it.
 */
export function openRequest(
  context: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
): RequestContext {
  const abort = new AbortController();
  const state: ResponseState = { aborted: false, signal: abort.signal };
  res.onAborted(() => {
    state.aborted = true;
    abort.abort();
  });
  const headers = new Map<string, string>();
  req.forEach((name, value) => {
    headers.set(name, value);
  });
  const method = req.getMethod().toUpperCase();
  const path = req.getUrl();
  const found = context.router.find(method, path);
  const route = found.kind === 'route' ? found.match.route : undefined;
  const id = requestId(headers.get('x-request-id'));
  const peer = peerOf(res);
  const client = context.limits.clientOf(peer, headers.get('x-forwarded-for') ?? '');
  const key = apiKeyOf(headers, context.apiKeyHeaders);
  const origin = context.publicUrl ?? requestOrigin(headers, context.secure);
  const entry = enter(context.limits, client, route, key);
  const request = {
    leave: entry.leave,
    refusal: entry.refusal ?? (origin === undefined ? new ServiceError('INVALID_HOST') : undefined),
    client,
    key,
    res,
    id,
    method,
    path,
    rawQuery: req.getQuery() ?? '',
    headers,
    found,
    route,
    log: context.log,
    span: startSpan(context, method, route, headers),
    state,
    abort,
    ip: client ?? peer,
    origin: origin ?? '',
    baseHeaders: baseHeaders(id, found),
  };
  // Attach no reader for a request that is refused: uWebSockets.js then drops the body.
  if (!route?.body || request.refusal) {
    return { ...request, body: undefined, bodyRefusal: undefined };
  }
  const bodyRefusal = checkBodyHeaders(route.body, headers);
  const body = new RequestBody(res, state, {
    limitBytes: route.body.limitBytes,
    budget: context.bodyBudget,
    pace: context.bodyPace,
    unwanted: bodyRefusal !== undefined,
    onRefused: (reason: Refusal): void => {
      context.limits.countRefusal(reason);
    },
  });
  return { ...request, body, bodyRefusal };
}

/** Requests with a key are traced, and those whose client traces them itself. */
function startSpan(
  { tracing }: HttpContext,
  method: string,
  route: Route | undefined,
  headers: ReadonlyMap<string, string>,
): RequestSpan | undefined {
  return route !== undefined && (route.auth !== 'none' || headers.has('traceparent'))
    ? tracing?.request(method, route.path, (name) => headers.get(name) ?? '')
    : undefined;
}

/** Counts the request against the limits of its address. */
function enter(
  limits: ClientLimits,
  client: string | undefined,
  route: Route | undefined,
  key: string,
): Pick<RequestContext, 'leave' | 'refusal'> {
  let leave = (): void => {};
  try {
    leave = limits.enter(client);
    if (route !== undefined && route.auth !== 'none') {
      limits.checkKeyAttempt(client, key);
    } else {
      limits.countOpenRequest(client);
    }
    if (route !== undefined && takesToken(route)) {
      limits.checkKeyAttempt(client);
    }
    return { leave, refusal: undefined };
  } catch (error) {
    return { leave, refusal: error as ServiceError };
  }
}

const requestId = (offered: string | undefined): string =>
  offered && /^[\w.:-]{1,64}$/.test(offered) ? offered : newUuid();

/**
 * Scheme and host under which a client reached this server, as its headers tell. Links are made with
 * it. Undefined: the Host header is malformed, and RFC 9112 section 3.2 has the request refused.
 */
export function requestOrigin(
  headers: ReadonlyMap<string, string>,
  secure: boolean,
): string | undefined {
  const forwarded = headers.get('x-forwarded-proto');
  const isKnown = forwarded === 'https' || forwarded === 'http';
  const scheme = isKnown ? forwarded : secure ? 'https' : 'http';
  const host = headers.get('host') ?? 'localhost';
  return hostOf(host) === undefined ? undefined : `${scheme}://${host}`;
}

function apiKeyOf(headers: ReadonlyMap<string, string>, names: readonly string[]): string {
  for (const name of names) {
    const value = headers.get(name);
    if (value) {
      return name === 'authorization' ? value.replace(/^Bearer\s+/i, '') : value;
    }
  }
  return '';
}

/** Checks Content-Length and Content-Type, before any of the body is read. */
function checkBodyHeaders(
  spec: NonNullable<Route['body']>,
  headers: ReadonlyMap<string, string>,
): ServiceError | undefined {
  const { limitBytes } = spec;
  const declaredBytes = Number(headers.get('content-length') ?? 0);
  if (declaredBytes > limitBytes) {
    return new ServiceError('BODY_TOO_LARGE', bodyTooLargeMessage(limitBytes));
  }
  try {
    checkContentType(spec, headers.get('content-type') ?? '');
    return undefined;
  } catch (error) {
    return error as ServiceError;
  }
}

/** Headers of every reply: request id, CORS, and the notices of a deprecated route (RFC 9745). */
function baseHeaders(id: string, found: Found): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': id,
    'x-content-type-options': 'nosniff',
    'access-control-allow-origin': '*',
    'access-control-expose-headers':
      'x-request-id, retry-after, etag, link, location, deprecation, allow, content-range',
  };
  if (found.kind !== 'route') {
    return headers;
  }
  const { route, alias, params } = found.match;
  const successor = alias
    ? route.path.replace(/\{(\w+)\}/g, (_all, name: string) =>
        encodeURIComponent(params[name] ?? ''),
      )
    : route.successor;
  if (alias || route.deprecated) {
    headers['deprecation'] = DEPRECATED_SINCE;
  }
  if (successor) {
    headers['link'] = `<${successor}>; rel="successor-version"`;
  }
  return headers;
}
