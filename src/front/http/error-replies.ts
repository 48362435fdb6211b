// Error replies: what a client is told when a request fails or matches no route.
import { ServiceError } from '../../base/errors.ts';
import { errorReply, json, type Reply } from './reply.ts';
import type { RequestContext } from './request-context.ts';
import type { Route } from './route.ts';
import { ValidationError } from './validate.ts';

/**
 * Retry-After of a server failure that a route reports with its `failureStatus`. The Redis client
 * reconnects within 1 s.
 */
const FAILURE_RETRY_SECONDS = '2';
/** Characters of a path or method that an error message repeats. */
const QUOTED_CHARS = 100;

/** The reply to a request that no route takes. */
export function noRouteReply({ found, method, path }: RequestContext): Reply {
  if (found.kind === 'removed') {
    return errorReply(new ServiceError('GONE', found.reason));
  }
  if (found.kind === 'method') {
    const message =
      `${quoted(path)} does not accept ${quoted(method)}. Use one ` +
      `of: ${found.allow.join(', ')}.`;
    const reply = errorReply(new ServiceError('METHOD_NOT_ALLOWED', message));
    return { ...reply, headers: { ...reply.headers, allow: found.allow.join(', ') } };
  }
  return errorReply(new ServiceError('NOT_FOUND'));
}

const quoted = (value: string): string => value.slice(0, QUOTED_CHARS);

/**
 * The reply to a request that failed with `error`. An unexpected error is logged with the request
 * id, and the client gets INTERNAL_ERROR without details.
 */
export function failureReply(error: unknown, request: RequestContext): Reply {
  const { route } = request;
  if (error instanceof ValidationError) {
    return validationReply(error, route);
  }
  const known = error instanceof ServiceError ? error : new ServiceError('INTERNAL_ERROR');
  if (!(error instanceof ServiceError)) {
    if (request.state.aborted) {
      return errorReply(known); // not sent. The client left: do not tell the route of a failure
    }
    request.log.error(
      { err: error, requestId: request.id, route: route?.path, method: request.method },
      'a request failed',
    );
  }
  const extra = {
    ...route?.refusalFields?.(known),
    ...(known.status === 500 ? { request_id: request.id } : {}),
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

/** A route with `refusalFields` adds them here too. Its clients expect `detail` to be a text. */
function validationReply({ issues }: ValidationError, route: Route | undefined): Reply {
  if (route?.refusalFields === undefined) {
    return json({ detail: issues }, 422);
  }
  const summary = issues
    .slice(0, 3)
    .map(({ loc, msg }) => `${loc.join('.')}: ${msg}`)
    .join('; ');
  const error = new ServiceError('VALIDATION_FAILED', summary === '' ? undefined : summary);
  return json(
    { ...route.refusalFields(error), error: error.message, code: error.code, errors: issues },
    422,
  );
}
