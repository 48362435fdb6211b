// When a connection that was lost is tried again: with growing pauses, and at once when the browser
// is online again.

/**
 * Errors after which the same token may work again; /docs/protocol says so of each code. Others are
 * final.
 */
export const RETRYABLE: readonly string[] = [
  'CONNECTION_LOST',
  'SOCKET_FAILED',
  'SESSION_IN_USE',
  'FACE_NOT_READY',
  'RATE_LIMITED',
  'SERVER_OVERLOADED',
  'SERVER_DRAINING',
  'OFFER_TIMEOUT',
  'CONNECT_TIMEOUT',
  'ICE_FAILED',
  'DTLS_FAILED',
  'CERTIFICATE_MISMATCH',
  'PEER_LOST',
  'JOIN_TIMEOUT',
  'ROOM_JOIN_FAILED',
  'ROOM_LOST',
  'WORKER_LOST',
  'STORAGE_UNAVAILABLE',
  'STORE_UNAVAILABLE',
  'INTERNAL_ERROR',
];

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8000;

/** The attempts of one session. */
export class Retry {
  readonly #limitMs: number;
  readonly #over = new AbortController();
  #lostMs = 0;
  #attempt = 0;

  /** @param limitMs how long a lost connection is tried again */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** It is connected. */
  succeeded(): void {
    this.#attempt = 0;
  }

  /**
   * It is lost, or could not be connected.
   * @param again called once, after the pause
   * @returns the pause; undefined when it has taken too long
   */
  next(again: () => void): { readonly attempt: number; readonly delayMs: number } | undefined {
    const nowMs = performance.now();
    if (this.#attempt === 0) {
      this.#lostMs = nowMs;
    }
    if (nowMs - this.#lostMs > this.#limitMs || this.#over.signal.aborted) {
      return undefined;
    }
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#attempt++);
    const { signal } = this.#over;
    const once = (): void => {
      clearTimeout(timer);
      globalThis.removeEventListener?.('online', once);
      if (!signal.aborted) {
        again();
      }
    };
    const timer = setTimeout(once, delayMs);
    globalThis.addEventListener?.('online', once, { signal });
    return { attempt: this.#attempt, delayMs };
  }

  /** No attempt follows. */
  close(): void {
    this.#over.abort();
  }
}
