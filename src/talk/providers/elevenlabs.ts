// ElevenLabs' multi-stream-input, with one context for each socket.
// https://elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-multi-stream-input
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError } from '../provider-error.ts';
import type { TimedWord } from '../spoken-text.ts';
import type { StreamedVoiceSpec, VoiceDialect } from './voice-dialect.ts';

const CONTEXT = 'reply';
/** The service closes a socket that is not spoken to for this long. It cannot exceed 180. */
const INACTIVITY_SECONDS = 60;

const strings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');
const numbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'number');

/** The dialect of one reply. */
export function elevenLabs(spec: StreamedVoiceSpec, language: string): VoiceDialect {
  const query = new URLSearchParams({
    model_id: spec.model,
    output_format: 'pcm_16000',
    auto_mode: 'true',
    sync_alignment: 'true',
    inactivity_timeout: String(INACTIVITY_SECONDS),
  });
  if (spec.model.endsWith('_v2_5')) {
    query.set('language_code', language.slice(0, 2)); // other models refuse it
  }
  const voice = encodeURIComponent(spec.voice);
  return {
    url: `${spec.baseUrl}/v1/text-to-speech/${voice}/multi-stream-input?${query.toString()}`,
    headers: { 'xi-api-key': spec.apiKey },
    begin: [{ text: ' ', context_id: CONTEXT }],
    say: (text) => ({ text: `${text.trim()} `, context_id: CONTEXT, flush: true }),
    end: { context_id: CONTEXT, close_context: true },
    read: (message, samples) => {
      const { audio, isFinal, error, alignment } = message;
      if (error !== undefined) {
        throw errorOf(message);
      }
      return {
        ...(typeof audio === 'string' && { base64: audio }),
        words: wordsOf(alignment, samples),
        isLast: isFinal === true,
      };
    },
  };
}

/** Errors come as messages after the handshake. */
function errorOf({ error, code }: Record<string, unknown>): ProviderError {
  const what = `${String(error)} ${String(code)}`;
  if (/api.key|unauthori[sz]ed|authentication/i.test(what)) {
    return new ProviderError('unauthorised', 'The voice refused the API key');
  }
  return /quota|rate.limit|too.many|concurren/i.test(what)
    ? new ProviderError('rate_limited', 'The voice refused: too many requests, or no credit left')
    : new ProviderError('server_error', 'The voice sent an error');
}

/**
 * The words of an alignment of letters. Its times count from the first sound of its message, by the
 * documentation, or from the start of the reply, as seen from its plug-ins: the first letter tells.
 */
function wordsOf(alignment: unknown, samples: number): TimedWord[] {
  const { chars, charStartTimesMs, charsStartTimesMs } = (alignment ?? {}) as Record<
    string,
    unknown
  >;
  const starts = charStartTimesMs ?? charsStartTimesMs;
  if (!strings(chars) || !numbers(starts) || chars.length !== starts.length) {
    return [];
  }
  const rate = SPEECH_RATE / 1000;
  const offset = (starts[0] ?? 0) * rate >= samples / 2 ? 0 : samples;
  const words: { text: string; startSample: number }[] = [];
  for (const [index, letter] of chars.entries()) {
    const isStart = index === 0 || (!/\s/.test(letter) && /\s/.test(chars[index - 1]!));
    if (isStart) {
      words.push({ text: '', startSample: Math.round(starts[index]! * rate) + offset });
    }
    words.at(-1)!.text += letter;
  }
  return words;
}
