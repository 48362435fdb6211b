// Waiting for a slow reader: one writable handler per response, whose continuation changes.
import type { HttpResponse } from 'uWebSockets.js';
import type { WireState } from './reply.ts';

/**
 * uWebSockets.js puts the handler it is just calling back in place afterwards, so one that is registered from inside (as a continuation of
 * it is) would be lost, and the response would hang. Hence one handler for the whole response.
 */
export class Drain {
  readonly #state: WireState;
  #waiting:
    | { readonly attempt: (offset: number) => boolean; readonly resolve: (there: boolean) => void }
    | undefined;

  constructor(res: HttpResponse, state: WireState) {
    this.#state = state;
    res.onWritable((offset) => {
      const waiting = this.#waiting;
      if (!waiting) {
        return true;
      }
      if (!waiting.attempt(offset)) {
        return false;
      }
      this.#waiting = undefined;
      waiting.resolve(true);
      return true;
    });
    state.signal.addEventListener('abort', () => this.#waiting?.resolve(false), { once: true });
  }

  /** Resolves once `attempt`, called whenever the socket has room, succeeds; with false when the client left. */
  wait(attempt: (offset: number) => boolean): Promise<boolean> {
    if (this.#state.aborted) {
      return Promise.resolve(false);
    }
    return new Promise((resolve) => {
      this.#waiting = { attempt, resolve };
    });
  }
}
