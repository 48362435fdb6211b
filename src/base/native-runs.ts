// Ends a thread between two runs of onnxruntime. One that is terminated during a run aborts the
// whole process: its call into JavaScript fails, and onnxruntime-node throws a Napi::Error that
// nothing catches. Both sides share two words of memory, which they write and then read in opposite
// order, so that at least one of them sees the other.
import type { Worker } from 'node:worker_threads';

const [RUNNING, ENDING] = [0, 1];
/** A run takes about a millisecond. One that takes this long hangs, or the thread does. */
const RUN_DEADLINE_MS = 2000;

/** Memory for one thread. */
export const createNativeRuns = (): SharedArrayBuffer =>
  new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);

/** The side of the thread that runs networks. */
export class NativeRuns {
  readonly #words: Int32Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** Call before each run. Does not return when the thread is about to be terminated. */
  begin(): void {
    Atomics.store(this.#words, RUNNING, 1);
    if (Atomics.load(this.#words, ENDING) === 1) {
      this.end();
      process.exit(); // of this thread alone
    }
  }

  /** Call after each run, whether it succeeded or not. */
  end(): void {
    Atomics.store(this.#words, RUNNING, 0);
    Atomics.notify(this.#words, RUNNING);
  }
}

/** The other side: terminates the thread, after its present run if there is one. */
export async function terminateBetweenRuns(
  thread: Worker,
  memory: SharedArrayBuffer,
): Promise<void> {
  const words = new Int32Array(memory);
  Atomics.store(words, ENDING, 1);
  await Atomics.waitAsync(words, RUNNING, 1, RUN_DEADLINE_MS).value;
  await thread.terminate();
}
