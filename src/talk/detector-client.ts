// The thread of conversations asks the thread of the detector: one window of speech at a time.
import type { MessagePort } from 'node:worker_threads';
import { guarded } from '../base/guard.ts';

/** A window of a stream; without samples: the stream has ended. */
export interface ToDetector {
  readonly stream: number;
  readonly pcm?: Int16Array;
}

/** The probability that the window is speech. */
export interface FromDetector {
  readonly stream: number;
  readonly probability: number;
}

/** The detector, from the side of conversations. */
export class DetectorClient {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, (probability: number) => void>();
  #streams = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on(
      'message',
      guarded('an answer of the detector', ({ stream, probability }: FromDetector) => {
        const resolve = this.#waiting.get(stream);
        this.#waiting.delete(stream);
        resolve?.(probability);
      }),
    );
  }

  /** A new stream. `predict` takes its windows one after another. */
  open(): { predict(pcm: Int16Array): Promise<number>; close(): void } {
    const stream = this.#streams;
    this.#streams++;
    return {
      predict: (pcm) =>
        new Promise((resolve) => {
          this.#waiting.set(stream, resolve);
          this.#port.postMessage({ stream, pcm } satisfies ToDetector);
        }),
      close: () => {
        this.#waiting.get(stream)?.(0);
        this.#waiting.delete(stream);
        this.#port.postMessage({ stream } satisfies ToDetector);
      },
    };
  }
}
