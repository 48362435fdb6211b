// Serves a request that matched a route: authenticate, read the body, validate, call the handler.
import { after } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { parseQuery } from '../../base/query.ts';
import { parseJson, parseText } from './body.ts';
import type { Chunk } from './body-blocks.ts';
import { copyOf } from './copy.ts';
import type { HttpContext } from './http-context.ts';
import { parseMultipart } from './multipart.ts';
import { dropBody, type Reply } from './reply.ts';
import type { RequestContext } from './request-context.ts';
import {
  type ApiRequest,
  type Caller,
  type HttpMethod,
  type Route,
  takesToken,
  TOKEN_REFUSALS,
} from './route.ts';
import { check, ValidationError, type ValidationIssue } from './validate.ts';

type Chunks = readonly Chunk[];

/** The caller of a route that needs no key. */
const NOBODY: Caller = Object.freeze({ ownerId: '', keyId: '', keyName: '', isOperator: false });
/** Default time limit of a handler. A route sets its own with `timeoutMs`. */
const HANDLER_TIMEOUT_MS = 15_000;

/**
 * @throws ServiceError or ValidationError when the request is refused; any other error is a defect
 */
export async function handleRoute(
  context: HttpContext,
  request: RequestContext,
  route: Route,
): Promise<Reply> {
  const { body } = request;
  try {
    const isOpen = route.auth === 'none';
    let caller = isOpen ? NOBODY : await authenticate(context, request, request.key);
    if (route.auth === 'operator' && !caller.isOperator) {
      throw new ServiceError('OPERATOR_REQUIRED');
    }
    if (request.bodyRefusal) {
      throw request.bodyRefusal;
    }
    const chunks = await body?.admit(isOpen ? `address ${request.ip}` : `key ${caller.keyId}`);
    const apiRequest = await validate(request, route, caller, chunks);
    const reply = await withDeadline(
      countingWrongTokens(context, request, route, {
        ...apiRequest,
        async authenticate(key) {
          context.limits.checkKeyAttempt(request.client, key);
          return (caller = await authenticate(context, request, key));
        },
      }),
      route.timeoutMs ?? HANDLER_TIMEOUT_MS,
    );
    if (route.audit !== undefined) {
      context.audit?.done(route.audit, request, caller, subjectOf(route, apiRequest), reply);
    }
    return reply;
  } finally {
    body?.release();
  }
}

/**
 * Calls the handler. A token that it refuses counts as a wrong one of the client's address, whether
 * this server refused it or another one to which the request was passed on.
 */
async function countingWrongTokens(
  { limits }: HttpContext,
  { client }: RequestContext,
  route: Route,
  apiRequest: ApiRequest,
): Promise<Reply> {
  if (!takesToken(route)) {
    return await route.handler(apiRequest);
  }
  try {
    const reply = await route.handler(apiRequest);
    if (reply.status === 401) {
      limits.reportWrongKey(client);
    }
    return reply;
  } catch (error) {
    if (error instanceof ServiceError && TOKEN_REFUSALS.has(error.code)) {
      limits.reportWrongKey(client);
    }
    throw error;
  }
}

/** What a request is about, for its audit line. Queries of others than operators may have names. */
const subjectOf = (
  { auth }: Route,
  { params, query }: Pick<ApiRequest, 'params' | 'query'>,
): object => ({
  ...(auth === 'operator' ? (query as object | undefined) : {}),
  ...(params as object),
});

/** Authenticates by an API key and tells the limits of the address whether the key was good. */
async function authenticate(
  context: HttpContext,
  request: RequestContext,
  key: string,
): Promise<Caller> {
  const { limits } = context;
  const { client } = request;
  try {
    const caller = await context.authenticate(key);
    limits.reportGoodKey(key);
    return caller;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'INVALID_API_KEY') {
      limits.reportWrongKey(client, key);
      context.audit?.keyRefused(request);
    }
    throw error;
  }
}

/**
 * Checks every part of the request against the schemas of the route.
 * @throws ValidationError with the issues of all parts together
 */
async function validate(
  request: RequestContext,
  route: Route,
  caller: Caller,
  chunks: Chunks | undefined,
): Promise<Omit<ApiRequest, 'authenticate'>> {
  const { headers, found, rawQuery } = request;
  const issues: ValidationIssue[] = [];
  const pathParams = found.kind === 'route' ? found.match.params : {};
  const params = check(route.params, 'path', pathParams, issues);
  const rawParams = Object.fromEntries(parseQuery(rawQuery));
  const query = check(route.query, 'query', rawParams, issues);
  const headerValues = check(route.headers, 'header', Object.fromEntries(headers), issues);
  let body: unknown;
  if (route.body) {
    try {
      const parsed = await parseBody(route.body, chunks ?? [], headers.get('content-type') ?? '');
      body = check(route.body.schema, 'body', parsed, issues);
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
  return {
    id: request.id,
    method: request.method as HttpMethod,
    path: request.path,
    origin: request.origin,
    ip: request.ip,
    caller,
    params,
    query,
    headers: headerValues,
    body,
    header: (name) => headers.get(name) ?? '',
    trace: request.span?.headers,
    signal: request.abort.signal,
  };
}

async function parseBody(
  spec: NonNullable<Route['body']>,
  chunks: Chunks,
  contentType: string,
): Promise<unknown> {
  if (spec.kind === 'json' && spec.parse) {
    return await spec.parse(chunks);
  }
  const bytes = await copyOf(chunks);
  if (spec.kind === 'text') {
    return parseText(bytes);
  }
  return spec.kind === 'multipart' ? await parseMultipart(bytes, contentType) : parseJson(bytes);
}

/** @throws Error after `timeoutMs`. The reply of a late handler is dropped. */
async function withDeadline(work: Promise<Reply>, timeoutMs: number): Promise<Reply> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = after(timeoutMs, 'the deadline of a request', () => {
      reject(new Error(`the handler took longer than ${timeoutMs} ms`));
      work.then(dropBody).catch(() => {}); // the client already has an error reply
    });
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
