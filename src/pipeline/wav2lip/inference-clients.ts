// A media worker's end of its inference thread: onnxruntime-node runs a network on the thread that asks, however long it takes, so another one asks.
import type { MessagePort } from 'node:worker_threads';
import { guarded } from '../../base/guard.ts';
import { FPS } from '../../media/timeline.ts';
import type { FromInferenceThread, ToInferenceThread, FrameRequest } from './messages.ts';
import { Wav2LipRefused } from './network.ts';

/** A session as the thread's messages reach it. */
export interface InferenceClientListener {
  opened(message: FromInferenceThread & { readonly type: 'opened' }): void;
  made(slot: number, tookMs: number | undefined): void;
  failed(why: string): void;
}

const GONE = 'The inference thread of WAV2LIP_MODEL is gone.';

export class InferenceClients {
  /** Share of a core that one speaking session's network takes, as measured when it was loaded. */
  readonly costPerSession: number;

  readonly #port: MessagePort;
  readonly #listeners = new Map<number, InferenceClientListener>();
  #nextId = 0;
  #isGone = false;

  private constructor(port: MessagePort, costPerSession: number) {
    this.#port = port;
    this.costPerSession = costPerSession;
    port.on(
      'message',
      guarded(
        'an answer of the inference thread',
        (message: Exclude<FromInferenceThread, { type: 'ready' | 'refused' }>) => {
          const listener = this.#listeners.get(message.id);
          if (message.type === 'opened') {
            listener?.opened(message);
          } else if (message.type === 'made') {
            listener?.made(message.slot, message.tookMs);
          } else {
            listener?.failed(message.why);
          }
        },
      ),
    );
    port.once('close', () => {
      this.#isGone = true;
      for (const listener of [...this.#listeners.values()]) {
        guarded('the end of the inference thread', () => {
          listener.failed(GONE);
        })();
      }
    });
  }

  /**
   * Waits for the thread at the other end of `port` (thread.ts), which loads, binds and times the network.
   * @throws Wav2LipRefused when its shapes do not fit, it gives something else than a picture, or it can not hold the frame rate here; Error when the thread fails
   */
  static async connect(port: MessagePort): Promise<InferenceClients> {
    const first = await new Promise<FromInferenceThread | undefined>((resolve) => {
      port.once('message', resolve);
      port.once('close', () => {
        resolve(undefined);
      });
    });
    if (first?.type === 'ready') {
      return new InferenceClients(port, (first.msPerFrame * first.threads * FPS) / 1000);
    }
    if (first?.type === 'refused') {
      throw first.isDefect ? new Error(first.why) : new Wav2LipRefused(first.why);
    }
    throw new Error(GONE);
  }

  /** @throws Error when the thread is gone */
  open(face: SharedArrayBuffer, slots: number, listener: InferenceClientListener): number {
    if (this.#isGone) {
      throw new Error(GONE);
    }
    const id = this.#nextId++;
    this.#listeners.set(id, listener);
    this.#post({ type: 'open', id, face, slots });
    return id;
  }

  hear(id: number, isNew: boolean, pcm: Int16Array, wanted: readonly FrameRequest[]): void {
    this.#post({ type: 'hear', id, isNew, pcm, wanted });
  }

  close(id: number): void {
    if (this.#listeners.delete(id)) {
      this.#post({ type: 'close', id });
    }
  }

  /** Ends the thread, once the mouth that it is at is made. */
  stop(): void {
    this.#listeners.clear();
    this.#port.close();
  }

  #post(message: ToInferenceThread): void {
    this.#port.postMessage(message);
  }
}
