// The speech of a session that holds a conversation: its voice writes the ring, and the client's
// audio messages are ignored.
import { createSpeechRing } from '../../link/speech-ring.ts';
import type { AudioIngress } from './audio-ingress.ts';

/** The ring of a conversation. SKIP interrupts the conversation. */
export class ConversationIngress implements AudioIngress {
  readonly memory = createSpeechRing();
  readonly hasBacklog = false;
  readonly writtenPosition = 0;
  readonly heardPosition = 0;
  readonly #interrupt: () => void;
  #ignored = 0;

  constructor(interrupt: () => void) {
    this.#interrupt = interrupt;
  }

  get invalidMessages(): number {
    return this.#ignored;
  }

  samplesIn(): number {
    return 0;
  }

  push(): number {
    this.#ignored++;
    return 0;
  }

  flush(): void {
    this.#interrupt();
  }

  done(): void {}

  pump(): void {}

  close(): void {}
}
