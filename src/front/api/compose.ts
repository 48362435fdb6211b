// POST /compose/token and GET /compose/ice: the calls that a client makes before it opens the
// WebSocket.
import { z } from 'zod';
import { type ErrorCode, ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { EMOTIONS } from '../../media/articulation.ts';
import { json } from '../http/reply.ts';
import { type Caller, route, type Route } from '../http/route.ts';
import { validationIssueSchema } from '../http/validate.ts';
import { type IceServer, withCredentials } from '../sessions/ice-credentials.ts';
import type { SessionQuota } from '../sessions/session-quota.ts';
import type { SessionGrant, SessionTokens } from '../sessions/session-tokens.ts';
import { faceIdText, KIB } from './field-schemas.ts';

/** What these routes need. */
export interface ComposeDeps {
  readonly tokens: SessionTokens;
  readonly quota: SessionQuota;
  /** Of the owner, made or in the making. @throws ServiceError INVALID_FACE_ID */
  readonly requireFace: (ownerId: string, faceId: string) => Promise<unknown>;
  /** Names of renderers that a token may choose. */
  readonly models: readonly string[];
  /**
   * False when no server has room: the token is refused, so the client need not try a WebSocket.
   */
  readonly canPlace: () => Promise<boolean>;
  /** True while this server shuts down: a refusal then says so. */
  readonly draining: () => boolean;
  /** Called for each refused token. */
  readonly onRefused?: ((code: ErrorCode) => void) | undefined;
  readonly iceServers: readonly IceServer[];
  /** static-auth-secret of coturn. When set, `turn:` entries get credentials that expire. */
  readonly turnSecret: string | undefined;
  readonly log: Logger;
}

/** What a token, or a session, is asked for with. */
export const tokenRequest = z.object({
  faceId: faceIdText,
  apiVersion: z.string().max(32).default('v2'),
  sessionAggregator: z.string().max(256).nullable().default(null).meta({
    description: 'Groups the sessions of one end user. History shows it as endUserAggregator.',
  }),
  handleSilence: z.boolean().default(true).meta({
    description: 'true: the face moves on without audio. false: the picture freezes.',
  }),
  maxSessionLength: z
    .int()
    .min(1)
    .max(86_400)
    .default(3600)
    .meta({ description: 'Seconds. A hard limit, also while the face speaks.' }),
  maxIdleTime: z
    .int()
    .min(1)
    .max(86_400)
    .default(300)
    .meta({ description: 'Seconds without speech.' }),
  startFrame: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .meta({ description: 'First frame of the idle loop.' }),
  audioInputFormat: z
    .enum(['pcm16', 'opus'])
    .default('pcm16')
    .meta({ description: 'pcm16: 16 kHz, mono, s16le. opus: one Opus packet per message.' }),
  model: z.string().nullable().optional().meta({
    description: 'The renderer to use. For an unknown name the server uses its default.',
  }),
});

const tokenResponse = z.object({ session_token: z.string() }).meta({ id: 'SessionToken' });
const refusalFields = {
  session_token: z.literal('FAIL TOKEN'),
  detail: z.string(),
  error: z.string(),
  code: z.string(),
};
const tokenRefusal = z
  .object({ ...refusalFields, request_id: z.string().optional() })
  .meta({ id: 'SessionTokenRefusal' });
const tokenInvalid = z
  .object({ ...refusalFields, errors: z.array(validationIssueSchema) })
  .meta({ id: 'SessionTokenInvalid' });
/** One entry of RTCConfiguration.iceServers. */
export const iceServer = z
  .strictObject({
    urls: z.string(),
    username: z.string().optional(),
    credential: z.string().optional(),
  })
  .meta({ id: 'IceServer' });

/**
 * Codes that clients expect in `detail`. Any other code becomes UNKNOWN_ERROR there; `code` has the
 * real one.
 */
const KNOWN_DETAILS = new Set([
  'INVALID_API_KEY',
  'INVALID_FACE_ID',
  'INVALID_EMOTION',
  'RATE_LIMITED',
  'SERVER_OVERLOADED',
]);

/** Routes of tokens and ICE servers. */
export function composeRoutes(deps: ComposeDeps): Route[] {
  const renderer = rendererHint(deps.models, deps.log);
  return [
    route({
      method: 'POST',
      path: '/compose/token',
      tag: 'Compose',
      auth: 'key',
      summary: 'Create a token for a real-time session',
      aliases: [{ method: 'POST', path: '/startAudioToVideoSession' }],
      body: {
        kind: 'json',
        schema: tokenRequest,
        limitBytes: 64 * KIB,
        example: { faceId: 'ava', handleSilence: true, maxSessionLength: 600, maxIdleTime: 60 },
      },
      responses: {
        200: { description: 'The token, usable until it expires.', schema: tokenResponse },
        400: {
          description: 'Refused: a face that is unknown or was not made, or an unknown emotion.',
          schema: tokenRefusal,
        },
        401: { description: 'Refused: wrong key.', schema: tokenRefusal },
        408: { description: 'Refused: the body arrived too slowly.', schema: tokenRefusal },
        413: { description: 'Refused: the body is too large.', schema: tokenRefusal },
        415: {
          description: 'Refused: the content type is not JSON.',
          schema: tokenRefusal,
        },
        422: {
          description:
            'Refused: the fields listed under `errors` are wrong, or the body is not JSON.',
          schema: tokenInvalid,
        },
        429: {
          description:
            'Refused: over the limits of the key, no worker has room, or the server failed. Try again.',
          schema: tokenRefusal,
        },
      },
      refusals: ['INVALID_FACE_ID', 'INVALID_EMOTION', 'SERVER_OVERLOADED', 'SERVER_DRAINING'],
      // Known clients crash on a 5xx here (wire protocol section 1), so a server failure is sent as
      // 429.
      failureStatus: 429,
      refusalFields: (error) => {
        deps.onRefused?.(error.code);
        return { session_token: 'FAIL TOKEN', detail: detailOf(error) };
      },
      async handler({ body, caller, trace }) {
        const face = await chosenFace(body.faceId, caller.ownerId, deps.requireFace);
        await deps.quota.check(caller.keyId);
        if (!(await deps.canPlace())) {
          throw deps.draining()
            ? new ServiceError('SERVER_DRAINING', undefined, 5)
            : new ServiceError('SERVER_OVERLOADED', undefined, 2);
        }
        const token = await deps.tokens.create({
          ...grantOf(body, caller, face),
          model: renderer(body.model),
          apiVersion: body.apiVersion,
          trace,
        });
        return json({ session_token: token });
      },
    }),
    route({
      method: 'GET',
      path: '/compose/ice',
      tag: 'Compose',
      auth: 'key',
      summary: 'ICE servers for the peer connection',
      aliases: [{ method: 'GET', path: '/getIceServers' }],
      responses: { 200: { description: 'Never empty.', schema: z.array(iceServer) } },
      handler: ({ caller }) =>
        json(
          deps.iceServers.map((server) => withCredentials(server, deps.turnSecret, caller.keyId)),
          200,
          { 'cache-control': 'no-store' },
        ),
    }),
  ];
}

/** Unknown model names that are logged. Clients choose the names, so their number is bounded. */
const MAX_LOGGED_MODELS = 16;

/**
 * Clients may send model names of other services. An unknown name means the default; each is logged
 * once.
 */
function rendererHint(
  known: readonly string[],
  log: Logger,
): (model: string | null | undefined) => string | null {
  const logged = new Set<string>();
  return (model) => {
    if (!model) {
      return null;
    }
    if (known.includes(model)) {
      return model;
    }
    const name = model.slice(0, 64);
    if (logged.size < MAX_LOGGED_MODELS && !logged.has(name)) {
      logged.add(name);
      log.warn({ model: name, known }, 'a client asked for an unknown model; the default is used');
    }
    return null;
  };
}

/** The `detail` of a refused token. */
function detailOf(error: ServiceError): string {
  if (error.code === 'SERVER_DRAINING') {
    return 'SERVER_OVERLOADED';
  }
  return KNOWN_DETAILS.has(error.code) ? error.code : 'UNKNOWN_ERROR';
}

/** Splits `faceId/emotionId`. Without an emotion it is neutral. */
export function splitFaceId(given: string): { faceId: string; emotion: string } {
  const slash = given.indexOf('/');
  return slash < 0
    ? { faceId: given, emotion: 'neutral' }
    : { faceId: given.slice(0, slash), emotion: given.slice(slash + 1) };
}

/**
 * The face and the emotion that a request names.
 * @throws ServiceError INVALID_FACE_ID, INVALID_EMOTION
 */
export async function chosenFace(
  given: string,
  ownerId: string,
  requireFace: ComposeDeps['requireFace'],
): Promise<{ faceId: string; emotion: string }> {
  const face = splitFaceId(given);
  await requireFace(ownerId, face.faceId);
  if (!(EMOTIONS as readonly string[]).includes(face.emotion)) {
    throw new ServiceError('INVALID_EMOTION');
  }
  return face;
}

/** What a request asks for, as tokens and sessions keep it. */
export const grantOf = (
  body: Omit<z.output<typeof tokenRequest>, 'apiVersion' | 'model'>,
  { ownerId, keyId, keyName }: Caller,
  face: Pick<SessionGrant, 'faceId' | 'emotion'>,
): Omit<SessionGrant, 'tokenId' | 'issuedAtMs' | 'apiVersion' | 'model'> => ({
  ownerId,
  keyId,
  keyName,
  ...face,
  sessionAggregator: body.sessionAggregator,
  handleSilence: body.handleSilence,
  maxSessionLengthSeconds: body.maxSessionLength,
  maxIdleTimeSeconds: body.maxIdleTime,
  startFrame: body.startFrame,
  audioInputFormat: body.audioInputFormat,
});
