// Serves one request from its first byte to its reply.
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { soon } from '../../base/guard.ts';
import { monotonicMs } from '../../base/time.ts';
import { handleRoute } from './handle-route.ts';
import type { HttpContext } from './http-context.ts';
import { failureReply, noRouteReply } from './error-replies.ts';
import type { Reply } from './reply.ts';
import { openRequest, type RequestContext } from './request-context.ts';
import { writeReply } from './write-reply.ts';

/** Serves one request from its first byte to its reply. Never throws. */
export async function serveRequest(
  context: HttpContext,
  res: HttpResponse,
  req: HttpRequest,
): Promise<void> {
  const startMs = monotonicMs();
  const request = openRequest(context, res, req);
  const { route, id, method, log, state } = request;
  let reply: Reply;
  try {
    if (request.refusal) {
      throw request.refusal;
    }
    reply = route ? await handleRoute(context, request, route) : noRouteReply(request);
  } catch (error) {
    reply = failureReply(error, request);
  }
  const status = await send(request, reply).catch((error: unknown) => {
    log.error({ err: error, requestId: id }, 'a reply could not be written');
    // Close later: uWebSockets.js may be parsing this connection right now and goes on after this
    // call.
    soon('closing a broken reply', () => {
      if (!state.aborted) {
        res.close();
      }
    });
    return 500;
  });
  request.leave();
  request.span?.end(status);
  context.onRequest({
    route: route ? (route.metricLabel ?? route.path) : 'none',
    method,
    status,
    durationMs: monotonicMs() - startMs,
    requestId: id,
  });
}

/** Discards the rest of an unread body and writes the reply. @returns the status that was sent */
async function send(request: RequestContext, reply: Reply): Promise<number> {
  const { res, state, headers, baseHeaders, body } = request;
  if (body && !body.isComplete) {
    await body.discard();
  }
  return await writeReply(res, reply, {
    state,
    head: request.method === 'HEAD',
    headers: baseHeaders,
    header: (name) => headers.get(name) ?? '',
    // Otherwise uWebSockets.js waits for the rest of the body without a time limit.
    closeConnection: request.refusal !== undefined || (body !== undefined && !body.isComplete),
  });
}
