// Requests to the providers of one conversation: repeated once, and told to a listener.
import { after } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import type { ProviderKind, ProviderRole } from '../link/talk-messages.ts';
import { type ProviderError, toProviderError } from './provider-error.ts';

/** Steps of a turn at its providers. */
export type ProviderStep = 'asked' | 'firstToken' | 'firstClause' | 'firstAudio';

/** What the providers tell. */
export interface ProviderListener {
  onStep(step: ProviderStep): void;
  /** A request has its first result. */
  onAnswer(role: ProviderRole, kind: ProviderKind, seconds: number): void;
  /**
   * A request failed, and was not or will not be repeated.
   * @param isLost of a provider that calls again by itself: true, it has given up; false, it goes on
   */
  onFault(role: ProviderRole, kind: ProviderKind, error: ProviderError, isLost?: boolean): void;
  /** A request has no result yet, and the person waits for it. @param message in words */
  onSlow(message: string): void;
  onUsage(tokens: number, voiceSeconds: number): void;
}

/** Attempts of a request that has not yielded anything yet. */
const ATTEMPTS = 2;
/** A result that takes longer than this is told to the person. */
const SLOW_MS = 3000;
const WHO: Readonly<Record<ProviderRole, string>> = {
  language_model: 'The language model',
  voice: 'The voice',
  recogniser: 'The recogniser',
};

/** The requests of one conversation. */
export class Attempts {
  readonly #listener: ProviderListener;

  constructor(listener: ProviderListener) {
    this.#listener = listener;
  }

  /**
   * Runs a request; repeats it once if it failed before its first result. Throws nothing: it ends, and
   * the fault is told.
   * @param onFault called after the listener, when the request has failed for good
   */
  async *run<T>(
    role: ProviderRole,
    kind: ProviderKind,
    signal: AbortSignal,
    make: () => AsyncIterable<T>,
    onFault = (): void => {},
  ): AsyncGenerator<T> {
    const slow = after(SLOW_MS, 'the word of a slow provider', () => {
      this.#listener.onSlow(`${WHO[role]} takes long to answer`);
    });
    try {
      for (let count = 1; ; count++) {
        const startMs = monotonicMs();
        let hasYielded = false;
        try {
          for await (const value of make()) {
            if (!hasYielded) {
              hasYielded = true;
              clearTimeout(slow);
              this.#listener.onAnswer(role, kind, (monotonicMs() - startMs) / 1000);
            }
            if (signal.aborted) {
              return;
            }
            yield value;
          }
          return;
        } catch (error) {
          if (signal.aborted) {
            return;
          }
          const failure = toProviderError(WHO[role], error);
          if (hasYielded || count >= ATTEMPTS || !failure.isRetryable) {
            onFault();
            this.#listener.onFault(role, kind, failure);
            return;
          }
        }
      }
    } finally {
      clearTimeout(slow);
    }
  }
}

/** One value, for `Attempts.run`. */
export async function* once<T>(value: Promise<T>): AsyncGenerator<T> {
  yield await value;
}
