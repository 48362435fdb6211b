// The routes of one's own faces: made from a portrait, read, renamed and deleted.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { DEFAULT_LOOK, FACE_SIZES, FRAMINGS } from '../../media/face-look.ts';
import type { Faces } from '../faces/faces.ts';
import { uploadedFile } from '../http/body.ts';
import { empty, json } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { MAX_UPLOAD_BYTES, faceSchema, portraitOf, toJson, warningsSchema } from './faces.ts';
import { faceIdParameter, KIB } from './field-schemas.ts';

const nameText = z.string().trim().min(1).max(100);

const lookFields = {
  size: z
    .enum(FACE_SIZES)
    .default(DEFAULT_LOOK.size)
    .meta({
      description:
        'Width and height of its pictures. Larger ones cost the server more: 1280x720 about as much ' +
        'as 1.8 sessions of 512x512.',
    }),
  framing: z
    .enum(FRAMINGS)
    .default(DEFAULT_LOOK.framing)
    .meta({
      description:
        'head: the head fills the picture. shoulders: the shoulders too, as far as the portrait shows ' +
        'them. What the portrait lacks for the shape of the picture is out of focus (EXTENDED).',
    }),
  background: z
    .string()
    .regex(
      /^(?:keep|blurred|green|#[0-9a-fA-F]{6})$/,
      'keep, blurred, green, or a colour as #rrggbb',
    )
    .default(DEFAULT_LOOK.background)
    .meta({
      description:
        'keep, blurred, green (for chroma keying), or a colour as #rrggbb. It is replaced where it ' +
        'can be told from the whole person by its colours: in front of a plain wall. Otherwise the ' +
        'warning BACKGROUND_KEPT says that it was not.',
    }),
};

const stateSchema = faceSchema
  .extend({
    queue_position: z.int().min(1).optional().meta({ description: '1 is next.' }),
    error: z.string().optional().meta({ description: 'Why it failed, and what to do.' }),
    warnings: warningsSchema.optional(),
  })
  .meta({ id: 'FaceState' });

const noFace = (): ServiceError =>
  new ServiceError('NOT_FOUND', 'You have no face with this id. GET /faces lists your faces.');

/** Routes of one's own faces. */
export function ownFaceRoutes(faces: Faces): Route[] {
  const family = { tag: 'Faces', auth: 'key' } as const;
  const params = z.object({ face_id: faceIdParameter });

  /** @throws ServiceError NOT_FOUND */
  async function stateOf(ownerId: string, faceId: string): Promise<z.input<typeof stateSchema>> {
    const [face, { status, queuePosition, error, warnings }] = await Promise.all([
      faces.find(ownerId, faceId),
      faces.status(ownerId, faceId),
    ]);
    if (face === undefined || status === 'not_found') {
      throw noFace();
    }
    return {
      ...toJson({ ...face, status }),
      ...(queuePosition !== undefined && { queue_position: queuePosition }),
      ...(error !== undefined && { error }),
      ...(warnings !== undefined && { warnings: [...warnings] }),
    };
  }

  return [
    route({
      ...family,
      method: 'POST',
      path: '/faces',
      summary: 'Make a face from one portrait',
      audit: 'face.create',
      body: {
        kind: 'multipart',
        schema: z.object({ image: uploadedFile, name: nameText.optional(), ...lookFields }),
        limitBytes: MAX_UPLOAD_BYTES,
      },
      responses: {
        202: {
          description:
            'Queued. It can be named in a token at once; GET its Location for the progress.',
          schema: stateSchema,
        },
      },
      refusals: ['QUEUE_FULL', 'CONFLICT', 'STORAGE_UNAVAILABLE'],
      timeoutMs: 60_000,
      async handler({ body, caller }) {
        const { bytes, name } = portraitOf(body.image);
        const { size, framing, background } = body;
        const look = { size, framing, background };
        const face = await faces.create(caller.ownerId, body.name ?? name, bytes, look);
        return json(await stateOf(caller.ownerId, face.id), 202, {
          location: `/faces/${face.id}`,
        });
      },
    }),
    route({
      ...family,
      method: 'GET',
      path: '/faces/{face_id}',
      summary: 'One face, with the progress of its creation',
      params,
      responses: { 200: { description: 'Its state.', schema: stateSchema } },
      refusals: ['NOT_FOUND'],
      handler: async ({ params: { face_id: id }, caller }) =>
        json(await stateOf(caller.ownerId, id), 200, { 'cache-control': 'no-store' }),
    }),
    route({
      ...family,
      method: 'PATCH',
      path: '/faces/{face_id}',
      summary: 'Rename one of your faces',
      params,
      body: {
        kind: 'json',
        schema: z.object({ name: nameText }),
        limitBytes: 4 * KIB,
        example: { name: 'Receptionist' },
      },
      responses: { 200: { description: 'Its state.', schema: stateSchema } },
      refusals: ['NOT_FOUND'],
      async handler({ params: { face_id: id }, body, caller }) {
        if (!(await faces.rename(caller.ownerId, id, body.name))) {
          throw noFace();
        }
        return json(await stateOf(caller.ownerId, id));
      },
    }),
    route({
      ...family,
      method: 'DELETE',
      path: '/faces/{face_id}',
      summary: 'Delete one of your faces',
      audit: 'face.delete',
      params,
      responses: {
        204: { description: 'Deleted. New tokens for it are refused; running sessions continue.' },
      },
      refusals: ['NOT_FOUND'],
      async handler({ params: { face_id: id }, caller }) {
        if (!(await faces.delete(caller.ownerId, id))) {
          throw noFace();
        }
        return empty(204);
      },
    }),
  ];
}
