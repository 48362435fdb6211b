// Conversations: starting one, the room in which it is held, and its transcript.
import { z } from 'zod';
import type { TraceHeaders } from '../tracing/tracing.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Agents } from '../accounts/agents.ts';
import type { AutoGrant, AutoTokens } from '../accounts/auto-tokens.ts';
import { empty, json } from '../http/reply.ts';
import { type ApiRequest, type Route, route } from '../http/route.ts';
import type { IceServer } from '../sessions/ice-credentials.ts';
import type { SessionTokens } from '../sessions/session-tokens.ts';
import type { ConversationStore, StoredConversation } from '../talk/conversation-store.ts';
import type { checkProviders } from '../talk/provider-check.ts';
import type { FieldNames, ProviderSettings } from '../talk/provider-choice.ts';
import type { AgentFields } from './auto.ts';
import {
  AGENT_FIELDS,
  configurableBody,
  configured,
  fieldsOf,
  ofAgent,
} from './conversation-request.ts';
import { idOf, KIB } from './field-schemas.ts';
import { allowsOrigin } from './origins.ts';
import { roomPage } from './room-page.ts';
import { keyOf } from './request-key.ts';

/** What these routes need. */
export interface AutoStartDeps {
  readonly agents: Agents<AgentFields>;
  readonly autoTokens: AutoTokens;
  readonly sessionTokens: SessionTokens;
  readonly conversations: ConversationStore;
  /** Makes sure that conversations can be held. @throws ServiceError */
  readonly prepare: () => Promise<void>;
  /** Asks the providers. @throws ValidationError naming the field */
  readonly checkProviders: typeof checkProviders;
  /** @throws ServiceError INVALID_FACE_ID */
  readonly requireFace: (ownerId: string, faceId: string) => Promise<unknown>;
  readonly canPlace: () => Promise<boolean>;
  readonly iceServers: (keyId: string) => readonly IceServer[];
  readonly settings: ProviderSettings;
  /** Names of the headers that may carry the API key. */
  readonly apiKeyHeaders: readonly string[];
}

const started = z.object({
  roomUrl: z.string().meta({ description: 'Opens the room once, within two minutes.' }),
  sessionId: z.string(),
});

const transcriptItem = z.object({
  role: z.enum(['user', 'assistant']),
  text: z.string().meta({ description: 'Of the assistant: what was heard of it.' }),
  startMs: z.int(),
  endMs: z.int(),
  interrupted: z.boolean(),
});
const transcriptSchema = z
  .object({
    sessionId: z.string(),
    agentId: z.string(),
    startedAt: z.iso.datetime(),
    endedAt: z.iso.datetime(),
    endReason: z.string(),
    items: z.array(transcriptItem),
  })
  .meta({ id: 'Transcript' });

const agentId = idOf('an agent', '3f0c2b9e-7a51-4d0e-9f57-0a4c1de08b11');
const conversationId = idOf('a conversation', '3f0c2b9e-7a51-4d0e-9f57-0a4c1de08b11');
const autoToken = z.string().min(1).max(512).meta({ description: 'A token of POST /auto/token.' });

