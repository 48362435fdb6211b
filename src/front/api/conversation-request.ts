// What a request or an agent asks of a conversation, as the conversation that is stored.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { newUuid } from '../../base/ids.ts';
import { EMOTIONS } from '../../media/articulation.ts';
import type { AgentMeta } from '../accounts/agents.ts';
import type { AutoGrant } from '../accounts/auto-tokens.ts';
import type { Caller } from '../http/route.ts';
import type { StoredConversation } from '../talk/conversation-store.ts';
import {
  type FieldNames,
  type ProviderSettings,
  type ProviderWishes,
  chooseRecogniser,
  chooseLanguageModel,
  chooseVoice,
} from '../talk/provider-choice.ts';
import type { AgentFields } from './auto.ts';
import { splitFaceId } from './compose.ts';
import { faceIdText } from './field-schemas.ts';

const shortText = z.string().max(256);
const longText = z.string().max(32_768);

const llmConfig = z
  .object({
    model: shortText.nullable().optional(),
    provider: shortText
      .nullable()
      .optional()
      .meta({
        description:
          'openai, google, user or local, in any case. Default: user with a baseURL, else local. ' +
          'openai and google without a key, and local, get the model of LLM_BASE_URL where the ' +
          'operator has set it. Otherwise local is a scripted agent.',
      }),
    baseURL: z
      .string()
      .max(2048)
      .nullable()
      .optional()
      .meta({
        description:
          'An OpenAI-compatible API: its base, or the whole URL of its chat completions. Whatever ' +
          'the provider, this model is used.',
      }),
    apiKey: z.string().max(1024).nullable().optional(),
    llmAPIKey: z.string().max(1024).nullable().optional(),
  })
  .nullable()
  .optional();

const DEFAULTS = {
  faceId: 'ava',
  maxSessionLength: 3600,
  maxIdleTime: 300,
  language: 'en',
  createTranscript: false,
};

/** Clients send null for "not set". */
const orDefault = <T extends z.ZodType>(field: T, value: NoInfer<z.output<T>>) =>
  field.nullish().meta({ description: `Default, also for null: ${JSON.stringify(value)}.` });

/** The body of POST /auto/start/configurable. */
export const configurableBody = z.object({
  apiKey: z.string().max(256).nullish().meta({
    description: 'The API key of this service, for clients that do not send it in the header.',
  }),
  faceId: orDefault(faceIdText, DEFAULTS.faceId),
  ttsProvider: shortText
    .nullable()
    .optional()
    .meta({
      description:
        'elevenlabs, cartesia, openai or local, in any case. Default: openai when TTS_BASE_URL is ' +
        'set, else local.',
    }),
  ttsAPIKey: z.string().max(1024).nullable().optional(),
  ttsModel: shortText.nullable().optional(),
  voiceId: shortText.nullable().optional(),
  systemPrompt: longText.nullable().optional(),
  firstMessage: longText.nullable().optional(),
  maxSessionLength: orDefault(z.int().min(1).max(86_400), DEFAULTS.maxSessionLength),
  maxIdleTime: orDefault(z.int().min(1).max(86_400), DEFAULTS.maxIdleTime),
  language: orDefault(shortText, DEFAULTS.language),
  llmConfig,
  customLLMConfig: llmConfig,
  createTranscript: orDefault(z.boolean(), DEFAULTS.createTranscript),
});

const DEFAULT_PROMPT =
  'You are a friendly person on a video call. Answer in one or two short sentences of plain speech, ' +
  'without lists, markup or emoji.';

const CONFIGURABLE_FIELDS: FieldNames = {
  llmProvider: ['llmConfig', 'provider'],
  llmModel: ['llmConfig', 'model'],
  llmEndpoint: ['llmConfig', 'baseURL'],
  llmApiKey: ['llmConfig', 'apiKey'],
  voiceProvider: ['ttsProvider'],
  voiceId: ['voiceId'],
  voiceModel: ['ttsModel'],
  ttsApiKey: ['ttsAPIKey'],
};
/** Of clients that send the older `customLLMConfig`. */
const CUSTOM_FIELDS: FieldNames = {
  ...CONFIGURABLE_FIELDS,
  llmProvider: ['customLLMConfig', 'provider'],
  llmModel: ['customLLMConfig', 'model'],
  llmEndpoint: ['customLLMConfig', 'baseURL'],
  llmApiKey: ['customLLMConfig', 'llmAPIKey'],
};
/** The names of the fields of an agent. */
export const AGENT_FIELDS: FieldNames = {
  llmProvider: ['llm_provider'],
  llmModel: ['llm_model'],
  llmEndpoint: ['llm_endpoint'],
  llmApiKey: ['llmAPIKey'],
  voiceProvider: ['voice_provider'],
  voiceId: ['voice_id'],
  voiceModel: ['voice_model'],
  ttsApiKey: ['ttsAPIKey'],
};

