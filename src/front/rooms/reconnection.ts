// When a lost connection to a LiveKit server is tried again, and when it is given up.
import { DisconnectReason, LeaveRequest_Action } from '@livekit/protocol';
import type { LeaveSignal } from './server-signals.ts';

/** Attempts wait for this long, one after the other; the last value is that of all others. */
const DELAYS_MS = [0, 300, 700, 1000];
/**
 * Delays are this much longer or shorter by chance: the sessions of a server that was restarted do
 * not all come at once.
 */
const SPREAD = 0.25;
/** When a connection could not be restored for this long, the session ends. */
const TIMEOUT_MS = 60_000;
/**
 * A connection that is lost sooner has not been restored: a server that sends us away again and
 * again is tried once a second.
 */
const STEADY_MS = 5000;

/** The attempts since a connection was lost. Times are `monotonicMs()`. */
export class Reconnection {
  /** Since when the connection is lost; undefined: it is not. */
  #lostMs: number | undefined = undefined;
  #restoredMs = Number.NEGATIVE_INFINITY;
  #attempts = 0;

  get isUnderWay(): boolean {
    return this.#lostMs !== undefined;
  }

  /**
   * The connection is lost, or an attempt has failed.
   * @param ownMs instead of the usual wait; not of one that is lost again and again
   * @returns undefined: it is given up
   */
  nextDelayMs(nowMs: number, ownMs?: number): number | undefined {
    if (this.#lostMs === undefined) {
      this.#lostMs = nowMs;
      this.#attempts = nowMs - this.#restoredMs > STEADY_MS ? 0 : this.#attempts;
    }
    if (nowMs - this.#lostMs > TIMEOUT_MS) {
      return undefined;
    }
    const delayMs = DELAYS_MS[Math.min(this.#attempts, DELAYS_MS.length - 1)]!;
    this.#attempts++;
    if (ownMs !== undefined && this.#attempts <= DELAYS_MS.length) {
      return ownMs;
    }
    return delayMs * (1 + SPREAD * (2 * Math.random() - 1));
  }

  /** The connection is back. @returns for how long it was lost; undefined: it was not */
  succeed(nowMs: number): number | undefined {
    const lostMs = this.#lostMs;
    this.#lostMs = undefined;
    this.#restoredMs = lostMs === undefined ? this.#restoredMs : nowMs;
    return lostMs === undefined ? undefined : nowMs - lostMs;
  }
}

/** Whether a server sends us away for good. One that is stopped may be started again. */
export const isFinal = ({ action, reason, canReconnect }: LeaveSignal): boolean =>
  action === LeaveRequest_Action.DISCONNECT &&
  !canReconnect &&
  reason !== DisconnectReason.SERVER_SHUTDOWN;
