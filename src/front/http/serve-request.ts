// One request from its first byte to its reply: match, authenticate, read, validate, handle, answer.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { after } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { soon } from '../../base/guard.ts';
import { newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs } from '../../base/time.ts';
import { peerOf } from './addresses.ts';
import { checkContentType, parseJson } from './body.ts';
import { copyOf } from './copy.ts';
import { parseMultipart } from './multipart.ts';
import type { BodyBudget } from './body-budget.ts';
import type { ClientLimits, Refusal } from './client-limits.ts';
import type { Chunk } from './body-blocks.ts';
import { RequestBody, tooLarge, type BodyPace } from './body-reader.ts';
import {
  DEPRECATED_SINCE,
  dropBody,
  empty,
  errorReply,
  json,
  writeReply,
  type Reply,
  type WireState,
} from './reply.ts';
import type { ApiRequest, Caller, HttpMethod, Route } from './route.ts';
import type { Found, Router } from './router.ts';
import { check, ValidationError, type ValidationIssue } from './validate.ts';

export interface HttpContext {
  readonly router: Router;
  readonly log: Logger;
  /** Finds who sent this key and counts the request against its rate. Throws INVALID_API_KEY, RATE_LIMITED or STORE_UNAVAILABLE. */
  authenticate(key: string): Promise<Caller>;
  /** Lower-case header names that may carry the API key, the first that is present counts. */
  readonly apiKeyHeaders: readonly string[];
  readonly limits: ClientLimits;
  readonly bodyBudget: BodyBudget;
  readonly bodyPace: BodyPace;
  readonly secure: boolean;
  /** Origin under which clients reach us, if it is known. */
  readonly publicUrl?: string | undefined;
  onRequest(route: string, method: string, status: number, durationMs: number): void;
}

const NOBODY: Caller = Object.freeze({ ownerId: '', keyId: '', keyName: '' });
const HANDLER_TIMEOUT_MS = 15_000;
/** When to come back after a failure of ours that a route tells as a refusal: Redis is reconnected to within a second. */
const FAILURE_RETRY_SECONDS = '2';

/** Serves one request to its end. Never throws. */
export async function serveRequest(
  context: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
): Promise<void> {
  const startMs = monotonicMs();
  const exchange = open(context, res, req);
  const { found, log } = exchange;
  let reply: Reply;
  try {
    if (exchange.overLimit) {
      throw exchange.overLimit;
    }
    reply =
      found.kind === 'route'
        ? await serveRoute(context, exchange, found.match.route)
        : serveNoRoute(exchange);
  } catch (error) {
    reply = refusalOf(error, found.kind === 'route' ? found.match.route : undefined, exchange);
  }
  const status = await send(exchange, reply).catch((error: unknown) => {
    log.error({ err: error, requestId: exchange.id }, 'a reply could not be written');
    // Later: this may run within a read of this connection, which uWebSockets.js then goes on parsing.
    soon('closing a broken reply', () => {
      if (!exchange.state.aborted) {
        res.close();
      }
    });
    return 500;
  });
  const label =
    found.kind === 'route' ? (found.match.route.metricLabel ?? found.match.route.path) : 'none';
  exchange.leave();
  context.onRequest(label, exchange.method, status, monotonicMs() - startMs);
}

interface RequestContext {
  readonly res: HttpResponse;
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly ip: string;
  /** For whom it counts; undefined: it has no limits. */
  readonly client: string | undefined;
  readonly key: string;
  /** Ends it, for the client's limits. */
  readonly leave: () => void;
  /** Why nothing is done for it. */
  readonly overLimit: ServiceError | undefined;
  readonly found: Found;
  readonly log: Logger;
  readonly state: WireState;
  readonly abort: AbortController;
  /** Of routes that take one. */
  readonly body: RequestBody | undefined;
  /** Why its body is not wanted, known from its head. */
  readonly refusal: ServiceError | undefined;
  readonly baseHeaders: Record<string, string>;
  readonly origin: string;
}

