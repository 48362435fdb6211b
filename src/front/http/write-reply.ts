// Writes a reply to the connection: never after an abort, corked, files and streams with
// backpressure.
import type { HttpResponse } from 'uWebSockets.js';
import { ServiceError } from '../../base/errors.ts';
import { planFileResponse, streamFile } from './file-response.ts';
import { errorReply, type Reply } from './reply.ts';
import type { ResponseState } from './response-state.ts';
import { WritableWaiter } from './writable-waiter.ts';

/** Reason phrases (RFC 9110 section 15). */
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
  428: 'Precondition Required',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
};

/** What writing a reply needs to know about its request. */
export interface WriteContext {
  readonly state: ResponseState;
  /** True for a HEAD request: send no body. */
  readonly head: boolean;
  /** Headers of every response; those of the reply replace them. */
  readonly headers: Readonly<Record<string, string>>;
  /** A request header by its lower-case name, '' when absent. */
  header(name: string): string;
  /** Close the connection after the response, for example when the client still sends a body. */
  readonly closeConnection: boolean;
}

/** The status that is counted when the client left before the response was complete. Never sent. */
const CLIENT_LEFT = 499;

/**
 * Writes `reply`. Line breaks in header values become blanks, so that a stored value cannot split
 * the response.
 * @returns the status that was sent, or CLIENT_LEFT
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
    return CLIENT_LEFT;
  }
  const { contentType, content } = renderBody(reply);
  res.cork(() => {
    writeHead(res, reply.status, {
      ...context.headers,
      ...reply.headers,
      ...(contentType ? { 'content-type': contentType } : {}),
    });
    if (reply.status === 204 || reply.status === 304) {
      res.endWithoutBody(); // RFC 9110 section 8.6: no Content-Length
    } else if (context.head) {
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
    return CLIENT_LEFT;
  }
  res.cork(() => writeHead(res, 200, { ...context.headers, 'content-type': body.contentType }));
  if (context.head) {
    res.endWithoutBody();
    context.state.aborted = true;
    return 200;
  }
  const waiter = new WritableWaiter(res, context.state);
  try {
    for (let chunk = body.first; !chunk.done; chunk = await body.rest.next()) {
      if (context.state.aborted) {
        return CLIENT_LEFT;
      }
      if (!writeChunk(res, chunk.value) && !(await waiter.wait(() => true))) {
        return CLIENT_LEFT;
      }
    }
  } catch (error) {
    if (context.state.aborted) {
      return CLIENT_LEFT;
    }
    // The status is sent already. Break off the chunked encoding: clients treat that as a failure.
    context.state.aborted = true;
    res.close();
    throw error;
  }
  if (context.state.aborted) {
    return CLIENT_LEFT;
  }
  context.state.aborted = true;
  res.cork(() => {
    res.end();
  });
  return 200;
}

/** @returns false when the socket took only a part; uWebSockets.js then holds the rest in memory */
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
      return CLIENT_LEFT;
    }
    // RFC 9110 section 14.2: only GET has ranges.
    const plan = planFileResponse(
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
    return complete ? plan.status : CLIENT_LEFT;
  } finally {
    await body.file.close();
  }
}

/**
 * Ends the response to HEAD. The length is written as a header: when it is passed to
 * endWithoutBody, uWebSockets.js does not honour `Connection: close`.
 */
function endHead(res: HttpResponse, contentLength: number): void {
  res.writeHeader('content-length', String(contentLength)).endWithoutBody();
}

/** Writes the status line and the headers. */
function writeHead(res: HttpResponse, status: number, headers: Record<string, string>): void {
  res.writeStatus(`${status} ${REASONS[status] ?? 'Status'}`);
  for (const [name, value] of Object.entries(headers)) {
    res.writeHeader(name, value.replace(/[\r\n\0]/g, ' '));
  }
}
