// Shapes that several parts of the REST surface share.
import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../../base/errors.ts';

export const errorSchema = z
  .object({
    error: z.string().meta({ description: 'What went wrong, for a person.' }),
    code: z
      .enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]])
      .optional()
      .meta({ description: 'What went wrong, for a program.' }),
    request_id: z.string().optional(),
  })
  .meta({ id: 'Error' });

/** An id in a path or query: bounded, so that it can be part of a key or a log line. */
export const idText = z.string().min(1).max(128);

export const faceIdText = z
  .string()
  .min(1)
  .max(200)
  .meta({ description: 'A face id, optionally followed by an emotion: `faceId/emotionId`.' });

/** What a stored file is answered with beside 200, by the request's Range and If-None-Match. */
export const fileResponses = (contentType: string) => ({
  206: { description: 'The range asked for.', contentType },
  304: { description: 'The one the client has is the present one.' },
});

export const KIB = 1024;
export const MIB = 1024 * 1024;
