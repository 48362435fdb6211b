// Which providers a conversation gets: from what its request or agent names, the keys of its token,
// and the settings. What is missing or wrong is refused here, with the name of the field.
import { isListedHost } from '../../base/hosts.ts';
import type { RecogniserSpec, LanguageModelSpec, VoiceSpec } from '../../link/talk-messages.ts';
import { invalidField } from '../http/validate.ts';

/** The settings of providers. */
export interface ProviderSettings {
  readonly LLM_BASE_URL: string | undefined;
  readonly LLM_API_KEY: string | undefined;
  readonly LLM_MODEL: string | undefined;
  readonly LLM_HOSTS: readonly string[] | undefined;
  readonly OPENAI_BASE_URL: string;
  readonly OPENAI_API_KEY: string | undefined;
  readonly GOOGLE_BASE_URL: string;
  readonly GOOGLE_API_KEY: string | undefined;
  readonly TTS_BASE_URL: string | undefined;
  readonly TTS_API_KEY: string | undefined;
  readonly ELEVENLABS_BASE_URL: string;
  readonly ELEVENLABS_API_KEY: string | undefined;
  readonly CARTESIA_BASE_URL: string;
  readonly CARTESIA_API_KEY: string | undefined;
  readonly DEEPGRAM_BASE_URL: string;
  readonly DEEPGRAM_API_KEY: string | undefined;
  readonly STT_PROVIDER: 'local' | 'openai' | 'deepgram';
  readonly STT_BASE_URL: string | undefined;
  readonly STT_API_KEY: string | undefined;
  readonly STT_MODEL: string | undefined;
}

/** What a request or an agent asks for. '' stands for what it leaves open. */
export interface ProviderWishes {
  readonly llmProvider: string;
  readonly llmModel: string;
  readonly llmEndpoint: string;
  readonly llmApiKey: string;
  readonly voiceProvider: string;
  readonly voiceId: string;
  readonly voiceModel: string;
  readonly ttsApiKey: string;
}

/** The names of the fields of a wish, for refusals. */
export type FieldNames = Readonly<Record<keyof ProviderWishes, readonly string[]>>;

/** The voices of flite that are offered. */
const LOCAL_VOICES: readonly string[] = ['slt', 'rms', 'awb', 'kal16'];
const CHAT_PATH = '/chat/completions';
const LANGUAGE_MODEL_PROVIDERS: readonly string[] = ['openai', 'google', 'user', 'local'];
const DEFAULT_MODELS: Readonly<Record<string, string>> = {
  openai: 'gpt-4o-mini',
  google: 'gemini-2.0-flash',
};

/** The language model. @throws ValidationError */
export function chooseLanguageModel(
  wishes: ProviderWishes,
  settings: ProviderSettings,
  fields: FieldNames,
): LanguageModelSpec {
  const { llmProvider: provider, llmApiKey, llmEndpoint, llmModel } = wishes;
  if (llmEndpoint !== '') {
    return {
      kind: 'chat',
      url: chatUrl(allowedUrl(llmEndpoint, settings.LLM_HOSTS ?? [], fields.llmEndpoint)),
      model: modelOr(llmModel, settings.LLM_MODEL, fields),
      apiKey: llmApiKey,
    };
  }
  if (provider === 'user') {
    throw invalidField(
      'body',
      fields.llmEndpoint,
      'Name the endpoint of your language model, or choose another provider',
    );
  }
  if (!LANGUAGE_MODEL_PROVIDERS.includes(provider)) {
    // Not the model of LLM_BASE_URL either: the client named another one.
    throw invalidField(
      'body',
      fields.llmProvider,
      `The language model provider ${provider} is not served. Use openai, google, local, or user ` +
        'with the endpoint of your language model',
    );
  }
  const own = { openai: settings.OPENAI_API_KEY, google: settings.GOOGLE_API_KEY }[provider];
  const key = llmApiKey || (own ?? '');
  if (key !== '' && (provider === 'openai' || provider === 'google')) {
    const base = provider === 'openai' ? settings.OPENAI_BASE_URL : settings.GOOGLE_BASE_URL;
    const model = modelOr(llmModel, DEFAULT_MODELS[provider], fields);
    return { kind: 'chat', url: base + CHAT_PATH, model, apiKey: key };
  }
  if (settings.LLM_BASE_URL !== undefined) {
    return {
      kind: 'chat',
      url: settings.LLM_BASE_URL + CHAT_PATH,
      model: modelOr(llmModel, settings.LLM_MODEL, fields),
      apiKey: settings.LLM_API_KEY ?? '',
    };
  }
  if (provider === 'local') {
    return { kind: 'script' };
  }
  throw invalidField(
    'body',
    fields.llmApiKey,
    `There is no key for the language model provider ${provider}. Send one, or let the operator ` +
      'set one. The provider local is a scripted agent that needs none',
    'missing',
  );
}

