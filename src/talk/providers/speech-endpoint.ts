// A voice behind OpenAI's /v1/audio/speech, streamed: OpenAI, Kokoro, openedai-speech and the like.
import type { VoiceSpec } from '../../link/talk-messages.ts';
import { PcmResampler } from '../pcm-resampler.ts';
import { post } from './http.ts';

/** `pcm` is 24 kHz, mono, 16 bits. */
const ENDPOINT_RATE = 24_000;

type RemoteVoice = Exclude<VoiceSpec, { kind: 'local' }>;

/** Speaks a clause. @yields PCM16 at SPEECH_RATE @throws ProviderError */
export async function* endpointSpeech(
  spec: RemoteVoice,
  text: string,
  signal: AbortSignal,
): AsyncGenerator<Int16Array> {
  const resampler = new PcmResampler(ENDPOINT_RATE);
  const chunks = post({
    who: 'The voice',
    url: `${spec.baseUrl}/audio/speech`,
    headers: {
      'content-type': 'application/json',
      ...(spec.apiKey === '' ? {} : { authorization: `Bearer ${spec.apiKey}` }),
    },
    body: JSON.stringify({
      model: spec.model,
      voice: spec.voice,
      input: text,
      response_format: 'pcm',
      stream_format: 'audio',
    }),
    signal,
  });
  for await (const chunk of chunks) {
    const pcm = resampler.push(chunk);
    if (pcm.length > 0) {
      yield pcm;
    }
  }
}
