// Replies that are sent at once, without a route: CORS preflights and refused WebSocket handshakes.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { ServiceError } from '../../base/errors.ts';
import { peerOf } from './addresses.ts';
import type { ClientLimits } from './client-limits.ts';
import type { HttpContext } from './http-context.ts';
import { empty, errorReply, type Reply } from './reply.ts';
import { writeReply } from './write-reply.ts';

/** Answers OPTIONS: for a known path with its methods, for another one with NOT_FOUND. */
export function answerPreflight(context: HttpContext, res: HttpResponse, req: HttpRequest): void {
  const found = context.router.find('OPTIONS', req.getUrl());
  if (found.kind === 'method') {
    answerNow(context, res, req, preflightReply(context, found.allow, found.accept));
  } else if (found.kind === 'removed') {
    // Let the page send the real request: its reply says why the path was removed.
    answerNow(context, res, req, preflightReply(context, ['GET', 'HEAD', 'POST', 'OPTIONS']));
  } else {
    answerNow(context, res, req, errorReply(new ServiceError('NOT_FOUND')));
  }
}

/** Refuses a WebSocket handshake, or a plain request to a WebSocket path. */
export function refuseUpgrade(
  context: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
  error: ServiceError,
): void {
  const reply = errorReply(error);
  const upgrade = error.code === 'UPGRADE_REQUIRED' ? { upgrade: 'websocket' } : {};
  answerNow(context, res, req, { ...reply, headers: { ...reply.headers, ...upgrade } });
}

/**
 * The reply to a CORS preflight (Fetch standard, section 3.2). Every route allows the same request
 * headers.
 */
function preflightReply(
  { apiKeyHeaders }: HttpContext,
  allow: readonly string[],
  accept: Readonly<Record<string, string>> = {},
): Reply {
  const methods = allow.join(', ');
  const headers = [
    'content-type',
    ...apiKeyHeaders,
    'session-token',
    ...(apiKeyHeaders.includes('authorization') ? [] : ['authorization']),
    'if-match',
    'range',
    'x-request-id',
  ];
  return empty(204, {
    'access-control-allow-methods': methods,
    'access-control-allow-headers': headers.join(', '),
    'access-control-max-age': '600',
    allow: methods,
    ...accept,
  });
}

/** Answers before anything is awaited, so the response object is still valid. */
function answerNow(context: HttpContext, res: HttpResponse, req: HttpRequest, wanted: Reply): void {
  const reply = overLimitReply(context.limits, res, req) ?? wanted;
  const method = req.getMethod().toUpperCase();
  res.onAborted(() => {});
  void writeReply(res, reply, {
    state: { aborted: false, signal: new AbortController().signal },
    head: false,
    headers: { 'access-control-allow-origin': '*', 'x-content-type-options': 'nosniff' },
    header: () => '',
    closeConnection: false,
  });
  const { status } = reply;
  context.onRequest({ route: 'none', method, status, durationMs: 0, requestId: undefined });
}

/** The reply to a client over its limits; undefined when it is within them. */
function overLimitReply(
  limits: ClientLimits,
  res: HttpResponse,
  req: HttpRequest,
): Reply | undefined {
  try {
    limits.countOpenRequest(limits.clientOf(peerOf(res), req.getHeader('x-forwarded-for')));
    return undefined;
  } catch (error) {
    return errorReply(error as ServiceError);
  }
}
