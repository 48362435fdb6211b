// The routes of faces: upload a portrait, ask for the progress, list, preview, delete.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { FACE_SIZES, FRAMINGS } from '../../media/face-look.ts';
import { uploadedFile } from '../http/body.ts';
import { empty, file, json } from '../http/reply.ts';
import { type MultipartFile, route, type Route } from '../http/route.ts';
import { invalidField } from '../http/validate.ts';
import type { Faces, FaceSummary } from '../faces/faces.ts';
import { faceIdParameter, fileResponses, KIB, MIB } from './field-schemas.ts';

/** An uploaded portrait. */
const MAX_IMAGE_BYTES = 32 * MIB;
/** The form that holds it. */
export const MAX_UPLOAD_BYTES = MAX_IMAGE_BYTES + 64 * KIB;

/** A face in the list. */
export const faceSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    owner_id: z.string().nullable().meta({ description: 'null: a default face of the server.' }),
    service_version: z.int(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    status: z.enum(['pending', 'processing', 'completed', 'failed']),
    size: z.enum(FACE_SIZES).meta({ description: 'Width and height of its pictures, in pixels.' }),
    framing: z.enum(FRAMINGS),
    background: z.string(),
    thumbnail_url: z
      .string()
      .optional()
      .meta({ description: 'A picture of the face at rest. The request needs the API key.' }),
  })
  .meta({ id: 'Face' });

/** What could be better about a portrait. */
export const warningsSchema = z.array(z.string()).meta({
  description:
    'Codes of what could be better about the portrait: ROTATED (it was upside down or on its side, ' +
    'and was turned), TURNED, MOUTH_OPEN, CHIN_COVERED, EYES_HIDDEN, EYES_CLOSED, DARK, ' +
    'OVEREXPOSED, BLURRED, LOW_RESOLUTION, CROPPED, OTHER_FACES, EXTENDED (the picture shows ' +
    'more than the portrait), BACKGROUND_KEPT (it could not be told from the person). The face can be used.',
});

const createdSchema = z
  .object({
    face_id: z.string(),
    character_uid: z.string(),
    message: z.string(),
    warnings: warningsSchema,
  })
  .meta({ id: 'FaceCreated' });

const statusSchema = z
  .object({
    status: z.enum(['pending', 'processing', 'completed', 'failed', 'not_found']),
    face_id: z.string(),
    queue_position: z.int().min(1).optional().meta({ description: '1 is next.' }),
    error: z.string().optional().meta({ description: 'Why it failed, and what to do.' }),
    warnings: warningsSchema.optional(),
  })
  .meta({ id: 'FaceStatus' });

