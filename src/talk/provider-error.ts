// What can go wrong with a provider, as one error with a reason from a fixed list.
import type { ProviderFault } from '../link/talk-messages.ts';

/** A provider failed. The message may be shown and logged: it holds no key and no speech. */
export class ProviderError extends Error {
  readonly fault: ProviderFault;

  constructor(fault: ProviderFault, message: string) {
    super(message);
    this.name = 'ProviderError';
    this.fault = fault;
  }

  /** Another attempt may succeed, and the person has not waited for long yet. */
  get isRetryable(): boolean {
    return !['unauthorised', 'refused', 'malformed', 'timeout'].includes(this.fault);
  }
}

/** The error of an HTTP status that is not 2xx. */
export function statusError(who: string, status: number): ProviderError {
  if (status === 401 || status === 403) {
    return new ProviderError('unauthorised', `${who} refused the API key (HTTP ${status})`);
  }
  if (status === 429) {
    return new ProviderError(
      'rate_limited',
      `${who} refused: too many requests, or no credit left`,
    );
  }
  return status >= 500
    ? new ProviderError('server_error', `${who} failed (HTTP ${status})`)
    : new ProviderError('refused', `${who} refused the request (HTTP ${status})`);
}

/** Any error as a ProviderError. */
export function toProviderError(who: string, error: unknown): ProviderError {
  if (error instanceof ProviderError) {
    return error;
  }
  const name = error instanceof Error ? error.name : '';
  return name === 'TimeoutError'
    ? new ProviderError('timeout', `${who} did not answer in time`)
    : new ProviderError('unreachable', `${who} cannot be reached`);
}
