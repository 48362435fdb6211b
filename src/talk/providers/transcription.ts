// A recogniser behind OpenAI's /v1/audio/transcriptions: one WAV file for each utterance. OpenAI,
// speaches, faster-whisper and the like.
import type { EarSpec } from '../../link/talk-messages.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError } from '../provider-error.ts';
import { post } from './http.ts';

type RemoteEar = Exclude<EarSpec, { kind: 'local' }>;

/** The largest answer. */
const MAX_ANSWER_BYTES = 1 << 20;

/** @throws ProviderError */
export async function transcription(
  spec: RemoteEar,
  pcm: Int16Array,
  language: string,
  signal: AbortSignal,
): Promise<string> {
  const who = 'The recogniser';
  const form = new FormData();
  form.set('file', new Blob([wavOf(pcm)], { type: 'audio/wav' }), 'speech.wav');
  form.set('model', spec.model);
  form.set('language', language.slice(0, 2));
  form.set('response_format', 'json');
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of post({
    who,
    url: `${spec.baseUrl}/audio/transcriptions`,
    headers: spec.apiKey === '' ? {} : { authorization: `Bearer ${spec.apiKey}` },
    body: form,
    signal,
  })) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_ANSWER_BYTES) {
      break;
    }
  }
  if (signal.aborted) {
    return '';
  }
  try {
    const answer = JSON.parse(text) as { text?: unknown };
    if (typeof answer.text === 'string') {
      return answer.text.trim();
    }
  } catch {
    // Below.
  }
  throw new ProviderError('malformed', `${who} sent something else than a transcript`);
}

/** A WAV file: PCM16, mono, SPEECH_RATE. */
function wavOf(pcm: Int16Array): Uint8Array<ArrayBuffer> {
  const file = Buffer.alloc(44 + pcm.length * 2);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(36 + pcm.length * 2, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(SPEECH_RATE, 24);
  file.writeUInt32LE(SPEECH_RATE * 2, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(pcm.length * 2, 40);
  Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength).copy(file, 44);
  return new Uint8Array(file.buffer, file.byteOffset, file.length);
}
