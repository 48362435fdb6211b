// Voices behind OpenAI's /v1/audio/speech (OpenAI, Kokoro, openedai-speech and the like), streamed as
// PCM, one request for each clause.
import type { VoiceSpec } from '../../link/talk-messages.ts';
import { PcmResampler } from '../pcm-resampler.ts';
import { ProviderError } from '../provider-error.ts';
import { post } from './http.ts';

const WHO = 'The voice';
/** Longest wait for sound. */
const WAIT_MS = 8000;
/** `pcm` of OpenAI is 24 kHz, mono, 16 bits. */
const RATE = 24_000;

/** Speaks a clause. @yields PCM16 at SPEECH_RATE @throws ProviderError */
export async function* endpointSpeech(
  { baseUrl, apiKey, voice, model }: Extract<VoiceSpec, { kind: 'openai' }>,
  text: string,
  signal: AbortSignal,
): AsyncGenerator<Int16Array> {
  const resampler = new PcmResampler(RATE);
  const chunks = post({
    who: WHO,
    url: `${baseUrl}/audio/speech`,
    headers: {
      'content-type': 'application/json',
      ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({
      model,
      voice,
      input: text,
      response_format: 'pcm',
      stream_format: 'audio',
    }),
    signal,
    waitMs: WAIT_MS,
    isSound: true,
  });
  let hasSound = false;
  for await (const chunk of chunks) {
    const pcm = resampler.push(chunk);
    if (pcm.length > 0) {
      hasSound = true;
      yield pcm;
    }
  }
  if (!hasSound && !signal.aborted) {
    throw new ProviderError('malformed', `${WHO} sent no sound`);
  }
}