/** The names of the fields of a body. */
export const fieldsOf = ({
  llmConfig: config,
  customLLMConfig: custom,
}: z.output<typeof configurableBody>): FieldNames =>
  (config ?? null) === null && (custom ?? null) !== null ? CUSTOM_FIELDS : CONFIGURABLE_FIELDS;

/** A conversation that the body of a request describes. @throws ValidationError */
export function configured(
  body: z.output<typeof configurableBody>,
  caller: Caller,
  settings: ProviderSettings,
): StoredConversation {
  const llm = body.llmConfig ?? body.customLLMConfig ?? {};
  const endpoint = llm.baseURL ?? '';
  const defaultLlm = endpoint === '' ? 'local' : 'user';
  const wishes: ProviderWishes = {
    llmProvider: (llm.provider || defaultLlm).toLowerCase(),
    llmModel: llm.model ?? '',
    llmEndpoint: endpoint,
    llmApiKey: llm.apiKey ?? llm.llmAPIKey ?? '',
    voiceProvider: (
      body.ttsProvider || (settings.TTS_BASE_URL === undefined ? 'local' : 'openai')
    ).toLowerCase(),
    voiceId: body.voiceId ?? '',
    voiceModel: body.ttsModel ?? '',
    ttsApiKey: body.ttsAPIKey ?? '',
  };
  return {
    id: newUuid(),
    ownerId: caller.ownerId,
    keyId: caller.keyId,
    keyName: caller.keyName,
    agentId: '',
    agentName: '',
    ...faceOf(body.faceId ?? DEFAULTS.faceId),
    prompt: body.systemPrompt ?? DEFAULT_PROMPT,
    firstMessage: body.firstMessage ?? '',
    language: body.language ?? DEFAULTS.language,
    maxIdleSeconds: body.maxIdleTime ?? DEFAULTS.maxIdleTime,
    maxLengthSeconds: body.maxSessionLength ?? DEFAULTS.maxSessionLength,
    createTranscript: body.createTranscript ?? DEFAULTS.createTranscript,
    originAllowList: [],
    providers: providersOf(wishes, settings, fieldsOf(body)),
  };
}

/** A conversation with an agent. @throws ValidationError */
export function ofAgent(
  agent: AgentFields & AgentMeta,
  grant: AutoGrant,
  settings: ProviderSettings,
): StoredConversation {
  const wishes: ProviderWishes = {
    llmProvider: agent.llm_provider,
    llmModel: agent.llm_model ?? '',
    llmEndpoint: agent.llm_endpoint ?? '',
    llmApiKey: grant.llmApiKey,
    voiceProvider: agent.voice_provider,
    voiceId: agent.voice_id ?? '',
    voiceModel: agent.voice_model ?? '',
    ttsApiKey: grant.ttsApiKey,
  };
  const face = faceOf(agent.face_id);
  return {
    id: newUuid(),
    ownerId: grant.ownerId,
    keyId: grant.keyId,
    keyName: grant.keyName,
    agentId: agent.id,
    agentName: agent.name,
    faceId: face.faceId,
    emotion: agent.emotion ?? face.emotion,
    prompt: agent.prompt ?? DEFAULT_PROMPT,
    firstMessage: agent.first_message ?? '',
    language: agent.language,
    maxIdleSeconds: agent.max_idle_time,
    maxLengthSeconds: agent.max_session_length,
    createTranscript: grant.createTranscript,
    originAllowList: grant.originAllowList,
    providers: providersOf(wishes, settings, AGENT_FIELDS),
  };
}

function faceOf(given: string): { faceId: string; emotion: string } {
  const face = splitFaceId(given);
  if (!(EMOTIONS as readonly string[]).includes(face.emotion)) {
    throw new ServiceError('INVALID_EMOTION');
  }
  return face;
}

const providersOf = (
  wishes: ProviderWishes,
  settings: ProviderSettings,
  fields: FieldNames,
): StoredConversation['providers'] => ({
  languageModel: chooseLanguageModel(wishes, settings, fields),
  voice: chooseVoice(wishes, settings, fields),
  recogniser: chooseRecogniser(settings),
});
