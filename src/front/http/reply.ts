// What a handler returns: status, headers and a body of one of four kinds.
import { ERRORS, type ServiceError } from '../../base/errors.ts';
import type { FileSource } from './file-response.ts';

/** The reply of a handler. writeReply adds the headers that every response has. */
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

/** A JSON body. */
export const json = (
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): Reply => ({ status, headers, body: { kind: 'json', value } });
/** A text body of any content type. */
export const text = (contentType: string, content: string, status = 200): Reply => ({
  status,
  body: { kind: 'text', contentType, text: content },
});
/**
 * A body too large to hold in memory, sent in chunks. The first chunk is made before the status is
 * sent, so a failure up to then still gets an error reply.
 */
export const stream = async (
  contentType: string,
  chunks: AsyncIterator<string>,
): Promise<Reply> => ({
  status: 200,
  body: { kind: 'stream', contentType, first: await chunks.next(), rest: chunks },
});
/** No body. */
export const empty = (status: number, headers: Record<string, string> = {}): Reply => ({
  status,
  headers,
});
/**
 * A stored file, whole or the requested range. It is closed after sending, or when the client
 * leaves.
 */
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

/**
 * The Error object of the interface: `{error, code}` and the fields that a route adds. Status 429,
 * and an error that knows when to try again, get a Retry-After header in seconds (RFC 9110 section
 * 10.2.3), at least 1.
 */
export function errorReply(error: ServiceError, extra: Record<string, unknown> = {}): Reply {
  const headers: Record<string, string> = {};
  if (error.status === 429 || error.retryAfterSeconds !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterSeconds ?? 1)));
  }
  return json(
    { ...extra, error: error.message, code: error.code },
    ERRORS[error.code].status,
    headers,
  );
}

/** Closes the file or the stream of a reply that is not sent, or not sent to its end. */
export async function dropBody({ body }: Reply): Promise<void> {
  if (body?.kind === 'file') {
    await body.file.close();
  } else if (body?.kind === 'stream') {
    await body.rest.return?.();
  }
}
