// LiveKit: the avatar for an agent in somebody else's room (not available yet), and the check of tokens
// for rooms of ours.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { errorSchema, KIB } from './field-schemas.ts';

/** What these routes need. */
export interface IntegrationDeps {
  /** Whether a LiveKit token opens a room that this server serves. */
  readonly isRoomToken: (token: string) => boolean;
}

/** The routes of LiveKit. */
export const integrationRoutes = ({ isRoomToken }: IntegrationDeps): Route[] => [
  route({
    method: 'GET',
    path: '/rtc/v1/validate',
    tag: 'Integrations',
    auth: 'none',
    summary: 'Say why a LiveKit client could not join a room of this server',
    query: z.object({ access_token: z.string().max(16_384).default('') }),
    responses: {
      200: { description: 'The token is valid.', contentType: 'text/plain' },
      401: { description: 'It is not, or its room is over.', schema: errorSchema },
    },
    handler: ({ query }) => {
      if (!isRoomToken(query.access_token)) {
        throw new ServiceError('INVALID_ROOM_TOKEN');
      }
      return text('text/plain', 'success');
    },
  }),
  route({
    method: 'POST',
    path: '/integrations/livekit/agents',
    tag: 'Integrations',
    auth: 'none',
    summary: 'Send an avatar into a LiveKit room',
    aliases: [{ method: 'POST', path: '/StartLivekitAgentsSession' }],
    body: {
      kind: 'json',
      limitBytes: 64 * KIB,
      schema: z.object({
        session_token: z.string().min(1).max(512),
        livekit_token: z.string().min(1).max(16_384),
        livekit_url: z.string().min(1).max(2048),
      }),
    },
    responses: { 501: { description: 'Not available yet.', schema: errorSchema } },
    handler: () => {
      throw new ServiceError(
        'NOT_IMPLEMENTED',
        'LiveKit rooms are not available yet. Use a session of POST /compose/token.',
      );
    },
  }),
];
