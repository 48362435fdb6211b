// Schemas that several routes share.
import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../../base/errors.ts';
import { EMOTIONS } from '../../media/articulation.ts';

/** The Error object. */
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

/** An id in a path or query. Bounded, since it becomes part of Redis keys and log lines. */
export const idText = z.string().min(1).max(128);

/** The id of something, as a parameter. */
export const idOf = (what: string, example: string) =>
  idText.meta({ description: `Id of ${what}.`, examples: [example] });

/** The id of a face, as a parameter. */
export const faceIdParameter = idOf('a face', 'ava');

/** A face id with an optional emotion. */
export const faceIdText = z
  .string()
  .min(1)
  .max(200)
  .meta({
    description:
      'A face id, optionally followed by an emotion: `faceId/emotionId`. Emotions: ' +
      `${EMOTIONS.join(', ')}. Without one: neutral.`,
    examples: ['ava', ...EMOTIONS.map((emotion) => `ava/${emotion}`)],
  });

/** An emotion that clients name. Those of other services are taken, and mean neutral. */
export const emotionText = z
  .union([z.enum(EMOTIONS), z.string().max(200)])
  .meta({ description: 'An unknown emotion means neutral.' });

/** Responses of a stored file besides 200: for the request headers Range and If-None-Match. */
export const fileResponses = (contentType: string) => ({
  206: { description: 'The requested range.', contentType },
  304: { description: 'The copy of the client is current.' },
});

/** Bytes. */
export const KIB = 1024;
/** Bytes. */
export const MIB = 1024 * 1024;