/** Copies all that the stack-allocated request holds, and attaches the body's reader: both are possible only now. */
function open(context: HttpContext, res: HttpResponse, req: HttpRequest): RequestContext {
  const abort = new AbortController();
  const state: WireState = { aborted: false, signal: abort.signal };
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
  const id = requestId(headers.get('x-request-id'));
  const host = headers.get('host') ?? 'localhost';
  const peer = peerOf(res);
  const client = context.limits.clientOf(peer, headers.get('x-forwarded-for') ?? '');
  const key = keyOf(headers, context.apiKeyHeaders);
  const needsKey = found.kind === 'route' && found.match.route.auth === 'key';
  const exchange = {
    ...enter(context.limits, client, needsKey ? key : undefined),
    client,
    key,
    res,
    id,
    method,
    path,
    rawQuery: req.getQuery() ?? '',
    headers,
    found,
    log: context.log,
    state,
    abort,
    ip: client ?? peer,
    origin:
      context.publicUrl ??
      `${forwardedProto(headers) ?? (context.secure ? 'https' : 'http')}://${host}`,
    baseHeaders: baseHeaders(id, found),
  };
  const spec = found.kind === 'route' ? found.match.route.body : undefined;
  // Of a client over its limits nothing is read: uWebSockets.js drops what comes without a callback.
  if (!spec || exchange.overLimit) {
    return { ...exchange, body: undefined, refusal: undefined };
  }
  const refusal = refusalOfBody(spec, headers);
  const { bodyBudget: budget, bodyPace: pace } = context;
  const unwanted = refusal !== undefined;
  const onRefused = (reason: Refusal): void => {
    context.limits.refuse(reason);
  };
  const { limitBytes } = spec;
  const body = new RequestBody(res, state, { limitBytes, budget, pace, unwanted, onRefused });
  return { ...exchange, body, refusal };
}

/** @param key undefined: none is needed */
function enter(
  limits: ClientLimits,
  client: string | undefined,
  key: string | undefined,
): Pick<RequestContext, 'leave' | 'overLimit'> {
  let leave = (): void => {};
  try {
    leave = limits.enter(client);
    if (key === undefined) {
      limits.open(client);
    } else {
      limits.tryKey(client, key);
    }
    return { leave, overLimit: undefined };
  } catch (error) {
    return { leave, overLimit: error as ServiceError };
  }
}

const requestId = (offered: string | undefined): string =>
  offered && /^[\w.:-]{1,64}$/.test(offered) ? offered : newUuid();
const forwardedProto = (headers: ReadonlyMap<string, string>): string | undefined => {
  const proto = headers.get('x-forwarded-proto');
  return proto === 'https' || proto === 'http' ? proto : undefined;
};

function refusalOfBody(
  { kind, limitBytes }: NonNullable<Route['body']>,
  headers: ReadonlyMap<string, string>,
): ServiceError | undefined {
  const declaredBytes = Number(headers.get('content-length') ?? 0);
  if (declaredBytes > limitBytes) {
    return new ServiceError('BODY_TOO_LARGE', tooLarge(limitBytes));
  }
  try {
    checkContentType(kind, headers.get('content-type') ?? '');
    return undefined;
  } catch (error) {
    return error as ServiceError;
  }
}

function baseHeaders(id: string, found: Found): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': id,
    'x-content-type-options': 'nosniff',
    'access-control-allow-origin': '*',
    'access-control-expose-headers':
      'x-request-id, retry-after, etag, link, deprecation, allow, content-range',
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

function serveNoRoute({ found, method, path }: RequestContext): Reply {
  if (found.kind === 'removed') {
    return errorReply(new ServiceError('GONE', found.reason));
  }
  if (found.kind === 'method') {
    const reply = errorReply(
      new ServiceError('METHOD_NOT_ALLOWED', `${clip(path)} does not take ${clip(method)}.`),
    );
    return { ...reply, headers: { ...reply.headers, allow: found.allow.join(', ') } };
  }
  return errorReply(new ServiceError('NOT_FOUND'));
}

const clip = (value: string): string => value.slice(0, 100);

/** The reply to a preflight (Fetch standard, section 3.2): every route takes the JSON content type and each key header. */
export function preflight(context: HttpContext, allow: readonly string[]): Reply {
  return empty(204, {
    'access-control-allow-methods': allow.join(', '),
    'access-control-allow-headers': [
      'content-type',
      ...context.apiKeyHeaders,
      'session-token',
      'if-match',
      'range',
      'x-request-id',
    ].join(', '),
    'access-control-max-age': '600',
    allow: allow.join(', '),
  });
}

async function serveRoute(
  context: HttpContext,
  exchange: RequestContext,
  route: Route,
): Promise<Reply> {
  const { body } = exchange;
  try {
    const isOpen = route.auth === 'none';
    const caller = isOpen ? NOBODY : await authenticate(context, exchange);
    if (exchange.refusal) {
      throw exchange.refusal;
    }
    const chunks = await body?.admit(isOpen ? `address ${exchange.ip}` : `key ${caller.keyId}`);
    return await handle(exchange, route, caller, chunks);
  } finally {
    body?.release();
  }
}

async function authenticate(
  context: HttpContext,
  { client, key }: RequestContext,
): Promise<Caller> {
  const { limits } = context;
  try {
    const caller = await context.authenticate(key);
    limits.rightKey(key);
    return caller;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'INVALID_API_KEY') {
      limits.wrongKey(client, key);
    }
    throw error;
  }
}

