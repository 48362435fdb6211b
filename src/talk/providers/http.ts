// HTTP requests to providers: a time limit for the answer's head and for each pause in its body.
import { after } from '../../base/guard.ts';
import { ProviderError, statusError, toProviderError } from '../provider-error.ts';

/** A request to a provider. */
export interface ProviderRequest {
  /** Names the provider in errors. */
  readonly who: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string | FormData;
  readonly signal: AbortSignal;
  /** Longest wait for the head of the answer, and for each part of its body. */
  readonly waitMs: number;
  /** The answer is to be sound: text is not played. */
  readonly isSound?: boolean;
}

/**
 * Posts, and yields the chunks of the body as they arrive.
 * @throws ProviderError; what the signal aborts ends without an error
 */
export async function* post(request: ProviderRequest): AsyncGenerator<Uint8Array> {
  const { who, url, headers, body, signal, waitMs } = request;
  const abort = new AbortController();
  let isLate = false;
  const arm = () =>
    after(waitMs, 'the wait for a provider', () => {
      isLate = true;
      abort.abort();
    });
  let timer = arm();
  let hasBegun = false;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body,
      redirect: 'error',
      signal: AbortSignal.any([signal, abort.signal]),
    });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw statusError(who, response.status);
    }
    const type = response.headers.get('content-type') ?? '';
    if (request.isSound === true && /^(?:text\/|application\/json)/i.test(type)) {
      await response.body.cancel();
      throw new ProviderError('malformed', `${who} sent text in place of sound`);
    }
    for await (const chunk of response.body) {
      clearTimeout(timer);
      timer = arm();
      hasBegun = true;
      yield chunk;
    }
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    if (isLate) {
      throw new ProviderError('timeout', `${who} did not answer in time`);
    }
    if (hasBegun && !(error instanceof ProviderError)) {
      throw new ProviderError('cut_off', `${who} broke off its answer`);
    }
    throw toProviderError(who, error);
  } finally {
    clearTimeout(timer);
  }
}
