// Reading a request's body: bounded per route and for the process as a whole, with a deadline.
import { getParts, type HttpResponse } from 'uWebSockets.js';
import { z } from 'zod';
import { after } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import type { BodySpec, MultipartFile } from './route.ts';
import { ValidationError } from './validate.ts';

/** Bytes of bodies that may be in memory at once: many clients may send large files at the same time. */
const MAX_BUFFERED_BYTES = 256 * 1024 * 1024;
/** A body must be whole within this, or at this pace, whichever is later. */
const BODY_DEADLINE_MS = 30_000;
const SLOWEST_BYTES_PER_SECOND = 64 * 1024;
let bufferedBytes = 0;

/** One body in the chunks in which it came; `release` gives its bytes back to the process's budget and must be called once the body is done with. */
export interface BodyReader { readonly chunks: Promise<readonly Uint8Array<ArrayBuffer>[]>; release(): void }

/**
 * Starts to collect the body. uWebSockets.js gives chunks only to a handler attached at once, so this is called before anything is awaited.
 * Rejects with BODY_TOO_LARGE as soon as the limit is passed; what comes after is dropped unread.
 */
export function readBody(res: HttpResponse, declaredBytes: number | undefined, limitBytes: number, signal: AbortSignal): BodyReader {
  let chunks: Uint8Array<ArrayBuffer>[] = [];
  let held = 0;
  let finished = false;
  const release = (): void => {
    bufferedBytes -= held;
    held = 0;
    chunks = [];
  };
  const whole = new Promise<readonly Uint8Array<ArrayBuffer>[]>((resolve, reject) => {
    const deadlineMs = BODY_DEADLINE_MS + (1000 * (declaredBytes ?? limitBytes)) / SLOWEST_BYTES_PER_SECOND;
    const timer = after(deadlineMs, 'the deadline of a body', () => { fail(new ServiceError('REQUEST_TIMEOUT')); });
    const settle = (): void => { finished = true; clearTimeout(timer); signal.removeEventListener('abort', onAbort); };
    const fail = (error: Error): void => { settle(); release(); reject(error); };
    const onAbort = (): void => fail(new Error('the client left'));
    signal.addEventListener('abort', onAbort, { once: true });
    res.onData((chunk, isLast) => {
      if (finished) return;
      if (held + chunk.byteLength > limitBytes) { fail(new ServiceError('BODY_TOO_LARGE', tooLarge(limitBytes))); return; }
      if (bufferedBytes + chunk.byteLength > MAX_BUFFERED_BYTES) { fail(new ServiceError('TOO_MANY_CONNECTIONS', 'Too many large uploads at once. Try again shortly.', 2)); return; }
      held += chunk.byteLength;
      bufferedBytes += chunk.byteLength;
      chunks.push(new Uint8Array(chunk.slice(0))); // the chunk is neutered when this returns
      if (!isLast) return;
      settle();
      resolve(chunks);
    });
  });
  whole.catch(() => {}); // whoever awaits it sees the error; nobody may await it when another check fails first
  return { chunks: whole, release };
}

export const tooLarge = (limitBytes: number): string =>
  `The request body is over this path's limit of ${limitBytes >= 1048576 ? `${Math.floor(limitBytes / 1048576)} MiB` : `${Math.floor(limitBytes / 1024)} KiB`}.`;

const MEDIA_TYPES = { json: 'application/json', multipart: 'multipart/form-data' } as const;

/** Refuses another content type. JSON may come without one, since several clients leave it out. */
export function checkContentType(kind: BodySpec<z.ZodType>['kind'], contentType: string): void {
  const essence = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (kind === 'json' && (essence === '' || /^application\/(?:[\w.-]+\+)?json$/.test(essence))) return;
  if (kind === 'multipart' && essence === MEDIA_TYPES.multipart && boundaryOf(contentType) !== undefined) return;
  throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', `Send the body as ${MEDIA_TYPES[kind]}.`);
}

/** The JSON value of a body. Something that is not JSON, or not UTF-8, is a validation error of type `json_invalid`. */
export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new ValidationError([{ loc: ['body'], msg: bytes.length === 0 ? 'The body is empty; send a JSON object' : 'The body is not valid JSON', type: 'json_invalid' }]);
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The boundary of a multipart content type, quoted or not (RFC 2046 section 5.1.1), wherever it stands among the parameters. */
function boundaryOf(contentType: string): string | undefined {
  const match = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i.exec(contentType);
  return match?.[1] ?? match?.[2];
}

/** The parts of a multipart body by field name: files where a file name was given, else text. A repeated name keeps its last value. */
export function parseMultipart(bytes: Buffer, contentType: string): Record<string, MultipartFile | string> {
  // uWebSockets.js takes all that follows `boundary=` as the boundary, so it is given that alone.
  bodiesInUse.add(bytes);
  const parts = getParts(bytes, `${MEDIA_TYPES.multipart}; boundary=${boundaryOf(contentType) ?? ''}`);
  if (!parts) bodiesInUse.delete(bytes);
  if (!parts) throw new ValidationError([{ loc: ['body'], msg: 'The body is not valid multipart/form-data', type: 'multipart_invalid' }]);
  const fields: [string, MultipartFile | string][] = parts.slice(0, 32).map((part) => [
    part.name,
    part.filename === undefined && !part.type
      ? Buffer.from(part.data).toString('utf8')
      // A part is a view into `bytes` that does not keep `bytes` alive: copied here, while the line below still needs them.
      : { field: part.name, fileName: part.filename ?? '', contentType: part.type ?? '', bytes: new Uint8Array(part.data).slice() },
  ]);
  bodiesInUse.delete(bytes);
  return Object.fromEntries(fields);
}

/** Keeps a body from being collected while there are views into it. */
const bodiesInUse = new Set<Buffer>();

/** An uploaded file in a multipart schema. */
export const uploadedFile = z.custom<MultipartFile>(
  (value) => typeof value === 'object' && value !== null && 'bytes' in value && (value as MultipartFile).bytes.length > 0,
  { error: (issue) => issue.input === undefined ? 'Field required' : 'Send a file that is not empty' },
).meta({ type: 'string', format: 'binary' });
