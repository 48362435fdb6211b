// POST /integrations/livekit/agents: an avatar for an agent in a LiveKit room. Not available yet.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { route, type Route } from '../http/route.ts';
import { errorSchema, KIB } from './field-schemas.ts';

/** The route of LiveKit agents. It validates the request and replies NOT_IMPLEMENTED. */
export const integrationRoutes = (): Route[] => [
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
