// Replies wait while the person speaks over the face: nothing is asked of a provider until it is
// known whether the face goes on.

/** The way of one reply, open at first. */
export class ReplyGate {
  #state: 'open' | 'held' | 'closed' = 'open';
  #held = new AbortController();
  #wake: (() => void) | undefined = undefined;

  /** Aborts when the reply is held. Each time it goes on there is a new one. */
  get heldSignal(): AbortSignal {
    return this.#held.signal;
  }

  /** Waits while it is held. @returns whether the reply goes on */
  async passes(signal: AbortSignal): Promise<boolean> {
    if (this.#state === 'held' && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener('abort', () => {
          resolve();
        });
      });
    }
    return this.#state === 'open' && !signal.aborted;
  }

  hold(): void {
    if (this.#state === 'open') {
      this.#state = 'held';
      this.#held.abort();
    }
  }

  open(): void {
    if (this.#state === 'held') {
      this.#state = 'open';
      this.#held = new AbortController();
      this.#wake?.();
    }
  }

  /** Ends a reply that is held. One that is not belongs to the next turn. */
  close(): void {
    if (this.#state === 'held') {
      this.#state = 'closed';
      this.#wake?.();
    }
  }
}

/** The gates of one conversation: those of the replies that are being made. */
export class ReplyGates {
  readonly #gates = new Set<ReplyGate>();

  /** Runs `make` with a gate of its own. */
  async *with<T>(make: (gate: ReplyGate) => AsyncIterable<T>): AsyncGenerator<T> {
    const gate = new ReplyGate();
    this.#gates.add(gate);
    try {
      yield* make(gate);
    } finally {
      this.#gates.delete(gate);
    }
  }

  /** The person speaks over the face: its replies wait. */
  hold(): void {
    for (const gate of this.#gates) {
      gate.hold();
    }
  }

  /** It was not an interruption. */
  open(): void {
    for (const gate of this.#gates) {
      gate.open();
    }
  }

  /** It was one: the replies that wait are not wanted any more. */
  close(): void {
    for (const gate of this.#gates) {
      gate.close();
    }
  }
}
