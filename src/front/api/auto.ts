// The auto family (deprecated): manages agents and creates tokens. auto-start.ts starts conversations.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { wallSeconds } from '../../base/time.ts';
import { empty, json, stream } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { invalidField } from '../http/validate.ts';
import type { AgentMeta, Agents } from '../accounts/agents.ts';
import type { AutoTokens } from '../accounts/auto-tokens.ts';
import { emotionText, faceIdText, idOf, KIB } from './field-schemas.ts';
import { originsOf } from './origins.ts';
import { keyOf } from './request-key.ts';

const shortText = z.string().max(256);
const longText = z.string().max(32_768);

const MAX_URL_CHARS = 2048;
const isHttpUrl = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text);
/**
 * Checks the length first: parsing a 64 kB host name of non-ASCII letters takes 100 ms (measured).
 */
const httpUrl = z
  .string()
  .max(MAX_URL_CHARS)
  .refine((text) => text.length > MAX_URL_CHARS || isHttpUrl(text), 'Invalid URL')
  .meta({ format: 'uri' });

/** The fields of an agent that its owner sets. */
const agentFields = z.object({
  face_id: faceIdText,
  name: shortText.trim().min(1).default('Untitled Agent'),
  first_message: longText.nullable().default(null),
  prompt: longText.nullable().default(null),
  voice_provider: z.enum(['elevenlabs', 'cartesia', 'openai', 'local']).default('local'),
  voice_id: shortText.nullable().default(null),
  voice_model: shortText.nullable().default(null),
  language: shortText.default('en'),
  emotion: emotionText.nullable().default(null),
  llm_model: shortText.nullable().default(null),
  llm_provider: z.enum(['openai', 'google', 'user', 'local']).default('openai'),
  llm_endpoint: httpUrl.nullable().default(null),
  max_idle_time: z.int().min(1).max(86_400).default(300).meta({ description: 'Seconds.' }),
  max_session_length: z.int().min(1).max(86_400).default(3600).meta({ description: 'Seconds.' }),
});
/** The fields of an agent that its owner sets, validated. */
export type AgentFields = z.output<typeof agentFields>;

/** Accepted and ignored: clients send whole records back. */
const keptByServer = { created_at: z.unknown().optional(), updated_at: z.unknown().optional() };
/** Default of each field but the face. */
const DEFAULTS: Readonly<Record<string, unknown>> = agentFields.omit({ face_id: true }).parse({});

/**
 * Clients send null for "not set". So every field but the face accepts null, which sets its
 * default.
 */
const fieldsOrNull = Object.fromEntries(
  Object.entries(agentFields.shape).map(([name, field]): [string, z.ZodType] => {
    if (!(field instanceof z.ZodDefault)) {
      return [name, field];
    }
    const inner = field.unwrap() as z.ZodType;
    const description = [
      field.meta()?.description,
      `null: ${DEFAULTS[name] === null ? 'not set' : JSON.stringify(DEFAULTS[name])}.`,
    ]
      .filter(Boolean)
      .join(' ');
    return [
      name,
      (inner instanceof z.ZodNullable ? inner : inner.nullable()).optional().meta({ description }),
    ];
  }),
);
const createBody = z.object({
  ...fieldsOrNull,
  owner_id: z
    .unknown()
    .optional()
    .meta({ description: 'Ignored: an agent belongs to the owner of the API key.' }),
  ...keptByServer,
});
const updateBody = z.object({ ...fieldsOrNull, face_id: faceIdText.optional(), ...keptByServer });

/** The fields that a body gives, with null replaced by the default. */
function givenFields(body: Record<string, unknown>): Partial<AgentFields> {
  const given = Object.entries(body).filter(
    ([name, value]) => name in agentFields.shape && value !== undefined,
  );
  return Object.fromEntries(given.map(([name, value]) => [name, value ?? DEFAULTS[name]]));
}

