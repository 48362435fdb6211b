// POST /sessions: a session whose agent and viewer have a connection each.
import { z } from 'zod';
import type { Forwarder } from '../cluster/forwarder.ts';
import { json, type Reply } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import type { SplitTokens } from '../legs/leg-tokens.ts';
import type { SplitRequest } from '../legs/split-sessions.ts';
import { type IceServer, withCredentials } from '../sessions/ice-credentials.ts';
import type { LiveSession } from '../sessions/live-session.ts';
import { chosenFace, grantOf, iceServer, tokenRequest } from './compose.ts';
import { KIB } from './field-schemas.ts';

/** What this route needs. */
export interface SplitSessionDeps {
  readonly splits: {
    /** Opens a session and places it. @throws ServiceError when it is refused */
    open(
      request: SplitRequest,
    ): Promise<{ readonly session: Pick<LiveSession, 'id'>; readonly tokens: SplitTokens }>;
  };
  readonly forwarder: Pick<Forwarder, 'withRoom'>;
  /** Lower-case names of the headers that may carry the API key. */
  readonly apiKeyHeaders: readonly string[];
  /** @throws ServiceError INVALID_FACE_ID */
  readonly requireFace: (ownerId: string, faceId: string) => Promise<unknown>;
  readonly iceServers: readonly IceServer[];
  readonly turnSecret: string | undefined;
}

const sessionRequest = tokenRequest.omit({ apiVersion: true, model: true }).extend({
  model: z.string().nullable().default(null).meta({
    description: 'The renderer to use. For an unknown name the server uses its default.',
  }),
  graceSeconds: z.int().min(5).max(300).default(60).meta({
    description: 'How long each side may take to come, and later be away, before the session ends.',
  }),
  motion: z
    .enum(['none', 'arkit', 'visemes', 'all'])
    .default('none')
    .meta({
      description:
        'arkit: events tell the motion of the face in each frame, as blend shapes. visemes: its ' +
        'visemes, as they change. all: both.',
    }),
});

const sessionResponse = z
  .object({
    sessionId: z.string(),
    agentUrl: z.string().meta({
      description: 'WebSocket of the agent. Secret: it holds the token of the agent.',
    }),
    viewerUrl: z.string().meta({
      description: 'WHEP endpoint of the viewer. It may be given to a page: it can only watch.',
    }),
    tokens: z.object({ agent: z.string(), viewer: z.string() }).meta({
      description:
        'The tokens of the URLs. That of the viewer is also good for WSS /compose/webrtc/p2p.',
    }),
    iceServers: z.array(iceServer).meta({
      description: 'For viewers on that socket. WHEP tells them in the header Link.',
    }),
  })
  .meta({ id: 'Session' });

/** Opens sessions. */
export const splitSessionRoutes = (deps: SplitSessionDeps): Route[] => [
  route({
    method: 'POST',
    path: '/sessions',
    tag: 'Sessions',
    auth: 'key',
    summary: 'Open a session with a connection for an agent and one for a viewer',
    body: {
      kind: 'json',
      schema: sessionRequest,
      limitBytes: 64 * KIB,
      example: { faceId: 'ava', graceSeconds: 60, maxSessionLength: 600 },
    },
    responses: {
      201: {
        description: 'It is placed and waits for both. Connect with the addresses.',
        schema: sessionResponse,
      },
    },
    refusals: [
      'INVALID_FACE_ID',
      'INVALID_EMOTION',
      'FACE_NOT_READY',
      'SERVER_OVERLOADED',
      'SERVER_DRAINING',
      'STORAGE_UNAVAILABLE',
    ],
    async handler(request) {
      const { body, caller, origin, ip, trace } = request;
      const face = await chosenFace(body.faceId, caller.ownerId, deps.requireFace);
      const open = async (): Promise<Reply> => {
        const { session, tokens } = await deps.splits.open({
          grant: { ...grantOf(body, caller, face), model: body.model, apiVersion: 'v2', trace },
          graceMs: body.graceSeconds * 1000,
          reports: body.motion === 'none' ? undefined : body.motion,
          destination: new URL(origin).host,
          ip,
        });
        return json(
          {
            sessionId: session.id,
            agentUrl: `${origin.replace(/^http/, 'ws')}/sessions/agent?session_token=${tokens.agent}`,
            viewerUrl: `${origin}/sessions/${session.id}/whep?token=${tokens.viewer}`,
            tokens,
            iceServers: deps.iceServers.map((server) =>
              withCredentials(server, deps.turnSecret, caller.keyId),
            ),
          },
          201,
          { 'cache-control': 'no-store', location: `/sessions/${session.id}` },
        );
      };
      return await deps.forwarder.withRoom(
        {
          received: request,
          headers: ['content-type', ...deps.apiKeyHeaders],
          body: JSON.stringify(body),
        },
        open,
      );
    },
  }),
];
