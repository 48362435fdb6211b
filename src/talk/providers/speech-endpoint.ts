// Voices behind HTTP, streamed as PCM, one request for each clause: OpenAI's /v1/audio/speech (OpenAI,
// Kokoro, openedai-speech and the like), ElevenLabs, Cartesia.
import type { VoiceSpec } from '../../link/talk-messages.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { PcmResampler } from '../pcm-resampler.ts';
import { post } from './http.ts';

/** `pcm` of OpenAI is 24 kHz, mono, 16 bits. */
const OPENAI_RATE = 24_000;
/** The version of Cartesia's API that the request below is written for. */
const CARTESIA_VERSION = '2025-04-16';

type RemoteVoice = Exclude<VoiceSpec, { kind: 'local' }>;

interface SpeechRequest {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: object;
  /** Of the answer, samples a second. */
  readonly rate: number;
}

/** The request of each provider. */
function requestOf(spec: RemoteVoice, text: string, language: string): SpeechRequest {
  const { kind, apiKey, voice, model } = spec;
  switch (kind) {
    case 'openai':
      return {
        path: '/audio/speech',
        headers: apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` },
        body: { model, voice, input: text, response_format: 'pcm', stream_format: 'audio' },
        rate: OPENAI_RATE,
      };
    case 'elevenlabs':
      return {
        path: `/v1/text-to-speech/${encodeURIComponent(voice)}/stream?output_format=pcm_16000`,
        headers: { 'xi-api-key': apiKey },
        body: { text, model_id: model },
        rate: SPEECH_RATE,
      };
    default:
      return {
        path: '/tts/bytes',
        headers: { 'x-api-key': apiKey, 'cartesia-version': CARTESIA_VERSION },
        body: {
          model_id: model,
          transcript: text,
          voice: { mode: 'id', id: voice },
          language: language.slice(0, 2),
          output_format: { container: 'raw', encoding: 'pcm_s16le', sample_rate: SPEECH_RATE },
        },
        rate: SPEECH_RATE,
      };
  }
}

/** Speaks a clause. @yields PCM16 at SPEECH_RATE @throws ProviderError */
export async function* endpointSpeech(
  spec: RemoteVoice,
  text: string,
  language: string,
  signal: AbortSignal,
): AsyncGenerator<Int16Array> {
  const { path, headers, body, rate } = requestOf(spec, text, language);
  const resampler = new PcmResampler(rate);
  const chunks = post({
    who: 'The voice',
    url: spec.baseUrl + path,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal,
  });
  for await (const chunk of chunks) {
    const pcm = resampler.push(chunk);
    if (pcm.length > 0) {
      yield pcm;
    }
  }
}