const agentSchema = agentFields
  .extend({
    id: z.uuid(),
    owner_id: z.string(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    service_version: z.int().meta({ description: 'Version of the face model.' }),
  })
  .meta({ id: 'Agent' });

/** Lifetime of a token without an expiry. */
const AUTO_TOKEN_SECONDS = 86_400;
/** Longest lifetime of a token. */
const MAX_AUTO_TOKEN_SECONDS = 366 * 86_400;

const tokenBody = z.object({
  apiKey: z.string().max(256).nullish().meta({
    description: 'The API key of this service, for clients that do not send it in the header.',
  }),
  expiryStamp: z.int().default(-1).meta({
    description:
      'Unix time at which the token expires. -1: one day from now. At most a year ahead.',
  }),
  llmAPIKey: z.string().max(1024).nullable().default(null),
  ttsAPIKey: z.string().max(1024).nullable().default(null),
  createTranscript: z.boolean().default(false),
  originAllowList: z
    .array(z.string().max(256))
    .max(100)
    .nullable()
    .default([])
    .meta({
      description:
        'Origins of pages that may start a conversation with the token and show it in a frame, such ' +
        'as https://shop.example or https://*.shop.example. Empty: any.',
    }),
});

/** What these routes need. */
export interface AutoDeps {
  readonly agents: Agents<AgentFields>;
  readonly tokens: AutoTokens;
  readonly serviceVersion: number;
  /** Names of the headers that may carry the API key. */
  readonly apiKeyHeaders: readonly string[];
}

/** Routes of agents and auto tokens. */
export function autoRoutes(deps: AutoDeps): Route[] {
  const { agents, tokens, serviceVersion } = deps;
  const family = { tag: 'Auto', auth: 'key', deprecated: true } as const;
  const idParams = z.object({ id: idOf('an agent', '3f0c2b9e-7a51-4d0e-9f57-0a4c1de08b11') });
  const shown = ({ version, ...agent }: AgentFields & AgentMeta, status = 200) =>
    json({ ...agent, service_version: serviceVersion }, status, { etag: `"v${version}"` });
  const noSuchAgent = (): ServiceError =>
    new ServiceError(
      'NOT_FOUND',
      'You have no agent with this id. GET /auto/agents lists your agents.',
    );
  return [
    route({
      ...family,
      method: 'POST',
      path: '/auto/agent',
      audit: 'agent.create',
      summary: 'Create an agent',
      body: {
        kind: 'json',
        schema: createBody,
        limitBytes: 256 * KIB,
        example: {
          face_id: 'ava',
          name: 'Receptionist',
          first_message: 'Welcome!',
          prompt: 'You greet visitors.',
          voice_provider: 'local',
          llm_provider: 'openai',
        },
      },
      responses: { 201: { description: 'Created.', schema: agentSchema } },
      refusals: ['CONFLICT'],
      handler: async ({ body, caller }) =>
        shown(await agents.create(caller.ownerId, agentFields.parse(givenFields(body))), 201),
    }),
    route({
      ...family,
      method: 'GET',
      path: '/auto/agents',
      summary: 'All your agents, the oldest first',
      responses: { 200: { description: 'All of them.', schema: z.array(agentSchema) } },
      timeoutMs: 60_000,
      handler: ({ caller }) =>
        stream(
          'application/json; charset=utf-8',
          listed(agents.pages(caller.ownerId), serviceVersion),
        ),
    }),
    route({
      ...family,
      method: 'GET',
      path: '/auto/agent/{id}',
      summary: 'One agent',
      params: idParams,
      responses: {
        200: {
          description: 'Send its ETag as If-Match with an update.',
          schema: agentSchema,
        },
      },
      refusals: ['NOT_FOUND'],
      async handler({ params, caller }) {
        const agent = await agents.find(caller.ownerId, params.id);
        if (!agent) {
          throw noSuchAgent();
        }
        return shown(agent);
      },
    }),
    route({
      ...family,
      method: 'PUT',
      path: '/auto/agent/{id}',
      audit: 'agent.update',
      summary: 'Change an agent: omitted fields keep their value, null sets the default',
      params: idParams,
      headers: z.object({
        'if-match': z.string().max(200).optional().meta({
          description:
            'The ETag that was read. The change is refused with 412 when the agent has changed since.',
        }),
      }),
      body: {
        kind: 'json',
        schema: updateBody,
        limitBytes: 256 * KIB,
        example: { face_id: 'ava', name: 'Night porter' },
      },
      responses: { 200: { description: 'The changed agent.', schema: agentSchema } },
      refusals: ['NOT_FOUND', 'PRECONDITION_FAILED', 'CONFLICT'],
      async handler({ params, headers, body, caller }) {
        const agent = await agents.update(
          caller.ownerId,
          params.id,
          givenFields(body),
          versionOf(headers['if-match']),
        );
        if (!agent) {
          throw noSuchAgent();
        }
        return shown(agent);
      },
    }),
    route({
      ...family,
      method: 'DELETE',
      path: '/auto/agent/{id}',
      audit: 'agent.delete',
      summary: 'Delete an agent',
      params: idParams,
      responses: { 204: { description: 'Deleted.' } },
      refusals: ['NOT_FOUND'],
      async handler({ params, caller }) {
        if (!(await agents.delete(caller.ownerId, params.id))) {
          throw noSuchAgent();
        }
        return empty(204);
      },
    }),
    route({
      ...family,
      auth: 'none',
      method: 'POST',
      path: '/auto/token',
      audit: 'auto-token.create',
      summary: 'Create a token for auto sessions',
      body: {
        kind: 'json',
        schema: tokenBody,
        limitBytes: 64 * KIB,
        example: { expiryStamp: -1, createTranscript: false, originAllowList: [] },
      },
      responses: {
        200: {
          description: 'The token. The keys are stored encrypted and are never returned.',
          schema: z.object({
            session_token: z.string(),
            sessionToken: z.string().meta({ description: 'The same.' }),
            token: z.string().meta({ description: 'The same.' }),
          }),
        },
      },
      refusals: ['INVALID_API_KEY', 'RATE_LIMITED', 'STORE_UNAVAILABLE'],
      async handler(request) {
        const { body } = request;
        const caller = await request.authenticate(
          keyOf(request, deps.apiKeyHeaders, body.apiKey ?? ''),
        );
        const ttlSeconds =
          body.expiryStamp === -1 ? AUTO_TOKEN_SECONDS : body.expiryStamp - wallSeconds();
        if (ttlSeconds <= 0) {
          throw invalidField(
            'body',
            'expiryStamp',
            'The expiry lies in the past; send Unix seconds in the future, or -1',
          );
        }
        if (ttlSeconds > MAX_AUTO_TOKEN_SECONDS) {
          throw invalidField(
            'body',
            'expiryStamp',
            'The expiry lies more than a year ahead; send an earlier one',
          );
        }
        const token = await tokens.create(
          {
            ownerId: caller.ownerId,
            keyId: caller.keyId,
            keyName: caller.keyName,
            createTranscript: body.createTranscript,
            originAllowList: originsOf(body.originAllowList ?? [], 'originAllowList'),
            llmApiKey: body.llmAPIKey ?? '',
            ttsApiKey: body.ttsAPIKey ?? '',
          },
          ttlSeconds,
        );
        return json({ session_token: token, sessionToken: token, token });
      },
    }),
  ];
}

/**
 * The version in an If-Match header; undefined: any version; -1: an unknown tag, which matches
 * none.
 */
function versionOf(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') {
    return undefined;
  }
  const match = /^(?:W\/)?"v(\d{1,15})"$/.exec(ifMatch.trim());
  return match ? Number(match[1]) : -1;
}

/** Streams the agents as a JSON array. */
async function* listed(
  pages: AsyncIterable<(AgentFields & AgentMeta)[]>,
  serviceVersion: number,
): AsyncGenerator<string> {
  let before = '[';
  for await (const page of pages) {
    for (const { version: _version, ...agent } of page) {
      yield before + JSON.stringify({ ...agent, service_version: serviceVersion });
      before = ',';
    }
  }
  yield before === '[' ? '[]' : ']';
}
