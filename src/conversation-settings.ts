// The settings of conversations: providers, their keys, limits. Read by config.ts.
import { z } from 'zod';
import { flag, hosts, httpUrl, integer, setting, text } from './setting.ts';

/** The settings of conversations. */
export const CONVERSATION_SETTINGS = {
  LLM_BASE_URL: setting(
    httpUrl,
    undefined,
    'OpenAI-compatible API of the language model of conversations that name none, or openai or ' +
      'google without a key, up to and with /v1 (http://127.0.0.1:11434/v1 for Ollama). Unset: a ' +
      'scripted agent answers those that name none.',
  ),
  LLM_API_KEY: setting(text, undefined, 'Its API key. Unset: none is sent.'),
  LLM_MODEL: setting(text, undefined, 'Its model.'),
  LLM_HOSTS: setting(
    hosts,
    undefined,
    'Comma-separated hosts (host or host:port) that llm_endpoint and baseURL may name beside ' +
      'public https ones.',
  ),
  OPENAI_BASE_URL: setting(
    httpUrl,
    'https://api.openai.com/v1',
    'API of the language model provider openai, and of its voice and recogniser.',
  ),
  OPENAI_API_KEY: setting(text, undefined, 'Key for OPENAI_BASE_URL where a request has none.'),
  GOOGLE_BASE_URL: setting(
    httpUrl,
    'https://generativelanguage.googleapis.com/v1beta/openai',
    'API of the language model provider google (its OpenAI-compatible base).',
  ),
  GOOGLE_API_KEY: setting(text, undefined, 'Key for GOOGLE_BASE_URL where a request has none.'),
  TTS_BASE_URL: setting(
    httpUrl,
    undefined,
    'OpenAI-compatible API of the voice provider openai (Kokoro and the like), up to and with /v1. ' +
      'Unset: OPENAI_BASE_URL.',
  ),
  TTS_API_KEY: setting(text, undefined, 'Its API key. Unset: OPENAI_API_KEY.'),
  ELEVENLABS_BASE_URL: setting(
    httpUrl,
    'https://api.elevenlabs.io',
    'API of the voice provider elevenlabs.',
  ),
  ELEVENLABS_API_KEY: setting(text, undefined, 'Its key where a request has none.'),
  CARTESIA_BASE_URL: setting(
    httpUrl,
    'https://api.cartesia.ai',
    'API of the voice provider cartesia.',
  ),
  CARTESIA_API_KEY: setting(text, undefined, 'Its key where a request has none.'),
  STT_PROVIDER: setting(
    z.enum(['local', 'openai', 'deepgram']),
    'local',
    'Recogniser of conversations. local: pocketsphinx, for development, English only. openai: ' +
      'STT_BASE_URL. deepgram: DEEPGRAM_BASE_URL.',
  ),
  DEEPGRAM_BASE_URL: setting(
    httpUrl,
    'https://api.deepgram.com',
    'API of the recogniser deepgram.',
  ),
  DEEPGRAM_API_KEY: setting(text, undefined, 'Its API key.'),
  STT_BASE_URL: setting(
    httpUrl,
    undefined,
    'OpenAI-compatible API of the recogniser (speaches and the like), up to and with /v1. Unset: ' +
      'OPENAI_BASE_URL.',
  ),
  STT_API_KEY: setting(text, undefined, 'Its API key. Unset: OPENAI_API_KEY.'),
  STT_MODEL: setting(
    text,
    undefined,
    'Model of the recogniser. Unset: whisper-1 of openai, nova-3 of deepgram.',
  ),
  PREEMPTIVE_REPLIES: setting(
    flag,
    '0',
    '1 asks the language model before the end of the turn is certain: faster, with more requests.',
  ),
  MAX_CONVERSATIONS: setting(integer(0, 1000), '16', 'Concurrent conversations of this server.'),
  TRANSCRIPT_RETENTION_DAYS: setting(
    integer(1, 3650),
    '30',
    'How long transcripts of conversations are kept.',
  ),
} as const;

/** What is missing for the recogniser; undefined: nothing. */
export function conversationProblem(values: Readonly<Record<string, unknown>>): string | undefined {
  const isSet = (...names: string[]) => names.some((name) => values[name] !== undefined);
  const provider = values['STT_PROVIDER'];
  if (provider === 'deepgram' && !isSet('DEEPGRAM_API_KEY')) {
    return 'STT_PROVIDER=deepgram: set DEEPGRAM_API_KEY too';
  }
  return provider === 'openai' && !isSet('STT_BASE_URL', 'STT_API_KEY', 'OPENAI_API_KEY')
    ? 'STT_PROVIDER=openai: set STT_BASE_URL, STT_API_KEY or OPENAI_API_KEY too'
    : undefined;
}