/** Routes of conversations. */
export function autoStartRoutes(deps: AutoStartDeps): Route[] {
  const family = { tag: 'Auto', auth: 'none', deprecated: true } as const;
  const refusals = [
    'CONVERSATIONS_UNAVAILABLE',
    'CONVERSATIONS_INSTALLING',
    'INVALID_FACE_ID',
    'INVALID_EMOTION',
    'SERVER_OVERLOADED',
    'STORE_UNAVAILABLE',
  ] as const;
  const answers = { 200: { description: 'The room is ready.', schema: started } };

  async function start(
    request: Pick<ApiRequest, 'origin'>,
    conversation: StoredConversation,
    fields: FieldNames,
  ): Promise<z.output<typeof started>> {
    const { ownerId, faceId } = conversation;
    await deps.requireFace(ownerId, faceId);
    await Promise.all([deps.prepare(), deps.checkProviders(conversation.providers, fields)]);
    if (!(await deps.canPlace())) {
      throw new ServiceError('SERVER_OVERLOADED', undefined, 2);
    }
    const secret = await deps.conversations.create(conversation);
    return {
      roomUrl: `${request.origin}/auto/room/${conversation.id}#${secret}`,
      sessionId: conversation.id,
    };
  }

  const withAgent = async (
    request: Pick<ApiRequest, 'origin' | 'header'>,
    agentId: string,
    token: string,
  ): Promise<z.output<typeof started>> => {
    const grant = await deps.autoTokens.find(token);
    if (grant === undefined) {
      throw new ServiceError(
        'INVALID_SESSION_TOKEN',
        'The session token is unknown or expired. Create one with POST /auto/token.',
      );
    }
    checkOrigin(grant, request.header('origin'));
    const agent = await deps.agents.find(grant.ownerId, agentId);
    if (agent === undefined) {
      throw new ServiceError('NOT_FOUND', 'There is no agent with this id.');
    }
    return await start(request, ofAgent(agent, grant, deps.settings), AGENT_FIELDS);
  };

  return [
    route({
      ...family,
      method: 'POST',
      path: '/auto/start/configurable',
      summary: 'Start a conversation from a configuration',
      body: {
        kind: 'json',
        schema: configurableBody,
        limitBytes: 256 * KIB,
        example: {
          faceId: 'ava',
          ttsProvider: 'local',
          systemPrompt: 'You greet visitors.',
          firstMessage: 'Welcome!',
          llmConfig: { provider: 'local' },
        },
      },
      responses: answers,
      refusals: [...refusals, 'INVALID_API_KEY', 'RATE_LIMITED'],
      async handler(request) {
        const { body } = request;
        const key = keyOf(request, deps.apiKeyHeaders, body.apiKey ?? '');
        const caller = await request.authenticate(key);
        return json(await start(request, configured(body, caller, deps.settings), fieldsOf(body)));
      },
    }),
    route({
      ...family,
      method: 'POST',
      path: '/auto/start/{agent_id}',
      summary: 'Start a conversation with an agent',
      params: z.object({ agent_id: agentId }),
      headers: z.object({ 'session-token': autoToken }),
      responses: answers,
      refusals: [...refusals, 'INVALID_SESSION_TOKEN', 'NOT_FOUND', 'ORIGIN_NOT_ALLOWED'],
      handler: async (request) =>
        json(await withAgent(request, request.params.agent_id, request.headers['session-token'])),
    }),
    route({
      ...family,
      method: 'GET',
      path: '/auto/start/{agent_id}/{session_token}',
      summary: 'Start a conversation with an agent from a link',
      params: z.object({ agent_id: agentId, session_token: autoToken }),
      query: z.object({
        redirect: z
          .string()
          .max(16)
          .optional()
          .meta({ description: 'true: redirects to the room.' }),
      }),
      responses: { ...answers, 302: { description: 'To the room, with redirect=true.' } },
      refusals: [...refusals, 'INVALID_SESSION_TOKEN', 'NOT_FOUND', 'ORIGIN_NOT_ALLOWED'],
      async handler(request) {
        const { agent_id, session_token } = request.params;
        const room = await withAgent(request, agent_id, session_token);
        return /^(true|1)$/i.test(request.query.redirect ?? '')
          ? empty(302, { location: room.roomUrl, 'cache-control': 'no-store' })
          : json(room, 200, { 'cache-control': 'no-store' });
      },
    }),
    route({
      ...family,
      method: 'GET',
      path: '/auto/room/{id}',
      summary: 'The page of a conversation',
      params: z.object({ id: conversationId }),
      responses: {
        200: {
          description: 'The page. It says so when the link is no longer valid.',
          contentType: 'text/html',
        },
      },
      handler: async ({ params }) => roomPage(await deps.conversations.find(params.id)),
    }),
    route({
      ...family,
      method: 'POST',
      path: '/auto/room/{id}/join',
      summary: 'Join a conversation with the secret of its link',
      params: z.object({ id: conversationId }),
      body: {
        kind: 'json',
        schema: z.object({ secret: z.string().min(1).max(256) }),
        limitBytes: 4 * KIB,
        example: { secret: 'GpQ3…' },
      },
      responses: {
        200: {
          description: 'A session token for WSS /compose/webrtc/p2p; offer audio sendrecv.',
          schema: z.object({
            session_token: z.string(),
            name: z.string(),
            scripted: z.boolean(),
            ice_servers: z.array(z.record(z.string(), z.string())),
          }),
        },
      },
      refusals: ['ROOM_CLOSED', 'STORE_UNAVAILABLE'],
      handler: async ({ params, body, trace }) =>
        json(await join(deps, params.id, body.secret, trace)),
    }),
    route({
      method: 'GET',
      path: '/auto/transcript/{session_id}',
      tag: 'Auto',
      auth: 'none',
      deprecated: true,
      summary: 'Transcript of a conversation, once it is over',
      params: z.object({ session_id: conversationId }),
      responses: { 200: { description: 'What was said.', schema: transcriptSchema } },
      refusals: ['INVALID_API_KEY', 'RATE_LIMITED', 'NOT_FOUND', 'STORE_UNAVAILABLE'],
      async handler(request) {
        const key = keyOf(request, [...deps.apiKeyHeaders, 'api-key']);
        const { ownerId } = await request.authenticate(key);
        const found = await deps.conversations.transcript(ownerId, request.params.session_id);
        if (found === undefined) {
          throw new ServiceError(
            'NOT_FOUND',
            'There is no transcript yet. It is there some seconds after the end, if the ' +
              'conversation was started with createTranscript.',
          );
        }
        const { ownerId: _owner, ...transcript } = found;
        return json(transcript);
      },
    }),
  ];
}

/** Redeems the secret of a room, for a session token. */
async function join(
  deps: AutoStartDeps,
  id: string,
  secret: string,
  trace: TraceHeaders | undefined,
) {
  const conversation = await deps.conversations.find(id);
  if (conversation === undefined || !(await deps.conversations.redeem(id, secret))) {
    throw new ServiceError('ROOM_CLOSED');
  }
  const { ownerId, keyId, keyName, faceId, emotion } = conversation;
  const token = await deps.sessionTokens.create({
    ownerId,
    keyId,
    keyName,
    faceId,
    emotion,
    model: null,
    apiVersion: 'v2',
    sessionAggregator: null,
    handleSilence: true,
    maxSessionLengthSeconds: conversation.maxLengthSeconds,
    maxIdleTimeSeconds: conversation.maxIdleSeconds,
    startFrame: 0,
    audioInputFormat: 'pcm16',
    conversationId: id,
    trace,
  });
  return {
    session_token: token,
    name: conversation.agentName,
    scripted: conversation.providers.languageModel.kind === 'script',
    ice_servers: deps.iceServers(keyId),
  };
}

/** @throws ServiceError when the token is for pages of other origins */
function checkOrigin({ originAllowList }: AutoGrant, origin: string): void {
  if (origin !== '' && !allowsOrigin(originAllowList, origin)) {
    throw new ServiceError(
      'ORIGIN_NOT_ALLOWED',
      'The token may not be used by pages of this origin: see originAllowList of POST /auto/token.',
    );
  }
}
