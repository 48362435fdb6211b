// Writes log lines to a file descriptor without waiting for it. What cannot be written is dropped and counted: a full disk, a terminal that
// is gone or a reader that left must not end the process, fill its memory, or keep it from ending (pino's own destination does each).
import { write, writeSync } from 'node:fs';

/** What may wait to be written; lines beyond it are dropped. */
const MAX_WAITING_BYTES = 4 << 20;
const RETRY_MS = 50;
/** At the end of the process. */
const LAST_ATTEMPTS = 20;
/** A write under way has no end that could be waited for without the event loop. */
const SENDING_MS = 20;

const isBusy = (error: unknown): boolean =>
  ['EAGAIN', 'EBUSY', 'EINTR'].includes((error as NodeJS.ErrnoException).code ?? '');

const pause = (durationMs: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
};

export class LogWriter {
  readonly #fd: number;
  #lines: string[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #isSending = false;
  #lost = 0;

  constructor(fd: number) {
    this.#fd = fd;
    process.on('exit', () => {
      this.flushSync();
    });
  }

  /** @param line with its line break */
  write(line: string): void {
    if (this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      this.#lost++;
      return;
    }
    this.#lines.push(line);
    this.#waitingBytes += line.length;
    if (this.#isWriting) {
      return;
    }
    this.#isWriting = true;
    // Not yet: a line that is followed by process.exit() is then still here for `flushSync`.
    queueMicrotask(() => {
      this.#next();
    });
  }

  /** Writes what waits, now, after what a thread of libuv's pool is writing already. Called by pino after a fatal line too. */
  flushSync(): void {
    if (this.#isSending) {
      pause(SENDING_MS);
    }
    let bytes = this.#take().bytes;
    for (let attempt = 0; bytes.length > 0 && attempt < LAST_ATTEMPTS;) {
      try {
        bytes = bytes.subarray(writeSync(this.#fd, bytes));
      } catch (error) {
        if (!isBusy(error)) {
          return;
        }
        attempt++;
        pause(RETRY_MS);
      }
    }
  }

  #next(): void {
    const { bytes, lines } = this.#take();
    if (bytes.length === 0) {
      this.#isWriting = false;
    } else {
      this.#send(bytes, lines);
    }
  }

  #send(bytes: Uint8Array, lines: number): void {
    this.#isSending = true;
    write(this.#fd, bytes, (error, written) => {
      this.#isSending = false;
      if (error && isBusy(error)) {
        setTimeout(() => {
          this.#send(bytes, lines);
        }, RETRY_MS);
        return;
      }
      if (error) {
        this.#lost += lines;
      } else if (written < bytes.length) {
        this.#send(bytes.subarray(written), lines);
        return;
      } else if (this.#lost > 0) {
        this.#tellLost();
      }
      this.#next();
    });
  }

  /** The first thing after writing works again. */
  #tellLost(): void {
    const line = `${JSON.stringify({ level: 40, lost: this.#lost, msg: 'log lines were lost: they could not be written' })}\n`;
    this.#lost = 0;
    this.#lines.unshift(line);
    this.#waitingBytes += line.length;
  }

  #take(): { bytes: Uint8Array; lines: number } {
    const lines = this.#lines;
    this.#lines = [];
    this.#waitingBytes = 0;
    return { bytes: Buffer.from(lines.join('')), lines: lines.length };
  }
}
