// What a body says: its content type, and its JSON.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { jsonShape } from '../../base/json.ts';
import { boundaryOf } from './multipart.ts';
import type { BodySpec, MultipartFile } from './route.ts';
import { ValidationError } from './validate.ts';

const MEDIA_TYPES = { json: 'application/json', multipart: 'multipart/form-data' } as const;

/** Refuses another content type. JSON may come without one, since several clients leave it out. */
export function checkContentType(kind: BodySpec<z.ZodType>['kind'], contentType: string): void {
  const essence = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (kind === 'json' && (essence === '' || /^application\/(?:[\w.-]+\+)?json$/.test(essence))) {
    return;
  }
  if (
    kind === 'multipart' &&
    essence === MEDIA_TYPES.multipart &&
    boundaryOf(contentType) !== undefined
  ) {
    return;
  }
  throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', `Send the body as ${MEDIA_TYPES[kind]}.`);
}

/** Commas and brackets that a body may have: what the interface takes has a hundred, and 20000 take 5 ms to parse. */
const MAX_JSON_MARKS = 5000;

/** The JSON value of a body. Something that is not JSON, or not UTF-8, is a validation error of type `json_invalid`. */
export function parseJson(bytes: Buffer): unknown {
  if (jsonShape(bytes).marks > MAX_JSON_MARKS) {
    throw invalidJson(
      `The body holds more values than any request of this interface: over ${MAX_JSON_MARKS}`,
    );
  }
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw invalidJson(
      bytes.length === 0 ? 'The body is empty; send a JSON object' : 'The body is not valid JSON',
    );
  }
}

const invalidJson = (msg: string): ValidationError =>
  new ValidationError([{ loc: ['body'], msg, type: 'json_invalid' }]);

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** An uploaded file in a multipart schema. */
export const uploadedFile = z
  .custom<MultipartFile>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      'bytes' in value &&
      (value as MultipartFile).bytes.length > 0,
    {
      error: (issue) =>
        issue.input === undefined ? 'Field required' : 'Send a file that is not empty',
    },
  )
  .meta({ type: 'string', format: 'binary' });
