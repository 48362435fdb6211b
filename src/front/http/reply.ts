// What a handler answers, and how it is written to the wire: abort-safe, corked, files with backpressure.
import type { HttpResponse } from 'uWebSockets.js';
import { ERRORS, ServiceError } from '../../base/errors.ts';
import { Drain } from './drain.ts';
import { fileHeaders, streamFile, type FileSource } from './file.ts';

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?:
    | { readonly kind: 'json'; readonly value: unknown }
    | { readonly kind: 'text'; readonly contentType: string; readonly text: string }
    | {
        readonly kind: 'stream';
        readonly contentType: string;
        readonly first: IteratorResult<string>;
        readonly rest: AsyncIterator<string>;
      }
    | {
        readonly kind: 'file';
        readonly contentType: string;
        readonly file: FileSource;
        readonly cacheControl: string;
      };
}

export const json = (
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): Reply => ({ status, headers, body: { kind: 'json', value } });
export const text = (contentType: string, content: string, status = 200): Reply => ({
  status,
  body: { kind: 'text', contentType, text: content },
});
/** A body too large to hold at once. The first chunk is made before the status goes out, so a failure until then is still told. */
export const stream = async (
  contentType: string,
  chunks: AsyncIterator<string>,
): Promise<Reply> => ({
  status: 200,
  body: { kind: 'stream', contentType, first: await chunks.next(), rest: chunks },
});
export const empty = (status: number, headers: Record<string, string> = {}): Reply => ({
  status,
  headers,
});
/** A stored file, whole or the range asked for. It is closed when sent, or when the client leaves. */
export const file = (
  source: FileSource,
  contentType: string,
  cacheControl: string,
  headers: Record<string, string> = {},
): Reply => ({
  status: 200,
  headers,
  body: { kind: 'file', contentType, file: source, cacheControl },
});

/** The Error object: `{error, code}`, plus what a route adds for its clients. */
export function errorReply(error: ServiceError, extra: Record<string, unknown> = {}): Reply {
  const headers: Record<string, string> = {};
  if (error.status === 429) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1)));
  }
  return json(
    { ...extra, error: error.message, code: error.code },
    ERRORS[error.code].status,
    headers,
  );
}

/** When the auto family and the legacy faces were declared deprecated: 2026-01-01, as RFC 9745 writes a date. */
export const DEPRECATED_SINCE = '@1767225600';

const REASONS: Record<number, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  206: 'Partial Content',
  302: 'Found',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  416: 'Range Not Satisfiable',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
};

export interface WireState {
  aborted: boolean;
  readonly signal: AbortSignal;
}

export interface WriteContext {
  readonly state: WireState;
  readonly head: boolean;
  readonly headers: Readonly<Record<string, string>>;
  header(name: string): string;
  /** Given when the client still sends a body nobody will read. */
  readonly closeConnection: boolean;
}

/**
 * Writes `reply`. Returns the status that went out, or 499 when the client had left.
 * A header value is stripped of line breaks, so that nothing a caller stored can split the response.
 */
export async function writeReply(
  res: HttpResponse,
  reply: Reply,
  context: WriteContext,
): Promise<number> {
  if (reply.body?.kind === 'file') {
    return writeFile(res, reply.body, reply.headers ?? {}, context);
  }
  if (reply.body?.kind === 'stream') {
    return writeStream(res, reply.body, context);
  }
  if (context.state.aborted) {
    return 499;
  }
  const { contentType, content } = renderBody(reply);
  res.cork(() => {
    writeHead(res, reply.status, {
      ...context.headers,
      ...reply.headers,
      ...(contentType ? { 'content-type': contentType } : {}),
    });
    if (reply.status === 204 || reply.status === 304) {
      res.endWithoutBody();
    } // RFC 9110 section 8.6: no Content-Length here
    else if (context.head) {
      endHead(res, Buffer.byteLength(content));
    } else {
      res.end(content, context.closeConnection);
    }
  });
  context.state.aborted = true; // the response object is gone once ended
  return reply.status;
}