function keyOf(headers: ReadonlyMap<string, string>, names: readonly string[]): string {
  for (const name of names) {
    const value = headers.get(name);
    if (value) {
      return name === 'authorization' ? value.replace(/^Bearer\s+/i, '') : value;
    }
  }
  return '';
}

async function handle(
  exchange: RequestContext,
  route: Route,
  caller: Caller,
  chunks: Chunks | undefined,
): Promise<Reply> {
  const { headers, found } = exchange;
  const issues: ValidationIssue[] = [];
  const pathParams = found.kind === 'route' ? found.match.params : {};
  const params = check(route.params, 'path', pathParams, issues);
  const query = check(
    route.query,
    'query',
    Object.fromEntries(new URLSearchParams(exchange.rawQuery)),
    issues,
  );
  const headerValues = check(route.headers, 'header', Object.fromEntries(headers), issues);
  let body: unknown;
  if (route.body) {
    try {
      const raw = await parseBody(route.body, chunks ?? [], headers.get('content-type') ?? '');
      body = check(route.body.schema, 'body', raw, issues);
    } catch (error) {
      if (!(error instanceof ValidationError)) {
        throw error;
      }
      issues.push(...error.issues);
    }
  }
  if (issues.length > 0) {
    throw new ValidationError(issues);
  }
  const request: ApiRequest = {
    id: exchange.id,
    method: exchange.method as HttpMethod,
    path: exchange.path,
    origin: exchange.origin,
    ip: exchange.ip,
    caller,
    params,
    query,
    headers: headerValues,
    body,
    header: (name) => headers.get(name) ?? '',
    signal: exchange.abort.signal,
  };
  return await withDeadline(
    Promise.resolve(route.handler(request)),
    route.timeoutMs ?? HANDLER_TIMEOUT_MS,
  );
}

type Chunks = readonly Chunk[];

async function parseBody(
  spec: NonNullable<Route['body']>,
  chunks: Chunks,
  contentType: string,
): Promise<unknown> {
  if (spec.kind === 'json' && spec.parse) {
    return await spec.parse(chunks);
  }
  const bytes = await copyOf(chunks);
  return spec.kind === 'multipart' ? await parseMultipart(bytes, contentType) : parseJson(bytes);
}

async function withDeadline(work: Promise<Reply>, timeoutMs: number): Promise<Reply> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = after(timeoutMs, 'the deadline of a request', () => {
      reject(new Error(`the handler took longer than ${timeoutMs} ms`));
      work.then(dropBody).catch(() => {}); // nobody will send it
    });
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a failure looks like from outside. Anything unforeseen is logged under the request's id and told as INTERNAL_ERROR alone. */
function refusalOf(error: unknown, route: Route | undefined, exchange: RequestContext): Reply {
  if (error instanceof ValidationError) {
    return invalidReply(error, route);
  }
  const known = error instanceof ServiceError ? error : new ServiceError('INTERNAL_ERROR');
  if (!(error instanceof ServiceError) && !exchange.state.aborted) {
    exchange.log.error(
      { err: error, requestId: exchange.id, route: route?.path, method: exchange.method },
      'a request failed',
    );
  }
  const extra = {
    ...route?.refusalFields?.(known),
    ...(known.status === 500 ? { request_id: exchange.id } : {}),
  };
  const reply = errorReply(known, extra);
  if (known.status < 500 || route?.failureStatus === undefined) {
    return reply;
  }
  return {
    ...reply,
    status: route.failureStatus,
    headers: { ...reply.headers, 'retry-after': FAILURE_RETRY_SECONDS },
  };
}

/** A route with fields of its own in refusals has them here too; its clients expect a text as `detail`. */
function invalidReply({ issues }: ValidationError, route: Route | undefined): Reply {
  if (route?.refusalFields === undefined) {
    return json({ detail: issues }, 422);
  }
  const said = issues
    .slice(0, 3)
    .map(({ loc, msg }) => `${loc.join('.')}: ${msg}`)
    .join('; ');
  const error = new ServiceError('VALIDATION_FAILED', said === '' ? undefined : said);
  return json(
    { ...route.refusalFields(error), error: error.message, code: error.code, errors: issues },
    422,
  );
}

async function send(exchange: RequestContext, reply: Reply): Promise<number> {
  const { res, state, headers, baseHeaders, body } = exchange;
  if (body && !body.isComplete) {
    await body.discard();
  }
  return await writeReply(res, reply, {
    state,
    head: exchange.method === 'HEAD',
    headers: baseHeaders,
    header: (name) => headers.get(name) ?? '',
    // Else uWebSockets.js would wait for the rest of the body, and after it for ever.
    closeConnection: exchange.overLimit !== undefined || (body !== undefined && !body.isComplete),
  });
}
