// What a body says: its content type, JSON, and the parts of a multipart form.
import { getParts } from 'uWebSockets.js';
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { BodySpec, MultipartFile } from './route.ts';
import { ValidationError } from './validate.ts';

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

const MAX_PARTS = 32;

const invalidMultipart = (msg: string): ValidationError =>
  new ValidationError([{ loc: ['body'], msg, type: 'multipart_invalid' }]);

/** Whether `word` occurs more than `most` times; looks no further than that. */
function hasMoreThan(most: number, bytes: Buffer, word: string): boolean {
  let count = 0;
  for (let at = bytes.indexOf(word); at >= 0; at = bytes.indexOf(word, at + word.length)) {
    if (++count > most) return true;
  }
  return false;
}

/** The parts of a multipart body by field name: files where a file name was given, else text. A repeated name keeps its last value. */
export function parseMultipart(bytes: Buffer, contentType: string): Record<string, MultipartFile | string> {
  const boundary = boundaryOf(contentType) ?? '';
  // Counted before: uWebSockets.js makes objects of all of them, and a large body of small parts would
  // hold the main thread for a second.
  if (hasMoreThan(MAX_PARTS, bytes, `\r\n--${boundary}`)) {
    throw invalidMultipart(`The body has more than ${MAX_PARTS} parts`);
  }
  // uWebSockets.js takes all that follows `boundary=` as the boundary, so it is given that alone.
  bodiesInUse.add(bytes);
  const parts = getParts(bytes, `${MEDIA_TYPES.multipart}; boundary=${boundary}`);
  if (!parts) bodiesInUse.delete(bytes);
  if (!parts) throw invalidMultipart('The body is not valid multipart/form-data');
  const fields: [string, MultipartFile | string][] = parts.map((part) => [
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
