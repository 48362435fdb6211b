// Backpressure: waits until the socket of a response takes more bytes.
import type { HttpResponse } from 'uWebSockets.js';
import type { ResponseState } from './response-state.ts';

/**
 * The only writable handler of one response. uWebSockets.js restores the handler that it is calling
 * after the call, so a handler that is registered from inside it is lost and the response hangs.
 * Therefore this class registers one handler and replaces only what that handler calls.
 */
export class WritableWaiter {
  readonly #state: ResponseState;
  #waiting:
    | { readonly attempt: (offset: number) => boolean; readonly resolve: (sent: boolean) => void }
    | undefined;

  constructor(res: HttpResponse, state: ResponseState) {
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

  /**
   * Calls `attempt` whenever the socket has room, until it returns true.
   * @param attempt gets the write offset of the response, in bytes
   * @returns false when the client left first
   */
  wait(attempt: (offset: number) => boolean): Promise<boolean> {
    if (this.#state.aborted) {
      return Promise.resolve(false);
    }
    return new Promise((resolve) => {
      this.#waiting = { attempt, resolve };
    });
  }
}
