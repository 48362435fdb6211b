// How far the peer connection of a session has come: its phase, the wait for an offer, and how long
// each step of the set-up took.
import { after, soon } from '../../base/guard.ts';
import { monotonicMs } from '../../base/time.ts';
import type { FromWorker } from '../../link/messages.ts';
import type { StepMeter } from './session-meter.ts';
import type { SessionPhase } from './session-ports.ts';

/** Without a peer for this long, the session ends. */
export const OFFER_TIMEOUT_MS = 30_000;

/** What the progress is built from. */
export interface PeerProgressOptions {
  /** When the session was asked for, monotonic. */
  readonly openedMs: number;
  /** How long a session may be without a peer. */
  readonly waitMs: number;
  readonly step: StepMeter;
  /** No peer came in time. */
  readonly onTimeout: () => void;
}

/** The progress of one session. Its peers come one after the other. */
export class PeerProgress {
  readonly #options: PeerProgressOptions;
  #phase: SessionPhase = 'waiting';
  #timer: NodeJS.Timeout | undefined = undefined;
  #hasStarted = false;
  /** When each step was reached, monotonic. */
  readonly #atMs = { offer: 0, answer: 0, connected: 0 };

  constructor(options: PeerProgressOptions) {
    this.#options = options;
    const { waitMs, openedMs } = options;
    this.#awaitOffer(Math.max(0, waitMs - (monotonicMs() - openedMs)));
  }

  get phase(): SessionPhase {
    return this.#phase;
  }

  #awaitOffer(waitMs: number): void {
    clearTimeout(this.#timer);
    // After a stall of this thread, timers run before the sockets are read. The offer may have
    // arrived in time, so read the sockets first.
    this.#timer = after(waitMs, 'the wait for an offer', () => {
      soon('the wait for an offer', () => {
        if (this.#phase === 'waiting') {
          this.#options.onTimeout();
        }
      });
    });
  }

  /** A new peer begins. */
  begin(): void {
    clearTimeout(this.#timer);
    const nowMs = monotonicMs();
    this.#phase = 'answering';
    this.#atMs.offer = nowMs;
    if (!this.#hasStarted) {
      this.#options.step('offer', this.#options.openedMs, nowMs);
    }
  }

  /** The worker answered an offer. */
  answered(): void {
    if (this.#phase === 'answering') {
      this.#phase = 'connecting';
      this.acceptedAnswer();
      this.#options.step('answer', this.#atMs.offer, this.#atMs.answer);
    }
  }

  /** A media server answered an offer of ours. */
  acceptedAnswer(): void {
    this.#atMs.answer = monotonicMs();
  }

  /**
   * The peer is connected.
   * @returns the time of the set-up, and whether it is the first peer; undefined: the peer has left
   * meanwhile
   */
  connected({
    iceMs,
    atMs,
  }: Extract<FromWorker, { type: 'connected' }>):
    | { readonly setupMs: number; readonly isFirst: boolean }
    | undefined {
    if (this.#phase === 'waiting') {
      return undefined;
    }
    const { step, openedMs } = this.#options;
    this.#phase = 'live';
    this.#atMs.connected = atMs;
    step('ice', Math.min(iceMs, this.#atMs.answer), iceMs);
    step('dtls', iceMs, atMs);
    const isFirst = !this.#hasStarted;
    this.#hasStarted = true;
    return { setupMs: Math.round(atMs - (isFirst ? openedMs : this.#atMs.offer)), isFirst };
  }

  /** The first frame was sent to the peer. */
  firstFrame(atMs: number): void {
    this.#options.step('first_frame', this.#atMs.connected, atMs);
    this.#options.step('total', this.#atMs.offer, atMs);
  }

  /** The peer is gone: another one may come. */
  lost(): void {
    this.#phase = 'waiting';
    this.#awaitOffer(this.#options.waitMs);
  }

  /** The session is over. */
  close(): void {
    this.#phase = 'over';
    clearTimeout(this.#timer);
  }
}
