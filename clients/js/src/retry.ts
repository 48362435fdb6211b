// When a connection that was lost is tried again: every second at first, with growing pauses later,
// and at once when the browser is online again.

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
/**
 * A token of a server that died is free 4 to 6 s later: while that may be why, a pause is a second at
 * most, so that a session is back within 8 s.
 */
const SOON_MS = 10_000;
const MAX_SOON_DELAY_MS = 1000;
const MAX_DELAY_MS = 8000;
/** Clients of a server that died do not all come back in the same moment. */
const JITTER = 0.2;

/** The attempts of one session. */
export class Retry {
  readonly #limitMs: number;
  readonly #over = new AbortController();
  #lostMs = 0;
  #attempt = 0;
  /** Without jitter. */
  #delayMs = 0;

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
    const lostForMs = nowMs - this.#lostMs;
    if (lostForMs > this.#limitMs || this.#over.signal.aborted) {
      return undefined;
    }
    const mostMs = lostForMs < SOON_MS ? MAX_SOON_DELAY_MS : MAX_DELAY_MS;
    this.#delayMs = this.#attempt === 0 ? FIRST_DELAY_MS : Math.min(mostMs, 2 * this.#delayMs);
    this.#attempt++;
    const delayMs = Math.round(this.#delayMs * (1 - JITTER * Math.random()));
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
