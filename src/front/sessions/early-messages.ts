// Messages that a socket sends before its session exists, while its token is checked.

/** Limits for the few milliseconds of the check. A socket that exceeds them is refused. */
const MAX_EARLY_MESSAGES = 256;
const MAX_EARLY_BYTES = 4 << 20;
const MAX_EARLY_BYTES_TOTAL = 64 << 20;

/** A copied message. */
export interface EarlyMessage {
  readonly message: ArrayBuffer;
  readonly isBinary: boolean;
}

/** The memory of the early messages of all sockets. */
export class EarlyMessageMemory {
  usedBytes = 0;
}

/** The early messages of one socket, in order. */
export class EarlyMessages {
  readonly #memory: EarlyMessageMemory;
  #messages: EarlyMessage[] | undefined = [];
  #bytes = 0;

  constructor(memory: EarlyMessageMemory) {
    this.#memory = memory;
  }

  /** Whether messages are still collected: until `take`. */
  get isOpen(): boolean {
    return this.#messages !== undefined;
  }

  /** Copies a message. @returns false when it would exceed a limit; it is not kept then */
  push(message: ArrayBuffer, isBinary: boolean): boolean {
    const { byteLength } = message;
    if (
      this.#messages === undefined ||
      this.#messages.length >= MAX_EARLY_MESSAGES ||
      this.#bytes + byteLength > MAX_EARLY_BYTES ||
      this.#memory.usedBytes + byteLength > MAX_EARLY_BYTES_TOTAL
    ) {
      return false;
    }
    this.#bytes += byteLength;
    this.#memory.usedBytes += byteLength;
    this.#messages.push({ message: message.slice(0), isBinary });
    return true;
  }

  /** The messages, whose memory no longer counts. No more are collected afterwards. */
  take(): readonly EarlyMessage[] {
    const messages = this.#messages ?? [];
    this.#messages = undefined;
    this.#memory.usedBytes -= this.#bytes;
    this.#bytes = 0;
    return messages;
  }
}
