// Recognisers behind OpenAI's /v1/audio/transcriptions (OpenAI, speaches, faster-whisper and the
// like), one request for each utterance.
import type { RecogniserSpec } from '../../link/talk-messages.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import { ProviderError } from '../provider-error.ts';
import { post } from './http.ts';

/** Longest wait for the words. */
const WAIT_MS = 8000;
/** The largest answer. */
const MAX_ANSWER_BYTES = 1 << 20;

const WHO = 'The recogniser';

/** Recognises an utterance. @throws ProviderError */
export async function transcription(
  { baseUrl, apiKey, model }: Extract<RecogniserSpec, { kind: 'openai' }>,
  pcm: Int16Array,
  language: string,
  signal: AbortSignal,
): Promise<string> {
  const form = new FormData();
  form.set('file', new Blob([wavOf(pcm)], { type: 'audio/wav' }), 'speech.wav');
  form.set('model', model);
  form.set('language', language.slice(0, 2));
  form.set('response_format', 'json');
  const decoder = new TextDecoder();
  let text = '';
  const chunks = post({
    who: WHO,
    url: `${baseUrl}/audio/transcriptions`,
    headers: apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` },
    body: form,
    signal,
    waitMs: WAIT_MS,
  });
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_ANSWER_BYTES) {
      break;
    }
  }
  if (signal.aborted) {
    return '';
  }
  const said = textOf(text);
  if (said === undefined) {
    throw new ProviderError('malformed', `${WHO} sent something else than a transcript`);
  }
  return said.trim();
}

/** The words in an answer; undefined when it is none. */
function textOf(answer: string): string | undefined {
  try {
    const { text } = JSON.parse(answer) as { text?: unknown };
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
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