/** The voice. @throws ValidationError */
export function chooseVoice(
  wishes: ProviderWishes,
  settings: ProviderSettings,
  fields: FieldNames,
): VoiceSpec {
  const { voiceProvider: provider, voiceId, voiceModel, ttsApiKey } = wishes;
  switch (provider) {
    case 'local': {
      const voice = voiceId || 'slt';
      if (!LOCAL_VOICES.includes(voice)) {
        throw invalidField(
          'body',
          fields.voiceId,
          `The local voices are ${LOCAL_VOICES.join(', ')}`,
        );
      }
      return { kind: 'local', voice };
    }
    case 'openai': {
      const baseUrl = settings.TTS_BASE_URL ?? settings.OPENAI_BASE_URL;
      const apiKey = ttsApiKey || (settings.TTS_API_KEY ?? settings.OPENAI_API_KEY ?? '');
      if (apiKey === '' && settings.TTS_BASE_URL === undefined) {
        throw noVoiceKey(provider, fields);
      }
      return {
        kind: 'openai',
        baseUrl,
        apiKey,
        voice: voiceId || 'alloy',
        model: voiceModel || 'tts-1',
      };
    }
    case 'elevenlabs':
      return remoteVoice(
        'elevenlabs',
        settings.ELEVENLABS_BASE_URL,
        settings.ELEVENLABS_API_KEY,
        { ...wishes, voiceModel: voiceModel || 'eleven_flash_v2_5' },
        fields,
      );
    case 'cartesia':
      return remoteVoice(
        'cartesia',
        settings.CARTESIA_BASE_URL,
        settings.CARTESIA_API_KEY,
        { ...wishes, voiceModel: voiceModel || 'sonic-2' },
        fields,
      );
    default:
      throw invalidField(
        'body',
        fields.voiceProvider,
        `The voice provider ${provider} is not served. Use elevenlabs, cartesia, openai or local`,
      );
  }
}

/** The recogniser: a setting of the server. */
export function chooseRecogniser(settings: ProviderSettings): RecogniserSpec {
  switch (settings.STT_PROVIDER) {
    case 'local':
      return { kind: 'local' };
    case 'deepgram':
      return {
        kind: 'deepgram',
        baseUrl: settings.DEEPGRAM_BASE_URL,
        apiKey: settings.DEEPGRAM_API_KEY ?? '',
        model: settings.STT_MODEL ?? 'nova-3',
      };
    default:
      return {
        kind: 'openai',
        baseUrl: settings.STT_BASE_URL ?? settings.OPENAI_BASE_URL,
        apiKey: settings.STT_API_KEY ?? settings.OPENAI_API_KEY ?? '',
        model: settings.STT_MODEL ?? 'whisper-1',
      };
  }
}

/** A voice that needs a key and a voice id. @throws ValidationError */
function remoteVoice(
  kind: 'elevenlabs' | 'cartesia',
  baseUrl: string,
  ownKey: string | undefined,
  { ttsApiKey, voiceId, voiceModel }: ProviderWishes,
  fields: FieldNames,
): VoiceSpec {
  const apiKey = ttsApiKey || (ownKey ?? '');
  if (apiKey === '') {
    throw noVoiceKey(kind, fields);
  }
  if (voiceId === '') {
    throw invalidField('body', fields.voiceId, `Name a voice of ${kind} by its id`, 'missing');
  }
  return { kind, baseUrl, apiKey, voice: voiceId, model: voiceModel };
}

const noVoiceKey = (provider: string, fields: FieldNames) =>
  invalidField(
    'body',
    fields.ttsApiKey,
    `There is no key for the voice provider ${provider}. Send one, or let the operator set one. ` +
      'The provider local needs none',
    'missing',
  );

function modelOr(given: string, fallback: string | undefined, fields: FieldNames): string {
  const model = given || (fallback ?? '');
  if (model === '') {
    throw invalidField('body', fields.llmModel, 'Name the language model', 'missing');
  }
  return model;
}

/** An endpoint, or the base of one, as the URL of chat completions. */
function chatUrl(url: URL): string {
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  url.pathname = path.endsWith(CHAT_PATH) ? path : `${path === '' ? '/v1' : path}${CHAT_PATH}`;
  return url.href;
}

/**
 * A URL that this server may call for a client: public https, or a host that the operator lists.
 * @throws ValidationError
 */
function allowedUrl(text: string, hosts: readonly string[], field: readonly string[]): URL {
  const url = URL.parse(text);
  const isWeb = url !== null && /^https?:$/.test(url.protocol);
  if (!isWeb || url.username !== '' || url.password !== '') {
    throw invalidField('body', field, 'Send an https URL without a user name or password');
  }
  if (isListedHost(hosts, url)) {
    return url;
  }
  // A name without a dot, an address or a local name is not public. A public name may still lead to an
  // address of this network, but what answers there cannot show a certificate for that name.
  const isName = /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$/i.test(url.hostname);
  const isLocal = /\.(local|localhost|internal|lan|home|arpa)$/i.test(url.hostname);
  if (url.protocol !== 'https:' || !isName || isLocal) {
    throw invalidField(
      'body',
      field,
      `This server does not call ${url.host}. Use a public https address; the operator can add ` +
        'hosts to LLM_HOSTS',
    );
  }
  return url;
}
