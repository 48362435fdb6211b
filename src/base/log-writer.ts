// Writes log lines to a file descriptor without blocking. Lines that cannot be written are dropped
// and counted. A full disk, a closed terminal or a reader that left must not end the process, fill
// its memory, or keep it from ending. The destination of pino does each of these.
import { write, writeSync } from 'node:fs';

/** Lines that wait to be written. Further lines are dropped. */
const MAX_WAITING_BYTES = 4 << 20;
const RETRY_MS = 50;
/** Attempts to write when the process ends. */
const LAST_ATTEMPTS = 20;
/** How long `flushSync` waits for a write in progress, whose end only the event loop reports. */
const SENDING_MS = 20;

const isBusy = (error: unknown): boolean =>
  ['EAGAIN', 'EBUSY', 'EINTR'].includes((error as NodeJS.ErrnoException).code ?? '');

const pause = (durationMs: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
};

/** The log of one file descriptor. */
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

  /** Queues a line. @param line with its line break */
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
    // Deferred: when process.exit() follows this call, `flushSync` still has the line.
    queueMicrotask(() => {
      this.#next();
    });
  }

  /** Writes all waiting lines now. pino calls it after a fatal line, too. */
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
        this.#reportLost();
      }
      this.#next();
    });
  }

  /** Queues a line with the number of lost lines, before all others. */
  #reportLost(): void {
    const msg = 'log lines were lost because they could not be written';
    const line = `${JSON.stringify({ level: 40, lost: this.#lost, msg })}\n`;
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