/** Routes of faces. */
export function faceRoutes(faces: Faces): Route[] {
  return [
    route({
      method: 'POST',
      path: '/faces/legacy',
      tag: 'Faces',
      auth: 'key',
      deprecated: true,
      successor: '/faces',
      summary: 'Make a face from one portrait',
      audit: 'face.create',
      aliases: [{ method: 'POST', path: '/generateFaceID' }],
      query: z.object({
        face_name: z
          .string()
          .trim()
          .min(1)
          .max(100)
          .optional()
          .meta({ description: 'Default: the name of the file.' }),
      }),
      body: {
        kind: 'multipart',
        schema: z.object({ image: uploadedFile }),
        limitBytes: MAX_UPLOAD_BYTES,
      },
      responses: {
        200: {
          description: 'Queued. A token can name the face at once.',
          schema: createdSchema,
        },
      },
      refusals: ['QUEUE_FULL', 'CONFLICT', 'STORAGE_UNAVAILABLE'],
      timeoutMs: 60_000,
      async handler({ body, query, caller }) {
        const { bytes, name } = portraitOf(body.image);
        const face = await faces.create(caller.ownerId, query.face_name ?? name, bytes);
        return json({
          face_id: face.id,
          character_uid: face.id,
          message: 'The face is being made. See GET /faces/legacy/generation_status.',
          warnings: [],
        });
      },
    }),
    route({
      method: 'GET',
      path: '/faces/legacy/generation_status',
      tag: 'Faces',
      auth: 'key',
      deprecated: true,
      successor: '/faces',
      summary: 'Progress of the creation of a face',
      aliases: [
        { method: 'POST', path: '/getRequestStatus' },
        { method: 'GET', path: '/getRequestStatus' },
      ],
      query: z.object({ face_id: faceIdParameter }),
      responses: { 200: { description: '`not_found` is a status too.', schema: statusSchema } },
      async handler({ query, caller }) {
        const { queuePosition, ...status } = await faces.status(caller.ownerId, query.face_id);
        return json(
          {
            face_id: query.face_id,
            ...status,
            ...(queuePosition === undefined ? {} : { queue_position: queuePosition }),
          },
          200,
          { 'cache-control': 'no-store' },
        );
      },
    }),
    route({
      method: 'GET',
      path: '/faces',
      tag: 'Faces',
      auth: 'key',
      summary: 'Faces you can use: your own, the newest first, then the default faces',
      responses: { 200: { description: 'All of them.', schema: z.array(faceSchema) } },
      handler: async ({ caller }) => json((await faces.list(caller.ownerId)).map(toJson)),
    }),
    route({
      method: 'GET',
      path: '/faces/{face_id}/preview',
      tag: 'Faces',
      auth: 'key',
      summary: 'A picture of the face at rest',
      params: z.object({ face_id: faceIdParameter }),
      responses: {
        200: { description: 'A JPEG.', contentType: 'image/jpeg' },
        ...fileResponses('image/jpeg'),
      },
      refusals: ['NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'STORAGE_UNAVAILABLE'],
      async handler({ params, caller }) {
        const preview = await faces.openPreview(caller.ownerId, params.face_id);
        if (!preview) {
          throw new ServiceError(
            'NOT_FOUND',
            'There is no such face, or it is not ready yet. GET /faces lists the faces that you can use.',
          );
        }
        return file(preview, 'image/jpeg', 'private, max-age=3600');
      },
    }),
    route({
      method: 'DELETE',
      path: '/faces/legacy/{face_id}',
      audit: 'face.delete',
      tag: 'Faces',
      auth: 'key',
      deprecated: true,
      summary: 'Delete one of your faces',
      params: z.object({ face_id: faceIdParameter }),
      responses: {
        204: { description: 'Deleted. New tokens for it are refused; running sessions continue.' },
      },
      refusals: ['NOT_FOUND'],
      async handler({ params, caller }) {
        if (!(await faces.delete(caller.ownerId, params.face_id))) {
          throw new ServiceError(
            'NOT_FOUND',
            'You have no face with this id. GET /faces lists your faces.',
          );
        }
        return empty(204);
      },
    }),
  ];
}

/**
 * An uploaded portrait, with a name for its face.
 * @throws ValidationError, ServiceError BODY_TOO_LARGE
 */
export function portraitOf({ bytes, fileName }: MultipartFile): {
  readonly bytes: Uint8Array;
  readonly name: string;
} {
  if (!looksLikeAnImage(bytes)) {
    throw invalidField(
      'body',
      'image',
      'This is not a JPEG, PNG or WebP image. Upload a photo in one of these formats',
      'image_format',
    );
  }
  if (bytes.length > MAX_IMAGE_BYTES) {
    throw new ServiceError(
      'BODY_TOO_LARGE',
      `The image is larger than ${MAX_IMAGE_BYTES / MIB} MiB. Send a smaller one.`,
    );
  }
  return { bytes, name: nameFromFile(fileName) || 'Untitled face' };
}

/**
 * Checks the first bytes, so that other files are refused before they take a place in the queue.
 */
function looksLikeAnImage(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(16, bytes.length)).toString(
    'latin1',
  );
  return (
    head.startsWith('\xff\xd8\xff') ||
    head.startsWith('\x89PNG\r\n\x1a\n') ||
    (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP')
  );
}

/** The file name without its extension and control characters. multipart.ts bounds its length. */
const nameFromFile = (fileName: string): string =>
  fileName
    .replace(/\.\w{1,5}$/, '')
    .replace(/\p{C}/gu, '')
    .trim()
    .slice(0, 100);

/** A face as the interface tells it. */
export const toJson = (face: FaceSummary): z.input<typeof faceSchema> => ({
  id: face.id,
  name: face.name,
  owner_id: face.ownerId ?? null,
  service_version: face.serviceVersion,
  status: face.status,
  created_at: new Date(face.createdAtMs).toISOString(),
  updated_at: new Date(face.updatedAtMs).toISOString(),
  ...face.look,
  ...(face.status === 'completed' ? { thumbnail_url: `/faces/${face.id}/preview` } : {}),
});
