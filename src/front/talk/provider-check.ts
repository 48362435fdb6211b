// Asks the providers of a conversation, before anybody joins it, whether they take its keys and know
// its voice: a lost key would otherwise show as a connected face that stays silent.
import type { RecogniserSpec, LanguageModelSpec, VoiceSpec } from '../../link/talk-messages.ts';
import { ServiceError } from '../../base/errors.ts';
import { invalidField } from '../http/validate.ts';
import type { FieldNames } from './provider-choice.ts';

/** The providers of a conversation. */
export interface Providers {
  readonly languageModel: LanguageModelSpec;
  readonly voice: VoiceSpec;
  readonly recogniser: RecogniserSpec;
}

/** A provider that does not answer within this time is not held back: it may be busy. */
const CHECK_MS = 3000;
const CHAT_PATH = /\/chat\/completions$/;
/** See talk/providers/cartesia.ts. */
const CARTESIA_VERSION = '2025-04-16';

/** @returns the status; undefined when there was no answer in time. @throws Error: unreachable */
async function statusOf(url: string, headers: Record<string, string>): Promise<number | undefined> {
  try {
    const response = await fetch(url, {
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(CHECK_MS),
    });
    await response.body?.cancel();
    return response.status;
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError') {
      return undefined;
    }
    throw error;
  }
}

const bearer = (key: string): Record<string, string> =>
  key === '' ? {} : { authorization: `Bearer ${key}` };

/**
 * Refuses what would fail later.
 * @param fields names of the fields of the request or the agent
 * @throws ValidationError naming the field; ServiceError CONVERSATIONS_UNAVAILABLE for the recogniser,
 * which is a setting of the server
 */
export async function checkProviders(
  { languageModel, voice, recogniser }: Providers,
  fields: FieldNames,
): Promise<void> {
  await Promise.all([
    checkLanguageModel(languageModel, fields),
    checkVoice(voice, fields),
    checkRecogniser(recogniser),
  ]);
}

async function checkRecogniser(recogniser: RecogniserSpec): Promise<void> {
  if (recogniser.kind === 'local') {
    return;
  }
  const { kind, baseUrl, apiKey } = recogniser;
  const [url, headers, setting] =
    kind === 'deepgram'
      ? ([
          `${baseUrl}/v1/auth/token`,
          { authorization: `Token ${apiKey}` },
          'DEEPGRAM_API_KEY',
        ] as const)
      : ([`${baseUrl}/models`, bearer(apiKey), 'STT_API_KEY'] as const);
  const status = await statusOf(url, { ...headers }).catch(() => {
    throw new ServiceError(
      'CONVERSATIONS_UNAVAILABLE',
      `The recogniser cannot be reached at ${new URL(baseUrl).host}. The operator sets it.`,
    );
  });
  if (status === 401 || (apiKey === '' && kind === 'deepgram')) {
    throw new ServiceError(
      'CONVERSATIONS_UNAVAILABLE',
      `The recogniser refused its API key. The operator sets it (${setting}).`,
    );
  }
}

async function checkLanguageModel(
  languageModel: LanguageModelSpec,
  fields: FieldNames,
): Promise<void> {
  if (languageModel.kind === 'script') {
    return;
  }
  const url = languageModel.url.replace(CHAT_PATH, '/models');
  const status = await statusOf(url, bearer(languageModel.apiKey)).catch(() => {
    throw invalidField(
      'body',
      fields.llmEndpoint,
      `The language model cannot be reached at ${new URL(languageModel.url).host}`,
    );
  });
  if (status === 401 || status === 403) {
    throw invalidField('body', fields.llmApiKey, 'The language model refused this API key');
  }
}

async function checkVoice(voice: VoiceSpec, fields: FieldNames): Promise<void> {
  if (voice.kind === 'local') {
    return;
  }
  const { kind, baseUrl, apiKey } = voice;
  const id = encodeURIComponent(voice.voice);
  const [path, headers] = {
    openai: ['/models', bearer(apiKey)] as const,
    elevenlabs: [`/v1/voices/${id}`, { 'xi-api-key': apiKey }] as const,
    cartesia: [
      `/voices/${id}`,
      { 'x-api-key': apiKey, 'cartesia-version': CARTESIA_VERSION },
    ] as const,
  }[kind];
  const status = await statusOf(baseUrl + path, { ...headers }).catch(() => {
    throw invalidField(
      'body',
      fields.voiceProvider,
      `The voice provider ${kind} cannot be reached at ${new URL(baseUrl).host}`,
    );
  });
  if (status === 401 || status === 403) {
    throw invalidField('body', fields.ttsApiKey, `The voice provider ${kind} refused this API key`);
  }
  if (kind !== 'openai' && (status === 404 || status === 400 || status === 422)) {
    throw invalidField('body', fields.voiceId, `The voice provider ${kind} has no such voice`);
  }
}
