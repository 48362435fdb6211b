// Uploads: a multipart body and the content type that it comes with, which is the input's first
// line.
import assert from 'node:assert/strict';
import { ServiceError } from '../../../src/base/errors.ts';
import { checkContentType } from '../../../src/front/http/body.ts';
import { parseMultipart } from '../../../src/front/http/multipart.ts';
import { ValidationError } from '../../../src/front/http/validate.ts';
import type { FuzzTarget } from '../engine/target.ts';

export const target: FuzzTarget = {
  words: [
    'multipart/form-data; boundary=',
    'Content-Disposition: form-data; name="',
    '"; filename="',
    'Content-Type: ',
    '\r\n--',
    '--\r\n',
    '\r\n\r\n',
    'boundary="',
  ],
  async run(data) {
    const newline = data.indexOf(10);
    const contentType = data.toString('latin1', 0, Math.max(0, newline));
    const body = Buffer.from(data.subarray(newline + 1));
    try {
      checkContentType({ kind: 'multipart' }, contentType);
      for (const part of Object.values(await parseMultipart(body, contentType))) {
        if (typeof part === 'string') {
          assert.ok(part.length <= body.length, 'a text longer than its body');
        } else {
          assert.ok(
            part.bytes.buffer !== body.buffer && body.includes(Buffer.from(part.bytes)),
            'a file that is not in its body',
          );
        }
      }
    } catch (error) {
      if (!(error instanceof ValidationError || error instanceof ServiceError)) {
        throw error;
      }
    }
  },
};
