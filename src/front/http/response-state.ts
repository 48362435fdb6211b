// Whether the response object of a request may still be used.

/**
 * uWebSockets.js forbids every call on a response that was aborted or ended. All code that holds
 * one after an `await` checks this state first.
 */
export interface ResponseState {
  /** True once the client has left or the response has ended. */
  aborted: boolean;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
}
