// LiveKit: the avatar for an agent in somebody else's room, and the check of tokens for rooms of ours.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Forwarder } from '../cluster/forwarder.ts';
import { json, text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import type { AgentRooms } from '../rooms/agent-rooms.ts';
import { errorSchema, KIB } from './field-schemas.ts';

/** What these routes need. */
export interface IntegrationDeps {
  /** Whether a LiveKit token opens a room that this server serves. */
  readonly isRoomToken: (token: string) => Promise<boolean>;
  /** Sends an avatar into a room; undefined: this server cannot. */
  readonly agents: Pick<AgentRooms, 'join'> | undefined;
  readonly forwarder: Pick<Forwarder, 'withRoom'>;
}

/** The routes of LiveKit. */
export const integrationRoutes = ({ isRoomToken, agents, forwarder }: IntegrationDeps): Route[] => [
  route({
    method: 'GET',
    path: '/rtc/v1/validate',
    tag: 'Integrations',
    auth: 'none',
    summary: 'Say why a LiveKit client could not join a room of this server',
    query: z.object({
      access_token: z
        .string()
        .max(16_384)
        .default('')
        .meta({ description: 'The LiveKit token of the room.' }),
    }),
    responses: {
      200: { description: 'The token is valid.', contentType: 'text/plain' },
    },
    refusals: ['INVALID_ROOM_TOKEN', 'STORE_UNAVAILABLE'],
    handler: async ({ query }) => {
      if (!(await isRoomToken(query.access_token))) {
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
      example: {
        session_token: 'st_…',
        livekit_token: 'eyJ…',
        livekit_url: 'wss://livekit.example',
      },
    },
    responses: {
      200: {
        description: 'The avatar is in the room and publishes its tracks.',
        schema: z
          .object({ status: z.literal('joined'), session_id: z.uuid(), destination: z.string() })
          .meta({ id: 'AgentSession' }),
      },
      401: {
        description: 'INVALID_API_KEY: the key that made the session token was removed.',
        schema: errorSchema,
      },
    },
    refusals: [
      'LIVEKIT_URL_REFUSED',
      'ROOM_JOIN_FAILED',
      'INVALID_FACE_ID',
      'INVALID_SESSION_TOKEN',
      'SESSION_IN_USE',
      'FACE_NOT_READY',
      'SERVER_OVERLOADED',
      'SERVER_DRAINING',
      'STORE_UNAVAILABLE',
      'STORAGE_UNAVAILABLE',
    ],
    async handler(request) {
      const { body, path, ip, origin } = request;
      if (agents === undefined) {
        throw new ServiceError('NOT_IMPLEMENTED');
      }
      const { host } = new URL(origin);
      return await forwarder.withRoom(
        { received: request, headers: ['content-type'], body: JSON.stringify(body) },
        async () => {
          const sessionId = await agents.join(
            {
              sessionToken: body.session_token,
              livekitToken: body.livekit_token,
              livekitUrl: body.livekit_url,
            },
            {
              path,
              ip,
              header: (name) => request.header(name),
              serverOrigin: origin,
              localPort: 0,
            },
          );
          return json({ status: 'joined', session_id: sessionId, destination: host });
        },
      );
    },
  }),
];
