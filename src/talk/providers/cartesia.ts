// Cartesia's /tts/websocket, with one context for each socket.
// https://docs.cartesia.ai/api-reference/tts/websocket
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError, statusError } from '../provider-error.ts';
import type { TimedWord } from '../spoken-text.ts';
import type { StreamedVoiceSpec, VoiceDialect } from './voice-dialect.ts';

/** The version of Cartesia's API that this is written for. */
const VERSION = '2025-04-16';
const CONTEXT = 'reply';

/** The dialect of one reply. */
export function cartesia(spec: StreamedVoiceSpec, language: string): VoiceDialect {
  const request = {
    context_id: CONTEXT,
    model_id: spec.model,
    voice: { mode: 'id', id: spec.voice },
    language: language.slice(0, 2),
    output_format: { container: 'raw', encoding: 'pcm_s16le', sample_rate: SPEECH_RATE },
    add_timestamps: true,
    // The text comes by clauses: there is nothing to wait for.
    max_buffer_delay_ms: 0,
  };
  return {
    url: `${spec.baseUrl}/tts/websocket`,
    headers: { 'x-api-key': spec.apiKey, 'cartesia-version': VERSION },
    begin: [],
    say: (text) => ({ ...request, transcript: `${text.trim()} `, continue: true }),
    end: { ...request, transcript: '', continue: false },
    read: ({ type, data, error, status_code: status, word_timestamps: times }) => {
      switch (type) {
        case 'chunk':
          return { base64: String(data) };
        case 'timestamps':
          return { words: wordsOf(times) };
        case 'done':
          return { isLast: true };
        case 'error':
          throw typeof status === 'number' && status >= 400
            ? statusError('The voice', status)
            : new ProviderError('server_error', 'The voice sent an error');
        default:
          if (error !== undefined) {
            throw new ProviderError('server_error', 'The voice sent an error');
          }
          return {};
      }
    },
  };
}

/** Times count from the start of the context, in seconds. */
function wordsOf(times: unknown): TimedWord[] {
  const { words, start } = (times ?? {}) as { words?: unknown; start?: unknown };
  if (!Array.isArray(words) || !Array.isArray(start)) {
    return [];
  }
  return words.map((word, index) => ({
    text: `${String(word)} `,
    startSample: Math.round(Number(start[index] ?? 0) * SPEECH_RATE),
  }));
}
