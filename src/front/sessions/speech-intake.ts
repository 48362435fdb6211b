// The speech of a session on its way into the ring: counted, and pumped while the ring is full.
import { every } from '../../base/guard.ts';
import { monotonicMs } from '../../base/time.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';
import type { AudioIngress } from './audio-ingress.ts';
import type { SpeechPort } from './session-link.ts';
import type { SocketTally } from './session-meter.ts';

const BACKLOG_PUMP_MS = 100;

/** Feeds one ingress, and closes it. */
export class SpeechIntake implements SpeechPort {
  readonly ingress: AudioIngress;
  readonly #tally: SocketTally;
  #timer: NodeJS.Timeout | undefined = undefined;

  constructor(ingress: AudioIngress, tally: SocketTally) {
    this.ingress = ingress;
    this.#tally = tally;
  }

  /** Takes one message. @returns false when some of it was dropped */
  push(bytes: Uint8Array, nowMs = monotonicMs()): boolean {
    this.#tally.audioReceived(this.ingress.samplesIn(bytes) / SPEECH_RATE);
    const dropped = this.ingress.push(bytes, nowMs);
    if (dropped > 0) {
      this.#tally.audioDropped(dropped / SPEECH_RATE);
    }
    if (this.#timer === undefined && this.ingress.hasBacklog) {
      this.#timer = every(BACKLOG_PUMP_MS, 'the backlog of speech', () => {
        this.#pump();
      });
    }
    return dropped === 0;
  }

  flush(): void {
    this.ingress.flush(monotonicMs());
  }
  get writtenPosition(): number {
    return this.ingress.writtenPosition;
  }
  get heardPosition(): number {
    return this.ingress.heardPosition;
  }

  close(): void {
    clearInterval(this.#timer);
    this.ingress.close();
  }

  /** Moves waiting speech into the ring; stops the timer when none is left. */
  #pump(): void {
    this.ingress.pump(monotonicMs());
    if (!this.ingress.hasBacklog) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }
}
