// Passes on the receiver's requests for key frames, at a limited rate.

/**
 * Least time between two requests to the encoder: a key frame costs several times the bits of
 * another frame.
 */
const KEY_FRAME_INTERVAL_MS = 300;

/** Times are `monotonicMs()`. */
export class KeyFrameRequester {
  readonly #onRequest: () => void;
  #lastRequestMs = Number.NEGATIVE_INFINITY;
  #isPending = false;

  /** `onRequest` must not throw. */
  constructor(onRequest: () => void) {
    this.#onRequest = onRequest;
  }

  /**
   * Requests a key frame now, or in a later `poll` if the last request was too recent. No request
   * is lost.
   */
  request(nowMs: number): void {
    this.#isPending = nowMs - this.#lastRequestMs < KEY_FRAME_INTERVAL_MS;
    if (this.#isPending) {
      return;
    }
    this.#lastRequestMs = nowMs;
    this.#onRequest();
  }

  /** Sends a pending request when it is due. */
  poll(nowMs: number): void {
    if (this.#isPending) {
      this.request(nowMs);
    }
  }
}