function renderBody(reply: Reply): { contentType: string | undefined; content: string } {
  if (reply.body?.kind === 'json') {
    return {
      contentType: 'application/json; charset=utf-8',
      content: JSON.stringify(reply.body.value),
    };
  }
  if (reply.body?.kind === 'text') {
    return { contentType: reply.body.contentType, content: reply.body.text };
  }
  return { contentType: undefined, content: '' };
}

/** Closes what the body of a reply holds that is not sent, or not to its end. */
export async function dropBody({ body }: Reply): Promise<void> {
  if (body?.kind === 'file') {
    await body.file.close();
  } else if (body?.kind === 'stream') {
    await body.rest.return?.();
  }
}

type StreamBody = Extract<Reply['body'], { kind: 'stream' }>;

async function writeStream(
  res: HttpResponse,
  body: StreamBody,
  context: WriteContext,
): Promise<number> {
  try {
    return await sendStream(res, body, context);
  } finally {
    await body.rest.return?.();
  }
}

async function sendStream(
  res: HttpResponse,
  body: StreamBody,
  context: WriteContext,
): Promise<number> {
  if (context.state.aborted) {
    return 499;
  }
  res.cork(() => writeHead(res, 200, { ...context.headers, 'content-type': body.contentType }));
  if (context.head) {
    res.endWithoutBody();
    context.state.aborted = true;
    return 200;
  }
  const drain = new Drain(res, context.state);
  try {
    for (let chunk = body.first; !chunk.done; chunk = await body.rest.next()) {
      if (context.state.aborted) {
        return 499;
      }
      if (!writeChunk(res, chunk.value) && !(await drain.wait(() => true))) {
        return 499;
      }
    }
  } catch (error) {
    if (context.state.aborted) {
      return 499;
    }
    // The status is out: all that is left is to break the chunked encoding, which every client takes for a failure.
    context.state.aborted = true;
    res.close();
    throw error;
  }
  if (context.state.aborted) {
    return 499;
  }
  context.state.aborted = true;
  res.cork(() => {
    res.end();
  });
  return 200;
}

/** False when the socket took only a part: the rest waits in memory. */
function writeChunk(res: HttpResponse, chunk: string): boolean {
  let taken = false;
  res.cork(() => {
    taken = res.write(chunk);
  });
  return taken;
}

async function writeFile(
  res: HttpResponse,
  body: Extract<Reply['body'], { kind: 'file' }>,
  extra: Readonly<Record<string, string>>,
  context: WriteContext,
): Promise<number> {
  try {
    if (context.state.aborted) {
      return 499;
    }
    // RFC 9110 section 14.2: a range is for GET alone.
    const plan = fileHeaders(
      body.file,
      context.head ? '' : context.header('range'),
      context.header('if-range'),
      context.header('if-none-match'),
    );
    if (plan.status === 416) {
      const refusal = errorReply(new ServiceError('RANGE_NOT_SATISFIABLE'));
      return await writeReply(
        res,
        { ...refusal, headers: { ...refusal.headers, ...plan.headers } },
        context,
      );
    }
    const headers = {
      ...context.headers,
      ...extra,
      ...plan.headers,
      'content-type': body.contentType,
      'cache-control': body.cacheControl,
    };
    if (context.head || plan.status === 304 || plan.length === 0) {
      res.cork(() => {
        writeHead(res, plan.status, headers);
        if (plan.status === 304) {
          res.endWithoutBody();
        } else {
          endHead(res, plan.length);
        }
      });
      context.state.aborted = true;
      return plan.status;
    }
    res.cork(() => writeHead(res, plan.status, headers));
    const complete = await streamFile(res, body.file, plan.start, plan.length, context.state);
    return complete ? plan.status : 499;
  } finally {
    await body.file.close();
  }
}

/** Ends the answer to HEAD. The length goes out as a header of ours: given to endWithoutBody, it would leave `Connection: close` unheeded. */
function endHead(res: HttpResponse, contentLength: number): void {
  res.writeHeader('content-length', String(contentLength)).endWithoutBody();
}

function writeHead(res: HttpResponse, status: number, headers: Record<string, string>): void {
  res.writeStatus(`${status} ${REASONS[status] ?? 'Status'}`);
  for (const [name, value] of Object.entries(headers)) {
    res.writeHeader(name, value.replace(/[\r\n\0]/g, ' '));
  }
}
