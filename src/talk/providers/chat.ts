// A language model behind OpenAI's chat completions: OpenAI, Google's compatible base, Groq, Ollama,
// vLLM, llama.cpp.
import type { LanguageModelSpec } from '../../link/talk-messages.ts';
import { ProviderError } from '../provider-error.ts';
import type { ChatMessage } from '../turn-types.ts';
import { post } from './http.ts';

/** Longest line of an event stream. */
const MAX_LINE_CHARS = 1 << 20;

/** A model that runs on the operator's own machine is loaded by its first request. */
const WAIT_MS = 20_000;

type ChatSpec = Extract<LanguageModelSpec, { kind: 'chat' }>;

/**
 * Streams a reply.
 * @yields pieces of its text
 * @throws ProviderError
 */
export async function* chatReply(
  spec: ChatSpec,
  messages: readonly ChatMessage[],
  signal: AbortSignal,
): AsyncGenerator<string> {
  const who = 'The language model';
  const chunks = post({
    who,
    url: spec.url,
    headers: {
      'content-type': 'application/json',
      ...(spec.apiKey === '' ? {} : { authorization: `Bearer ${spec.apiKey}` }),
    },
    body: JSON.stringify({ model: spec.model, messages, stream: true }),
    signal,
    waitMs: WAIT_MS,
  });
  let isDone = false;
  let hasText = false;
  for await (const data of eventData(chunks)) {
    if (data === '[DONE]') {
      isDone = true;
      break;
    }
    const { text, isLast } = parseDelta(data);
    isDone ||= isLast;
    if (text !== '') {
      hasText = true;
      yield text;
    }
  }
  if (!isDone && !signal.aborted) {
    throw new ProviderError('cut_off', `${who} broke off its answer`);
  }
  if (!hasText && !signal.aborted) {
    throw new ProviderError('malformed', `${who} answered without words`);
  }
}

function parseDelta(data: string): { readonly text: string; readonly isLast: boolean } {
  try {
    const chunk = JSON.parse(data) as {
      error?: unknown;
      choices?: { delta?: { content?: unknown }; finish_reason?: unknown }[];
    };
    if (chunk.error !== undefined && chunk.error !== null) {
      throw new ProviderError('server_error', 'The language model sent an error');
    }
    const choice = chunk.choices?.[0];
    const content = choice?.delta?.content;
    return {
      text: typeof content === 'string' ? content : '',
      isLast: typeof choice?.finish_reason === 'string',
    };
  } catch (error) {
    if (error instanceof ProviderError) {
      throw error;
    }
    throw new ProviderError('malformed', 'The language model sent something that is not JSON');
  }
}

/** The data fields of server-sent events (WHATWG HTML section 9.2), one line each. */
async function* eventData(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_CHARS) {
      throw new ProviderError('malformed', 'The language model sent a line without an end');
    }
    for (const line of lines) {
      if (line.startsWith('data:')) {
        yield line.slice(5).trim();
      }
    }
  }
  if (rest.startsWith('data:')) {
    yield rest.slice(5).trim();
  }
}
